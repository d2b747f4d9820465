package mac

import (
	"container/list"
	"errors"
	"fmt"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// parsed caches recently parsed scripts. All machines of a process share it, because hundreds of them
// run the same text; a parsed script is read-only and holds no machine's state.
var parsed = newScripts(128, 4<<20)

// maxNesting limits how deep a script may nest, because the parser recurses.
const maxNesting = 2_000

// scripts is a bounded cache of parsed scripts by their text.
type scripts struct {
	mu       sync.Mutex
	entries  map[string]*list.Element
	recent   *list.List // of *parsedScript, the latest first
	max      int
	maxBytes int
	bytes    int
}

type parsedScript struct {
	text string
	file *syntax.File
}

func newScripts(max, maxBytes int) *scripts {
	return &scripts{entries: map[string]*list.Element{}, recent: list.New(), max: max, maxBytes: maxBytes}
}

// parse returns the syntax tree of a script for a kind of shell. It must not be changed.
func (s *scripts) parse(kind, text string) (*syntax.File, error) {
	name := text
	if kind == "zsh" {
		name = "zsh\x00" + text // its tree differs, see endPipesApart
	}
	s.mu.Lock()
	if e, ok := s.entries[name]; ok {
		s.recent.MoveToFront(e)
		file := e.Value.(*parsedScript).file
		s.mu.Unlock()
		return file, nil
	}
	s.mu.Unlock()
	if nesting(text) > maxNesting {
		return nil, errors.New("the script nests too deep")
	}
	// macOS's /bin/sh is bash in its POSIX mode, which has extensions such as local.
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, err
	}
	if err := modelled(file); err != nil {
		return nil, err
	}
	if kind == "zsh" {
		if err := asZsh(file); err != nil {
			return nil, err
		}
	} else {
		endPipesApart(file)
	}
	if err := trapsApart(file); err != nil {
		return nil, err
	}
	s.keep(name, file)
	return file, nil
}

func (s *scripts) keep(text string, file *syntax.File) {
	if len(text) > s.maxBytes/4 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.entries[text]; ok {
		return
	}
	s.entries[text] = s.recent.PushFront(&parsedScript{text, file})
	s.bytes += len(text)
	for len(s.entries) > s.max || s.bytes > s.maxBytes {
		last := s.recent.Remove(s.recent.Back()).(*parsedScript)
		delete(s.entries, last.text)
		s.bytes -= len(last.text)
	}
}

// nesting returns an upper bound of the depth of brackets in a text.
func nesting(text string) int {
	depth, deepest := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{', '[':
			depth++
			deepest = max(deepest, depth)
		case ')', '}', ']':
			depth = max(0, depth-1)
		}
	}
	return deepest
}

// modelled refuses what the interpreter would read from the real machine, or cannot run.
func modelled(file *syntax.File) (err error) {
	syntax.Walk(file, func(node syntax.Node) bool {
		what := ""
		switch node := node.(type) {
		case *syntax.ProcSubst:
			what = "process substitution"
		case *syntax.CoprocClause:
			what = "coproc"
		case *syntax.UnaryTest:
			if node.Op == syntax.TsUsrOwn || node.Op == syntax.TsGrpOwn {
				what = node.Op.String()
			}
		case *syntax.BinaryTest:
			if node.Op == syntax.TsDevIno {
				what = node.Op.String()
			}
		case *syntax.Word:
			if len(node.Parts) > 0 {
				if lit, ok := node.Parts[0].(*syntax.Lit); ok && namesHome(lit.Value) {
					what = "~user"
				}
			}
		}
		if what != "" && err == nil {
			err = fmt.Errorf("not modelled: %s", what)
		}
		return err == nil
	})
	return err
}

// namesHome reports whether a word starts with a user's home, such as ~root.
func namesHome(word string) bool {
	return len(word) > 1 && word[0] == '~' && (word[1] >= 'a' && word[1] <= 'z' || word[1] == '_')
}
