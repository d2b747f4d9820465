package drift_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

var update = flag.Bool("update", false, "write the table of docs/drift.md")

// TestEveryCodeIsJudged walks the codes of docs/incidents.md, and every text in the
// sources of the steps, the plan and the hosts that looks like a code.
func TestEveryCodeIsJudged(t *testing.T) {
	t.Parallel()
	codes := incidentCodes(t)
	for _, dir := range []string{"../../steps", "../../plan", "../../hosts", "../engine"} {
		codes = append(codes, sourceCodes(t, dir)...)
	}
	if len(codes) < 150 {
		t.Fatalf("only %d codes were found", len(codes))
	}
	judged := drift.Codes()
	for _, c := range codes {
		if !slices.Contains(judged, c) && !slices.Contains(others(), c) {
			t.Errorf("how bad is %s? It belongs into internal/drift/severity.go", c)
		}
	}
	for _, c := range others() {
		if slices.Contains(judged, c) {
			t.Errorf("%s is judged and said to be no code of drift", c)
		}
	}
}

// others look like codes and are none of drift: names of probes and scripts, kinds of
// actions, and codes of what is wanted, which only plan and apply say.
func others() []string {
	return strings.Fields(`auto-login login-password provider-id delete-node auto-logout login-screensaver dummynet-anchor known-hosts os-version
		acme-sample 00000000-0000-4000-8000-000000000000 upload-begins upload-ends
		artifact-fetch artifact-look artifact-prune artifact-push claim-create claim-drop job-drop job-gui job-look job-running job-start marker-write password-check
		undo-arm undo-armed undo-change undo-confirm undo-drop undo-now undo-state wrong-artifact download-failed
		not-approved after-unapproved lock-lost
		claim-unfinished config-changed first-setup too-few-replicas too-many-replicas pool-too-small release-not-possible replace-not-possible
		outside-window too-many-disrupted too-many-hosts too-many-wipes dirty-pool-host server-not-ready wrong-os wrong-type`)
}

func incidentCodes(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/incidents.md")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || !strings.Contains(cells[1], "`") {
			continue
		}
		for _, m := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(cells[3], -1) {
			out = append(out, m[1])
		}
	}
	return out
}

// sourceCodes returns the texts of a package that look like codes and are no name of
// a script.
func sourceCodes(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources in %s: %v", dir, err)
	}
	looks := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)+$`)
	var out []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, _ := strconv.Unquote(lit.Value)
			if _, err := os.Stat(filepath.Join(dir, "scripts", text+".sh")); looks.MatchString(text) && err != nil {
				out = append(out, text)
			}
			return true
		})
	}
	return out
}

// TestSeverityTable keeps docs/drift.md equal to the source, and each code judged
// once.
func TestSeverityTable(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- severities -->\n", "<!-- end of severities -->\n"
	text, err := os.ReadFile("../../docs/drift.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	have, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/drift.md has no table of severities")
	}
	want := "\n| severity | codes |\n|---|---|\n"
	n := 0
	for _, s := range drift.Severities() {
		var codes []string
		for _, c := range drift.Codes() {
			if drift.SeverityOf(c) == s {
				codes = append(codes, "`"+c+"`")
			}
		}
		n += len(codes)
		want += "| " + string(s) + " | " + strings.Join(codes, ", ") + " |\n"
	}
	want += "\n"
	if *update {
		if err := os.WriteFile("../../docs/drift.md", []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("docs/drift.md (-want +got):\n%s", diff)
	}
	if n != len(drift.Codes()) || n != len(drift.Judged()) {
		t.Errorf("%d codes in the table, %d judged, %d with repetitions", n, len(drift.Codes()), len(drift.Judged()))
	}
	if drift.SeverityOf("a-code-of-tomorrow") != drift.Warning {
		t.Error("a code that nobody has judged is no warning")
	}
}

// TestParts compares what an ignore block may name with the kinds that plans have.
func TestParts(t *testing.T) {
	t.Parallel()
	for _, part := range fleet.DriftParts() {
		if k := plan.Kind(part); k.OfStep() || k == plan.ClaimServer || k == plan.ReleaseServer {
			t.Errorf("%s cannot drift", part)
		}
	}
	for _, k := range []plan.Kind{plan.RenameServer, plan.CreateMarker, plan.IdentifyHost, plan.SetProviderID, plan.ReplaceNode, plan.DeleteNode, plan.RevokeHost, plan.ReleasePods, plan.KeepObject} {
		if !slices.Contains(fleet.DriftParts(), string(k)) {
			t.Errorf("an ignore block cannot name %s", k)
		}
	}
	for _, s := range steps.For(fleet.Host{}) {
		if slices.Contains(fleet.DriftParts(), string(s.ID())) {
			t.Errorf("%s is a step", s.ID())
		}
	}
}
