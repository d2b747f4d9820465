package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/app"
)

// notRunnable are commands of the pages that this test does not run, by a part of the command line, with the reason.
var notRunnable = map[string]string{
	"sandbox create":                       "the sandbox exists",
	"sandbox reset":                        "removes the world of the other commands",
	"artifacts build":                      "compiles for minutes, from the network",
	"sandbox run":                          "needs kubectl",
	"init --from-inventory":                "needs a directory without a configuration",
	"import ci-runner-07":                  "the server is an example",
	"--adopt-only":                         "needs adopted servers",
	"show k3j5":                            "the run is an example",
	"lock release --force":                 "the run is an example",
	"--moved-from-cluster":                 "the cluster is an example",
	"--fingerprint":                        "the key is an example",
	"--ask-password":                       "needs a password",
	"-e staging doctor mini-1":             "needs a real Mac",
	"hosts forget-key":                     "needs a terminal",
	"replace 00c3b":                        "needs a terminal",
	"explain NAME":                         "the server is an example",
	"--failed-from":                        "needs a failed run",
	"lock release":                         "needs a held lock",
	"init cluster --export-ssh-key":        "needs a key in the cluster that was just made",
	"apply --rollback --step tart_kubelet": "needs a previous version",
}

// TestDocsCommandsRun runs the commands of the pages in a converged world, page by page: none fails with exit code 1. Names,
// files and numbers of runners are replaced by those of the world. TestFirstPages runs the tutorial.
func TestDocsCommandsRun(t *testing.T) {
	t.Parallel()
	w := newDocWorld(t)
	dir := w.dir
	w.runs(0, "plan", "--record", filepath.Join(dir, "record.json"))
	w.runs(0, "drift", "--remember", filepath.Join(dir, "last.json")) // what it prints may begin with its progress
	names := strings.Fields(w.runs(0, "hosts", "-o", "name"))
	seen := make(map[string]bool)
	for _, page := range pages(t) {
		if strings.HasPrefix(page, "docs/reference/") || page == "docs/tutorial.md" {
			continue
		}
		for _, b := range blocks(t, page) {
			if b.kind != "sh" {
				continue
			}
			for _, words := range commandLines(t, b) {
				line := strings.Join(words, " ")
				if seen[line] || slices.ContainsFunc(slices.Sorted(maps.Keys(notRunnable)), func(part string) bool { return strings.Contains(line, part) }) {
					continue
				}
				seen[line] = true
				_ = os.Remove(filepath.Join(dir, "ci.kubeconfig")) // several pages write it
				if code, said := w.try(dir, names, words); code == app.ExitError {
					t.Errorf("%s: macfleet %s: exit 1\n%s", b.place(), line, said)
				}
			}
		}
	}
	if len(seen) < 70 {
		t.Errorf("only %d commands were run", len(seen))
	}
}

var (
	exampleName = regexp.MustCompile(`acme-production-(\w+)-m2-[0-9a-f]{5}|acme-pool-05|\b(00c3b|7622a|fba75|6cb81)\b`)
	exampleSize = regexp.MustCompile(`^runners=\d+$`)
	exampleFile = regexp.MustCompile(`^[a-z.-]+\.(json|jsonl|log|kubeconfig)$`)
	changes     = regexp.MustCompile(`^(apply|init cluster|cordon|restart|hosts forget-key)\b`)
)

// try runs an example in the world: with its members, in a folder for files, and approved.
func (w *docWorld) try(dir string, names, words []string) (int, string) {
	words = slices.Clone(words)
	for i, word := range words {
		word = exampleName.ReplaceAllStringFunc(word, func(example string) string {
			fleet := "-runners-"
			if parts := strings.Split(example, "-"); len(parts) > 3 {
				fleet = "-" + parts[2] + "-"
			}
			return names[slices.IndexFunc(names, func(n string) bool { return strings.Contains(n, fleet) })]
		})
		word = exampleSize.ReplaceAllString(word, "runners=1")
		if exampleFile.MatchString(word) {
			word = filepath.Join(dir, word)
		}
		words[i] = word
	}
	line := strings.Join(words, " ")
	for _, flag := range []string{"-C ", "-e "} {
		if i := slices.Index(words, strings.TrimSpace(flag)); i >= 0 && i+1 < len(words) {
			words = slices.Delete(words, i, i+2)
		}
	}
	words = slices.DeleteFunc(words, func(word string) bool { return strings.HasPrefix(word, "--sandbox") })
	if changes.MatchString(strings.Join(words, " ")) && !strings.Contains(line, "--auto-approve") && !strings.Contains(line, ".json") {
		words = append(words, "--auto-approve")
	}
	return ranAt(w.t, w.place, words...)
}
