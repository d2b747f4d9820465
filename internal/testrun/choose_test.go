package main

import (
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/gosource"
)

// parsed returns files of a tree that does not exist, by name.
func parsed(t *testing.T, texts map[string]string) (files []gosource.File) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		set := token.NewFileSet()
		text := texts[name]
		if !strings.HasPrefix(text, "package ") {
			text = "package p\n" + text
		}
		f, err := parser.ParseFile(set, name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, gosource.File{Pkg: path.Dir(name), Name: name, Test: strings.HasSuffix(name, "_test.go"), AST: f, Set: set})
	}
	return files
}

const scripttest = `
import "os"
var Share = os.Getenv("MACFLEET_TEST_SHARD")
func Places() int { return places() }
func places() int { return len(Share) }
func Sampled() { _ = Share }
type Mac struct{}
func (Mac) Places() { Places() }
func Need() {}`

const importing = "import \"github.com/macfleet/macfleet/internal/scripttest\"\n"

// TestShared: a test takes a share through functions, methods, variables and other packages, whatever it
// is called.
func TestShared(t *testing.T) {
	t.Parallel()
	got := sharedTests(parsed(t, map[string]string{
		"internal/scripttest/share.go": scripttest,
		"a/a_test.go": importing + `
func TestDirect() { scripttest.Places() }
func TestThroughHelpers() { one() }
func one() { two() }
func two() { one(); scripttest.Places() }
func TestClosure() { each(func() { scripttest.Places() }) }
func each(f func()) { f() }
func TestMethod() { lab{}.everywhere() }
type lab struct{}
func (lab) everywhere() { scripttest.Places() }
func TestMethodOfAnother() { var m scripttest.Mac; m.Places() }
func TestVariable() { table[0]() }
var table = []func(){two}
func TestSampled() { scripttest.Sampled(); scripttest.Need() }
func TestNothing() { each(nil) }`,
		"b/b.go":      importing + "func Exported() { scripttest.Places() }",
		"b/b_test.go": "func TestOwn() { Exported() }",
		"c/c_test.go": `import other "github.com/macfleet/macfleet/b"
func TestOther() { other.Exported() }
func TestNothing() {}`,
		"d/d_test.go": `import "os"
var flag = os.Getenv("MACFLEET_TEST_SHARD")
func TestVariable() { _ = flag }`,
	}))
	want := map[string][]string{"a": {"TestDirect", "TestThroughHelpers", "TestClosure", "TestMethod", "TestMethodOfAnother", "TestVariable"}, "b": {"TestOwn"}, "c": {"TestOther"}, "d": {"TestVariable"}}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestRacing: a package is found by each way to start a goroutine, and by locks.
func TestRacing(t *testing.T) {
	t.Parallel()
	const test = "func TestX() {}"
	texts := map[string]string{"none/x.go": "func f() { go1() }\nfunc go1() {}", "none/x_test.go": test, "untested/x.go": "func f() { go f() }", "main/x.go": "package main\nfunc f() { go f() }", "main/x_test.go": test, "tests/x.go": "func f() {}", "tests/x_test.go": "func TestX() { go TestX() }", "only/x_test.go": "func TestX() { go TestX() }"}
	for name, text := range map[string]string{"statement": "go f()", "group": "var g group; g.Go(f)", "try": "g.TryGo(f)", "later": "time.AfterFunc(1, f)", "lock": "var mu sync.Mutex; mu.Lock()", "map": "var m sync.Map; _ = m", "once": "_ = sync.OnceValue(f)"} {
		texts[name+"/x.go"], texts[name+"/x_test.go"] = "func f() { "+text+" }", test
	}
	want := []string{"./group", "./later", "./lock", "./map", "./statement", "./tests", "./try"}
	if got := racing(parsed(t, texts)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestCached: Go may not reuse the result of a test that starts a program or a simulated Mac, itself or
// through a package.
func TestCached(t *testing.T) {
	t.Parallel()
	const own = `import _ "github.com/macfleet/macfleet/`
	yes, no := cached(parsed(t, map[string]string{
		"pure/x_test.go": `import _ "os"`, "starts/x_test.go": `import _ "os/exec"`, "helper/x.go": `import _ "os/exec"`, "helped/x_test.go": own + `helper"`,
		"internal/sandbox/mac/x.go": "", "world/x.go": own + `internal/sandbox/mac"`, "worlds/x.go": own + `world"`, "worlds/x_test.go": "", "untested/x.go": "",
		"beside/x_test.go": own + `tests"`, "tests/x.go": "", "tests/x_test.go": `import _ "os/exec"`,
	}))
	if !slices.Equal(yes, []string{"./beside", "./pure"}) || !slices.Equal(no, []string{"./helped", "./starts", "./tests", "./worlds"}) {
		t.Errorf("cached %v, not %v", yes, no)
	}
}

// TestTree: of this tree, every package with tests is either cached or not, and the tests that are killed
// are found under names that say nothing of it.
func TestTree(t *testing.T) {
	t.Parallel()
	files, err := gosource.Read("../..")
	if err != nil {
		t.Fatal(err)
	}
	yes, no := cached(files)
	list := exec.CommandContext(t.Context(), "go", "list", "-find", "-f", `{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}`, "./...")
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for dir := range strings.FieldsSeq(string(out)) {
		want = append(want, "."+strings.TrimPrefix(dir, strings.TrimSuffix(here, "/internal/testrun")))
	}
	all := append(slices.Clone(yes), no...)
	slices.Sort(all)
	slices.Sort(want)
	if !slices.Equal(all, want) || len(yes) == 0 {
		t.Errorf("%d packages are cached and %d are not; go lists %d", len(yes), len(no), len(want))
	}
	if tests := sharedTests(files); !slices.Contains(tests["hosts"], "TestUndoArmKilled") || !slices.Contains(tests["steps/tartkubelet"], "TestTornBundle") || len(tests["internal/testrun"]) > 0 {
		t.Errorf("shared: %v", tests)
	}
}
