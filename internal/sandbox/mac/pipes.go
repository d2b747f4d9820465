package mac

import (
	"errors"

	"mvdan.cc/sh/v3/syntax"
)

// endPipesApart makes every pipe's last command a subshell. The interpreter runs it in the shell
// itself, as zsh does; in bash and dash a variable that it sets is lost, and its exit ends nothing
// else.
func endPipesApart(file *syntax.File) {
	syntax.Walk(file, func(node syntax.Node) bool {
		pipe, ok := node.(*syntax.BinaryCmd)
		if !ok || pipe.Op != syntax.Pipe && pipe.Op != syntax.PipeAll {
			return true
		}
		last := pipe.Y
		if _, apart := last.Cmd.(*syntax.Subshell); apart {
			return true
		}
		pipe.Y = &syntax.Stmt{Position: last.Pos(), Cmd: &syntax.Subshell{Lparen: last.Pos(), Rparen: last.End(), Stmts: []*syntax.Stmt{last}}}
		return true
	})
}

// trapsApart refuses a trap in a subshell: the interpreter runs only those of the shell itself.
func trapsApart(file *syntax.File) (err error) {
	var within []bool // of each node on the way down: whether it is a subshell
	depth := 0
	syntax.Walk(file, func(node syntax.Node) bool {
		if node == nil {
			if within[len(within)-1] {
				depth--
			}
			within = within[:len(within)-1]
			return true
		}
		subshell := false
		switch node := node.(type) {
		case *syntax.Subshell, *syntax.CmdSubst:
			subshell = true
		case *syntax.Stmt:
			subshell = node.Background
		case *syntax.CallExpr:
			if depth > 0 && len(node.Args) > 0 && node.Args[0].Lit() == "trap" {
				err = errors.New("not modelled: a trap in a subshell")
			}
		}
		if subshell {
			depth++
		}
		within = append(within, subshell)
		return true
	})
	return err
}
