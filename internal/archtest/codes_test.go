package archtest

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/macfleet/macfleet/hosts"
	_ "github.com/macfleet/macfleet/internal/app"
	_ "github.com/macfleet/macfleet/internal/drift"
	_ "github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
	_ "github.com/macfleet/macfleet/steps"
)

var update = flag.Bool("update", false, "write docs/codes.md")

const codesHead = `# Codes

Every reason and every trouble that macfleet reports has a code. Codes are stable: scripts, alerts and ` + "`ignore`" + ` blocks can rely on them.
A code without a remedy names a difference that ` + "`macfleet apply`" + ` removes. A trouble's text and remedy name the host; this page has the general form.
Severities are those of [drift](drift.md); a code without one is never drift and appears only in plan or apply.

This page is generated from the declarations (` + "`plan.NewCode`" + `): ` + "`go test ./internal/archtest -run TestCodes -update`" + `.
`

// TestCodes keeps docs/codes.md equal to the declarations.
func TestCodes(t *testing.T) {
	t.Parallel()
	groups := make(map[string][]plan.Code)
	for _, c := range plan.Codes() {
		groups[groupOf(c)] = append(groups[groupOf(c)], c)
	}
	var b bytes.Buffer
	b.WriteString(codesHead)
	for _, g := range slices.Sorted(func(yield func(string) bool) {
		for g := range groups {
			if !yield(g) {
				return
			}
		}
	}) {
		fmt.Fprintf(&b, "\n## %s\n\n| code | severity | meaning | remedy |\n|---|---|---|---|\n", g)
		for _, c := range groups[g] {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c, cmp.Or(string(c.Severity()), "–"), cell(c.Meaning()), cmp.Or(cell(c.Remedy()), "–"))
		}
	}
	file := filepath.Join(root, "docs", "codes.md")
	if *update {
		must(t, os.WriteFile(file, b.Bytes(), 0o644))
	}
	if have, err := os.ReadFile(file); err != nil || !bytes.Equal(have, b.Bytes()) {
		t.Errorf("docs/codes.md differs from the declared codes (%v); regenerate it: go test ./internal/archtest -run TestCodes -update", err)
	}
}

// groupOf returns the heading for a code: its step, or its package.
func groupOf(c plan.Code) string {
	dir, file := path.Split(c.Home())
	dir = strings.TrimSuffix(dir, "/")
	switch step, own := strings.CutPrefix(dir, "steps/"); {
	case own:
		return "steps: " + step
	case dir == "steps":
		return "steps: " + file
	case dir == "internal/engine":
		return "apply"
	case dir == "internal/app":
		return "commands"
	default:
		return strings.TrimPrefix(dir, "internal/")
	}
}

// cell escapes characters that would end a cell or start a tag.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`).Replace(text)
}

// TestCodesAreAllSeen checks that each package with codes is linked into this test, since its codes
// would be missing from the page.
func TestCodesAreAllSeen(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, c := range plan.Codes() {
		seen[path.Dir(c.Home())] = true
	}
	for _, s := range sources(t) {
		text, err := os.ReadFile(filepath.Join(root, s.Name))
		must(t, err)
		if !s.Test && bytes.Contains(text, []byte("plan.NewCode(")) && !seen[s.Pkg] {
			t.Errorf("%s declares codes and is not imported by this test", s.Pkg)
		}
	}
}
