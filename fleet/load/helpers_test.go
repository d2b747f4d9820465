package load

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"pgregory.net/rapid"
)

// directory makes a file system of names and contents.
func directory(files map[string]string) fs.FS {
	fsys := fstest.MapFS{}
	for name, content := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return fsys
}

// one makes a directory of one file.
func one(content string) fs.FS { return directory(map[string]string{"main.fleet.hcl": content}) }

// base is the least that every configuration has.
const base = `
macfleet {
  name = "acme"
}
scaleway {
  zones       = ["fr-par-1"]
  pool_prefix = "pool-acme-"
}
ssh {
  private_key = secret("k8s://macfleet/fleet-ssh/id_ed25519")
}
`

// small is base with one fleet.
const small = base + `
defaults {
  os = "Tahoe"
  power {}
}
fleet "macos" {
  group "m2" {
    type     = "M2-L"
    replicas = 2
  }
}
`

// rendered prints diagnostics one after the other, with the source.
func rendered(r Result, diags hcl.Diagnostics) string {
	var b strings.Builder
	for _, d := range diags {
		kind := "error"
		if d.Severity == hcl.DiagWarning {
			kind = "warning"
		}
		fmt.Fprintf(&b, "%s: %s\n  %s\n", kind, d.Summary, d.Detail)
		if d.Subject == nil {
			continue
		}
		fmt.Fprintf(&b, "  %s:%d,%d: %s\n", d.Subject.Filename, d.Subject.Start.Line, d.Subject.Start.Column, sourceLine(r, *d.Subject))
	}
	return b.String()
}

func sourceLine(r Result, at hcl.Range) string {
	file := r.Files[at.Filename]
	if file == nil {
		return "(no source)"
	}
	lines := strings.Split(string(file.Bytes), "\n")
	if at.Start.Line > len(lines) {
		return "(past the end)"
	}
	return strings.TrimSpace(lines[at.Start.Line-1])
}

// mustLoad loads a configuration that has no fault.
func mustLoad(t rapid.TB, fsys fs.FS, opts Options) Result {
	t.Helper()
	r, diags := Dir(fsys, opts)
	if diags.HasErrors() || r.Config == nil {
		t.Fatalf("faults:\n%s", rendered(r, diags))
	}
	return r
}

// equal compares.
func equal[T any](t rapid.TB, what string, want, got T, opts ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// refused loads a directory with one fault.
func refused(t *testing.T, fsys fs.FS, summary, detail string) *hcl.Diagnostic {
	t.Helper()
	r, diags := Dir(fsys, Options{})
	if r.Config != nil || len(diags) != 1 || diags[0].Summary != summary || !strings.Contains(diags[0].Detail, detail) {
		t.Fatalf("config %v, diagnostics %v; want %q with %q", r.Config, diags, summary, detail)
	}
	return diags[0]
}
