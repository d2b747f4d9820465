package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/scripttest"
)

// traced runs every macfleet of the jobs under strace, if it works on this machine. It returns
// a function that reads the traces: files of the hub's folder that were opened outside the
// repository, and addresses that were connected to.
func (h *hub) traced() func() []string {
	h.t.Helper()
	if err := exec.Command("strace", "-f", "-qq", "-o", os.DevNull, "true").Run(); err != nil {
		if os.Getenv("CI") != "" {
			h.t.Fatalf("strace does not work here: %v", err)
		}
		h.t.Logf("without strace, which does not work here: %v", err)
		return func() []string { return nil }
	}
	traces, bin := filepath.Join(h.dir, "traces"), filepath.Join(h.dir, "bin")
	must(h.t, os.Mkdir(traces, 0o755))
	must(h.t, os.Symlink(testBinary(h.t), filepath.Join(traces, "macfleet")))
	wrapper := fmt.Sprintf("#!/bin/sh\nexec strace -f -qq -o '%s/'$$ -e trace=connect,sendto,open,openat '%s/macfleet' \"$@\"\n", traces, traces)
	must(h.t, os.WriteFile(filepath.Join(traces, "wrapper"), []byte(wrapper), 0o755))
	must(h.t, os.WriteFile(filepath.Join(bin, "go"), []byte("#!/bin/sh\nmkdir -p \"$GOBIN\" && cp '"+traces+"/wrapper' \"$GOBIN/macfleet\"\n"), 0o755))
	opened := regexp.MustCompile(`open(?:at)?\((?:(?:AT_FDCWD|\d+)(?:<[^>]*>)?, )?"([^"]*)"`)
	return func() []string { return h.outsiders(traces, opened) }
}

// outsiders reads the traces and removes them.
func (h *hub) outsiders(traces string, opened *regexp.Regexp) []string {
	h.t.Helper()
	files, err := filepath.Glob(filepath.Join(traces, "[0-9]*"))
	must(h.t, err)
	if len(files) == 0 {
		h.t.Fatal("nothing was traced")
	}
	var out []string
	seen := false
	for _, f := range files {
		text, err := os.ReadFile(f)
		must(h.t, err)
		must(h.t, os.Remove(f))
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "AF_INET") {
				out = append(out, line)
			}
			m := opened.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			path := m[1]
			seen = seen || strings.HasSuffix(path, ".fleet.hcl")
			named := strings.HasPrefix(path, h.dir+"/") && path != h.repo && !strings.HasPrefix(path, h.repo+"/")
			if named || strings.Contains(path, "..") || strings.HasPrefix(path, "/etc/resolv") || strings.HasPrefix(path, "/etc/hosts") {
				out = append(out, line)
			}
		}
	}
	if !seen {
		h.t.Error("the traces contain no file of the configuration")
	}
	return out
}

// TestTraces checks the search in the traces.
func TestTraces(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	outsiders := h.traced()
	if _, err := os.Stat(filepath.Join(h.dir, "traces")); err != nil {
		scripttest.Lacking(t, "strace does not work here")
	}
	must(t, os.WriteFile(filepath.Join(h.dir, "key"), []byte("a key"), 0o600))
	h.edit("fleets.fleet.hcl", "dist/tart-kubelet-darwin-arm64", "../key")
	w := readWorkflow(t, "pull-request.yml")
	h.edit("main.fleet.hcl", "k8s://macfleet/fleet-ssh/id_ed25519", "env://NOBODY")
	for n, s := range w.Jobs["plan"].Steps {
		w.Jobs["plan"].Steps[n].Run = strings.ReplaceAll(s.Run, " --no-secrets", "")
	}
	h.wants(h.job(w, "observed", nil), "")
	h.context["needs.observed.result"] = "success"
	h.wants(h.job(w, "plan", nil), "validate")
	has(t, strings.Join(outsiders(), ""), "../key", "found")
}
