package archtest

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/macfleet/macfleet/internal/gosource"
)

// root is the repository's root, relative to this package.
const root = "../.."

// reserved lists the only packages that may import a library.
var reserved = map[string][]string{
	"github.com/skeema/knownhosts":            {"hosts"},
	"golang.org/x/crypto/ssh":                 {"hosts", "internal/sandbox/...", "internal/bench"},
	"github.com/scaleway/scaleway-sdk-go":     {"providers/scaleway", "internal/sandbox/cloud"},
	"github.com/google/go-github":             {"providers/github"},
	"github.com/golang-jwt/jwt":               {"providers/github"},
	"k8s.io/":                                 {"providers/kubernetes", "internal/sandbox/kube"},
	"github.com/charmbracelet/":               {"internal/view"},
	"github.com/hashicorp/hcl":                {"fleet/load", "internal/view"},
	"github.com/spf13/cobra":                  {"cmd/macfleet"},
	"github.com/santhosh-tekuri/jsonschema":   {"internal/schematest"},
	"mvdan.cc/sh/v3":                          {"internal/scriptlint", "internal/sandbox/..."},
	"github.com/hashicorp/go-retryablehttp":   {"providers/transport"},
	"github.com/scaleway/scaleway-sdk-go/scw": {"providers/scaleway"},
}

// pure packages do no I/O and take no clock, randomness or context.
var pure = map[string]bool{"fleet": true, "fleet/inventory": true, "plan": true, "plan/ledger": true, "plan/lists": true, "steps": true, "steps/kit": true, "steps/autologin": true, "steps/vmfirewall": true, "steps/tartkubelet": true,
	"steps/kcpassword": true, "steps/launchd": true, "steps/pf": true, "internal/rollout": true, "internal/drift": true, "internal/doctor": true, "internal/adopt": true}

var impure = []string{"os", "os/exec", "net", "net/http", "context", "math/rand", "math/rand/v2", "crypto/rand", "syscall"}

// sources returns every Go file of the tree, parsed once for all tests.
func sources(t *testing.T) []gosource.File {
	t.Helper()
	all, err := parsed()
	must(t, err)
	return all
}

var parsed = sync.OnceValues(func() ([]gosource.File, error) { return gosource.Read(root) })

func covers(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if base, ok := strings.CutSuffix(p, "/..."); ok {
			return pkg == base || strings.HasPrefix(pkg, base+"/")
		}
		return pkg == p
	})
}

// rulesFor returns the packages of macfleet that a package may import, by the table. A row that ends
// in "/..." covers everything below it.
func rulesFor(allowed map[string][]string, pkg string) ([]string, bool) {
	if r, ok := allowed[pkg]; ok {
		return r, true
	}
	for p, r := range allowed {
		if covers([]string{p}, pkg) {
			return r, true
		}
	}
	return nil, false
}

// vendors are unknown to package plan: their names come from the configuration.
var vendors = []string{"scaleway", "github", "tailscale"}

// TestPlanNamesNoVendor reads all files except tests, without their imports.
func TestPlanNamesNoVendor(t *testing.T) {
	t.Parallel()
	read := 0
	for _, s := range sources(t) {
		if s.Pkg != "plan" || s.Test {
			continue
		}
		read++
		text, err := os.ReadFile(filepath.Join(root, s.Name))
		must(t, err)
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			line = strings.ToLower(strings.ReplaceAll(line, gosource.Module, ""))
			isImport := strings.HasPrefix(strings.TrimSpace(line), `"github.com/`)
			for _, vendor := range vendors {
				if !isImport && strings.Contains(line, vendor) {
					t.Errorf("%s:%d names %s: %s", s.Name, n, vendor, strings.TrimSpace(line))
				}
			}
		}
	}
	if read == 0 {
		t.Error("package plan has no sources")
	}
}

func TestImportDirections(t *testing.T) {
	t.Parallel()
	allowed := documented(t)
	for _, s := range sources(t) {
		rules, known := rulesFor(allowed, s.Pkg)
		if !known {
			t.Errorf("%s: package %s has no row in the table of docs/architecture.md", s.Name, s.Pkg)
			continue
		}
		for _, spec := range s.AST.Imports {
			checkImport(t, s, rules, spec)
		}
	}
}

func checkImport(t *testing.T, s gosource.File, rules []string, spec *ast.ImportSpec) {
	t.Helper()
	imported, err := strconv.Unquote(spec.Path.Value)
	must(t, err)
	at := s.Set.Position(spec.Pos())
	own, isOwn := strings.CutPrefix(imported, gosource.Module)
	simulator := strings.HasPrefix(s.Pkg, "internal/sandbox")
	switch {
	case isOwn && (!s.Test || simulator) && !covers(rules, own):
		t.Errorf("%s: %s must not import %s", at, s.Pkg, own)
	case !isOwn && !s.Test && pure[s.Pkg] && slices.Contains(impure, imported):
		t.Errorf("%s: %s does no I/O and takes no clock, randomness or context, so it must not import %s", at, s.Pkg, imported)
	}
	if s.Test || isOwn {
		return
	}
	for lib, only := range reserved {
		if strings.HasPrefix(imported, lib) && !covers(only, s.Pkg) {
			t.Errorf("%s: only %s may import %s", at, strings.Join(only, ", "), imported)
		}
	}
}

// TestNoClockInPurePackages finds calls such as time.Now, which the imports do not show.
func TestNoClockInPurePackages(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.Test || !pure[s.Pkg] {
			continue
		}
		ast.Inspect(s.AST, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After"}, sel.Sel.Name) {
				t.Errorf("%s: %s takes no clock", s.Set.Position(n.Pos()), s.Pkg)
			}
			return true
		})
	}
}

// TestOnlyMainExits allows os.Exit and log.Fatal only in the main.go of a program, where they skip no
// deferred calls.
func TestOnlyMainExits(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.Test || s.AST.Name.Name == "main" && path.Base(s.Name) == "main.go" {
			continue
		}
		ast.Inspect(s.AST, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && (x.Name == "os" && sel.Sel.Name == "Exit" || x.Name == "log" && strings.HasPrefix(sel.Sel.Name, "Fatal")) {
				t.Errorf("%s: only main exits", s.Set.Position(n.Pos()))
			}
			return true
		})
	}
}

// TestOnlyTestsMakeCheapSeals keeps secret.CheapSeals out of the program.
func TestOnlyTestsMakeCheapSeals(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.Test {
			continue
		}
		ast.Inspect(s.AST, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "CheapSeals" {
				t.Errorf("%s: only tests may make seals that protect nothing", s.Set.Position(n.Pos()))
			}
			return true
		})
	}
}
