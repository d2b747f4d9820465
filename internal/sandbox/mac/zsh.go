package mac

import (
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// asZsh converts a tree so that the interpreter, a bash, treats it as zsh would, and refuses what it
// cannot convert.
func asZsh(file *syntax.File) (err error) {
	refuse := func(what string) {
		if err == nil {
			err = errors.New("not modelled: " + what)
		}
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.CallExpr:
			for _, word := range node.Args {
				if !oneWord(word) {
					refuse("an unquoted pattern in zsh, which must have a match")
				}
			}
		case *syntax.BinaryCmd:
			if piped := node.Op == syntax.Pipe || node.Op == syntax.PipeAll; piped && readsElsewhere(node.Y) {
				refuse("an input besides a pipe, both of which zsh reads")
			}
		}
		return err == nil
	})
	return err
}

// oneWord prevents the values in a word from being split, as zsh does, and reports whether the word
// contains no pattern. (An empty value without quotes is a word here, and in zsh none.)
func oneWord(word *syntax.Word) bool {
	for i, part := range word.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			// A single bracket is the program of that name.
			if strings.ContainsAny(part.Value, "*?") || strings.Contains(part.Value, "[") && part.Value != "[" {
				return false
			}
		case *syntax.ParamExp:
			if part.Param != nil && syntax.ValidName(part.Param.Value) {
				word.Parts[i] = &syntax.DblQuoted{Left: part.Pos(), Right: part.End(), Parts: []syntax.WordPart{part}}
			}
		}
	}
	return true
}

// readsElsewhere reports whether a command has its own input.
func readsElsewhere(stmt *syntax.Stmt) bool {
	for _, r := range stmt.Redirs {
		switch r.Op {
		case syntax.RdrIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			return true
		}
	}
	return false
}
