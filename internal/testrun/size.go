package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"github.com/macfleet/macfleet/internal/gosource"
)

// size is one number of the source that .ci/budget limits.
type size struct {
	name, unit string
	is         int
	what       string // where the largest is
}

// sizes measures a tree: the lines of each package that are not blank, all lines of tests, and of the
// product the widest struct, the type with the most methods, and the function with the most branches.
func sizes(root string, files []gosource.File) (all []size, err error) {
	lines, methods := make(map[string]int), make(map[string]int)
	fields, most, branched := size{name: "struct", unit: "fields"}, size{name: "type", unit: "methods"}, size{name: "function", unit: "branches"}
	larger := func(s *size, is int, what string) {
		if is > s.is {
			s.is, s.what = is, what
		}
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f.Name)))
		if err != nil {
			return nil, err
		}
		if f.Test {
			lines["tests"] += bytes.Count(text, []byte("\n"))
			continue
		}
		lines[f.Pkg] += written(string(text))
		ast.Inspect(f.AST, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					larger(&fields, s.Fields.NumFields(), f.Pkg+"."+n.Name.Name)
				}
			case *ast.FuncDecl:
				larger(&branched, branches(n), f.Pkg+"."+n.Name.Name)
				if n.Recv != nil {
					of := f.Pkg + "." + receiver(n.Recv.List[0].Type)
					methods[of]++
					larger(&most, methods[of], of)
				}
			}
			return true
		})
	}
	for name, n := range lines {
		all = append(all, size{name: name, unit: "lines", is: n, what: name})
	}
	return append(all, fields, most, branched), nil
}

// over says what exceeds its limit, or has none.
func over(all []size, limits budgets) (out []string) {
	known := make(map[string]bool)
	for _, s := range all {
		known[s.unit+s.name] = true
		if limit := limits.limit(s.unit, s.name); float64(s.is) > limit {
			out = append(out, fmt.Sprintf("%s has %d %s: .ci/budget allows %.0f", s.what, s.is, s.unit, limit))
		}
	}
	for _, unit := range []string{"lines", "fields", "methods", "branches"} {
		for name := range limits[unit] {
			if !known[unit+name] && name != "*" {
				out = append(out, fmt.Sprintf(".ci/budget limits the %s of %s, which does not exist", unit, name))
			}
		}
	}
	return out
}

// written counts the lines that are not blank.
func written(text string) (n int) {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			n++
		}
	}
	return n
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// branches is the cyclomatic complexity of a function.
func branches(f *ast.FuncDecl) int {
	n := 1
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if node.List != nil {
				n++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}
