// Package gosource parses the Go files of the tree, for the tests of its rules and for the programs
// that choose tests by their source.
package gosource

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Module is the beginning of the import path of each package.
const Module = "github.com/macfleet/macfleet/"

// File is one Go file.
type File struct {
	Pkg, Name string // the folder and the file, relative to the root
	Test      bool
	AST       *ast.File
	Set       *token.FileSet
}

// Read returns the Go files below a root, except those of other modules.
func Read(root string) ([]File, error) {
	var out []File
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || isModule(name)) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		out = append(out, File{Pkg: path.Dir(rel), Name: rel, Test: strings.HasSuffix(rel, "_test.go"), AST: f, Set: set})
		return nil
	})
	return out, err
}

// isModule reports whether a folder is a separate module, which has its own imports.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// Imports returns what a file imports, by the name that it has in the file. Packages of the tree are
// their folders.
func (f File) Imports() map[string]string {
	out := make(map[string]string)
	for _, spec := range f.AST.Imports {
		imported := strings.TrimPrefix(strings.Trim(spec.Path.Value, `"`), Module)
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		out[name] = imported
	}
	return out
}
