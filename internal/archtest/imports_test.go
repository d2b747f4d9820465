package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/macfleet/macfleet/"

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
var pure = map[string]bool{"fleet": true, "fleet/inventory": true, "plan": true, "steps": true, "steps/kit": true, "steps/autologin": true, "steps/vmfirewall": true, "steps/tartkubelet": true,
	"steps/kcpassword": true, "steps/launchd": true, "steps/pf": true, "internal/rollout": true, "internal/drift": true, "internal/doctor": true, "internal/adopt": true}

var impure = []string{"os", "os/exec", "net", "net/http", "context", "math/rand", "math/rand/v2", "crypto/rand", "syscall"}

// source is one Go file.
type source struct {
	pkg, name string
	test      bool
	file      *ast.File
	fset      *token.FileSet
}

// sources returns every Go file of the tree, parsed once for all tests.
func sources(t *testing.T) []source {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var parsed = sync.OnceValues(func() ([]source, error) {
	var out []source
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && d.Name() != "..") {
			return filepath.SkipDir
		}
		if d.IsDir() && name != root && isModule(name) {
			return filepath.SkipDir // a separate module has its own imports
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		out = append(out, source{pkg: path.Dir(filepath.ToSlash(rel)), name: filepath.ToSlash(rel),
			test: strings.HasSuffix(name, "_test.go"), file: f, fset: fset})
		return nil
	})
	return out, err
})

// isModule reports whether a folder is a separate module.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

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
		if s.pkg != "plan" || s.test {
			continue
		}
		read++
		text, err := os.ReadFile(filepath.Join(root, s.name))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			line = strings.ToLower(strings.ReplaceAll(line, module, ""))
			isImport := strings.HasPrefix(strings.TrimSpace(line), `"github.com/`)
			for _, vendor := range vendors {
				if !isImport && strings.Contains(line, vendor) {
					t.Errorf("%s:%d names %s: %s", s.name, n, vendor, strings.TrimSpace(line))
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
		rules, known := rulesFor(allowed, s.pkg)
		if !known {
			t.Errorf("%s: package %s has no row in the table of docs/architecture.md", s.name, s.pkg)
			continue
		}
		for _, spec := range s.file.Imports {
			checkImport(t, s, rules, spec)
		}
	}
}

func checkImport(t *testing.T, s source, rules []string, spec *ast.ImportSpec) {
	t.Helper()
	imported, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		t.Fatal(err)
	}
	at := s.fset.Position(spec.Pos())
	own, isOwn := strings.CutPrefix(imported, module)
	simulator := strings.HasPrefix(s.pkg, "internal/sandbox")
	switch {
	case isOwn && (!s.test || simulator) && !covers(rules, own):
		t.Errorf("%s: %s must not import %s", at, s.pkg, own)
	case !isOwn && !s.test && pure[s.pkg] && slices.Contains(impure, imported):
		t.Errorf("%s: %s does no I/O and takes no clock, randomness or context, so it must not import %s", at, s.pkg, imported)
	}
	if s.test || isOwn {
		return
	}
	for lib, only := range reserved {
		if strings.HasPrefix(imported, lib) && !covers(only, s.pkg) {
			t.Errorf("%s: only %s may import %s", at, strings.Join(only, ", "), imported)
		}
	}
}

// TestNoClockInPurePackages finds calls such as time.Now, which the imports do not show.
func TestNoClockInPurePackages(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.test || !pure[s.pkg] {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After"}, sel.Sel.Name) {
				t.Errorf("%s: %s takes no clock", s.fset.Position(n.Pos()), s.pkg)
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
		if s.test || slices.Contains([]string{"cmd/macfleet/main.go", "internal/bench/main.go", "internal/picture/main.go"}, s.name) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && (x.Name == "os" && sel.Sel.Name == "Exit" || x.Name == "log" && strings.HasPrefix(sel.Sel.Name, "Fatal")) {
				t.Errorf("%s: only main exits", s.fset.Position(n.Pos()))
			}
			return true
		})
	}
}

// TestOnlyTestsMakeCheapSeals keeps secret.CheapSeals out of the program.
func TestOnlyTestsMakeCheapSeals(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "CheapSeals" {
				t.Errorf("%s: only tests may make seals that protect nothing", s.fset.Position(n.Pos()))
			}
			return true
		})
	}
}
