package main

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/internal/gosource"
)

// shardVariable chooses a share. A test takes one when its code reaches this text, which is in two parts
// here, so that this package's tests do not.
const shardVariable = "MACFLEET_TEST_" + "SHARD"

// sampled skips whole tests under -short. It takes no share.
const sampled = "internal/scripttest.Sampled"

// shared returns the flag and the packages of the tests that take a share.
func shared(files []gosource.File) []string {
	tests := sharedTests(files)
	var names, dirs []string
	for _, dir := range slices.Sorted(maps.Keys(tests)) {
		names, dirs = append(names, tests[dir]...), append(dirs, "./"+dir)
	}
	slices.Sort(names)
	return append([]string{"-run", "^(" + strings.Join(slices.Compact(names), "|") + ")$"}, dirs...)
}

// sharedTests returns the tests whose code reaches the variable, by package. It goes by names, not by
// types: it rather finds a test too much. A method is followed in its own package, and in those that
// import it.
func sharedTests(files []gosource.File) map[string][]string {
	users := make(map[string][]string) // of each name: the declarations that name it
	for _, f := range files {
		for _, d := range f.AST.Decls {
			for _, used := range named(f, d) {
				users[used] = append(users[used], declared(f.Pkg, d)...)
			}
		}
	}
	reaching := map[string]bool{sampled: true}
	for next := []string{shardVariable}; len(next) > 0; next = next[1:] {
		for _, user := range users[next[0]] {
			if !reaching[user] {
				reaching[user] = true
				next = append(next, user)
			}
		}
	}
	tests := make(map[string][]string)
	for _, f := range files {
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.Test && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") && reaching[f.Pkg+"."+fn.Name.Name] {
				tests[f.Pkg] = append(tests[f.Pkg], fn.Name.Name)
			}
		}
	}
	return tests
}

// declared returns what a declaration declares: package.name, or package..name of a method.
func declared(pkg string, d ast.Decl) (keys []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			pkg += "."
		}
		keys = append(keys, pkg+"."+d.Name.Name)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok {
				for _, name := range v.Names {
					keys = append(keys, pkg+"."+name.Name)
				}
			}
		}
	}
	return keys
}

// named returns what a declaration names: declarations and methods of this and of other packages, and the
// variable.
func named(f gosource.File, d ast.Decl) (keys []string) {
	imports := f.Imports()
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			keys = append(keys, f.Pkg+"."+n.Name)
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && imports[x.Name] != "" {
				keys = append(keys, imports[x.Name]+"."+n.Sel.Name)
				return false
			}
			keys = append(keys, f.Pkg+".."+n.Sel.Name)
			for _, imported := range imports {
				keys = append(keys, imported+".."+n.Sel.Name)
			}
		case *ast.BasicLit:
			if n.Value == `"`+shardVariable+`"` {
				keys = append(keys, shardVariable)
			}
		}
		return true
	})
	return keys
}

// racing returns the packages whose code or tests start goroutines, or guard what several of them use.
// Left out are programs, as make race runs some scripts of cmd/macfleet, and packages without code.
func racing(files []gosource.File) []string {
	concurrent, code := make(map[string]bool), make(map[string]bool)
	for _, f := range files {
		concurrent[f.Pkg] = concurrent[f.Pkg] || isConcurrent(f.AST)
		code[f.Pkg] = code[f.Pkg] || !f.Test && f.AST.Name.Name != "main" && slices.ContainsFunc(f.AST.Decls, func(d ast.Decl) bool { _, is := d.(*ast.FuncDecl); return is })
	}
	return withTests(files, func(pkg string) bool { return concurrent[pkg] && code[pkg] })
}

// isConcurrent finds a go statement and its like: a WaitGroup's or an errgroup's Go, AfterFunc, and what
// guards values for the goroutines of others, such as net/http's.
func isConcurrent(f *ast.File) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			guards := ok && (x.Name == "atomic" || x.Name == "sync" && !strings.HasPrefix(n.Sel.Name, "Once"))
			found = found || guards || slices.Contains([]string{"Go", "TryGo", "AfterFunc"}, n.Sel.Name)
		}
		return !found
	})
	return found
}

// cached divides the packages with tests. Go may reuse the results of those that start no program and
// have no simulated Mac: of a program it does not know what it reads, and of a simulated Mac it would
// note millions of files.
func cached(files []gosource.File) (yes, no []string) {
	imports, tested := make(map[string][]string), make(map[string][]string)
	for _, f := range files {
		all := slices.Collect(maps.Values(f.Imports()))
		if f.Test {
			tested[f.Pkg] = append(tested[f.Pkg], all...)
		} else {
			imports[f.Pkg] = append(imports[f.Pkg], all...)
		}
	}
	never := make(map[string]bool)
	for pkg := range tested {
		seen := make(map[string]bool)
		var visit func(string)
		visit = func(p string) {
			if seen[p] {
				return
			}
			seen[p] = true
			for _, next := range imports[p] {
				visit(next)
			}
		}
		visit(pkg)
		for _, p := range tested[pkg] {
			visit(p)
		}
		for p := range seen {
			never[pkg] = never[pkg] || p == "os/exec" || p == "internal/sandbox" || strings.HasPrefix(p, "internal/sandbox/")
		}
	}
	return withTests(files, func(pkg string) bool { return !never[pkg] }), withTests(files, func(pkg string) bool { return never[pkg] })
}

// withTests returns the packages with tests that are chosen, as arguments of go.
func withTests(files []gosource.File, chosen func(pkg string) bool) (out []string) {
	for _, f := range files {
		if f.Test && chosen(f.Pkg) {
			out = append(out, "./"+path.Clean(f.Pkg))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
