package schematest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// source is what the source files of a package say about its types.
type source struct {
	comments map[string]string   // of fields, by TYPE.FIELD
	values   map[string][]string // of string constants, by type
	counted  map[string]int      // how many constants exist, by type
}

var sources sync.Map // by import path

const module = "github.com/macfleet/macfleet/"

// sourceOf reads a package of this module.
func sourceOf(path string) (source, error) {
	if s, ok := sources.Load(path); ok {
		return s.(source), nil
	}
	dir, ok := strings.CutPrefix(path, module)
	if !ok {
		return source{}, fmt.Errorf("%s is not a package of this module", path)
	}
	root := "."
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		root = filepath.Join(root, "..")
	}
	s := source{comments: make(map[string]string), values: make(map[string][]string), counted: make(map[string]int)}
	names, err := fs.Glob(os.DirFS(filepath.Join(root, dir)), "*.go")
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, dir, name), nil, parser.ParseComments)
		if err != nil {
			return s, err
		}
		s.read(f)
	}
	sources.Store(path, s)
	return s, err
}

func (s source) read(f *ast.File) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		var last string // type of the constant before, which constants without a type share
		for _, spec := range g.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if of, ok := spec.Type.(*ast.StructType); ok {
					s.fields(spec.Name.Name, of)
				}
			case *ast.ValueSpec:
				if g.Tok == token.CONST {
					last = s.constant(spec, last)
				}
			}
		}
	}
}

func (s source) constant(spec *ast.ValueSpec, last string) string {
	if id, ok := spec.Type.(*ast.Ident); ok {
		last = id.Name
	} else if len(spec.Values) > 0 {
		return "" // of another type
	}
	s.counted[last] += len(spec.Names)
	for _, v := range spec.Values {
		if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				s.values[last] = append(s.values[last], text)
			}
		}
	}
	return last
}

func (s source) fields(name string, of *ast.StructType) {
	for _, f := range of.Fields.List {
		text := f.Comment.Text()
		if text == "" {
			text = f.Doc.Text()
		}
		for _, n := range f.Names {
			s.comments[name+"."+n.Name] = strings.Join(strings.Fields(text), " ")
		}
	}
}
