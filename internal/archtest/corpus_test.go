package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// phrase is a piece of text that people read: a string literal, a comment, a name, or a paragraph of a page.
type phrase struct {
	file string // its path below the tree's root
	line int    // of its start
	kind string // string, comment, name or doc
	text string // without quotes or comment signs; a name as separate words

	quoted bool // its line breaks are escapes, not those of the file
}

// corpus returns the phrases of the tree below dir.
func corpus(dir string) ([]phrase, error) {
	var out []phrase
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel != "." && (d.Name() == ".git" || d.Name() == "dist") {
				return filepath.SkipDir
			}
			return nil
		}
		read := readerOf(rel)
		if read == nil {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		found, err := read(string(text))
		for _, p := range found {
			p.file = filepath.ToSlash(rel)
			out = append(out, p)
		}
		return err
	})
	return out, err
}

// readerOf returns the function that finds the phrases of a file, or nil if it has none.
// Golden files are skipped: the code that prints them is read instead.
func readerOf(name string) func(string) ([]phrase, error) {
	switch ext := path.Ext(name); {
	case ext == ".go":
		return goPhrases
	case ext == ".md" && !strings.Contains(name, "testdata"):
		return pagePhrases
	case ext == ".sh":
		return scriptPhrases
	case ext == ".yml" || ext == ".yaml":
		return linePhrases
	case ext == ".hcl" || path.Base(name) == "Makefile":
		return commentPhrases
	case strings.Contains(name, "testdata/script/"):
		return commentPhrases
	}
	return nil
}

// nameWords finds the words of a name: host and Name in hostName.
var nameWords = regexp.MustCompile(`[A-Z]*[a-z0-9]+|[A-Z]+`)

// goPhrases returns a Go file's string literals, comments and names, each name once. Import paths, struct tags and
// directives are skipped.
func goPhrases(text string) ([]phrase, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []phrase
	add := func(at token.Pos, kind, text string, quoted bool) {
		out = append(out, phrase{line: fset.Position(at).Line, kind: kind, text: text, quoted: quoted})
	}
	seen := make(map[string]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if !seen[n.Name] {
				seen[n.Name] = true
				add(n.Pos(), "name", strings.Join(nameWords.FindAllString(n.Name, -1), " "), false)
			}
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			n.Tag = nil
		case *ast.BasicLit:
			if n.Kind != token.STRING {
				break
			}
			if s, err := strconv.Unquote(n.Value); err == nil && strings.ContainsAny(s, letters) {
				add(n.Pos(), "string", s, n.Value[0] == '"')
			}
		}
		return true
	})
	for _, group := range file.Comments {
		var lines []string
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, "//go:") {
				lines = append(lines, "")
				continue
			}
			lines = append(lines, strings.TrimSpace(strings.Trim(c.Text, "/*")))
		}
		if len(lines) > 0 {
			add(group.Pos(), "comment", strings.Join(lines, "\n"), false)
		}
	}
	return out, nil
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// wholeComment is a line that holds a comment and nothing else.
var wholeComment = regexp.MustCompile(`^\s*(?:#|//)(.*)$`)

// commentPhrases returns the runs of comment lines of a script, a workflow or an HCL file.
func commentPhrases(text string) ([]phrase, error) {
	return runs(text, "comment", func(line string) (string, bool) {
		m := wholeComment.FindStringSubmatch(line)
		if m == nil || strings.HasPrefix(line, "#!") {
			return "", false
		}
		return strings.TrimSpace(m[1]), true
	}), nil
}

// sentence is quoted text of a script with words in it, such as what it prints.
var sentence = regexp.MustCompile(`"([^"]*[a-z] [a-z][^"]*)"|'([^']*[a-z] [a-z][^']*)'`)

// scriptPhrases returns the comments of a script and the sentences that it prints.
func scriptPhrases(text string) ([]phrase, error) {
	out, err := commentPhrases(text)
	for i, line := range strings.Split(text, "\n") {
		if wholeComment.MatchString(line) {
			continue
		}
		for _, m := range sentence.FindAllStringSubmatch(line, -1) {
			out = append(out, phrase{line: i + 1, kind: "string", text: m[1] + m[2], quoted: true})
		}
	}
	return out, err
}

// linePhrases returns the lines of a workflow: names of steps, messages and comments.
func linePhrases(text string) ([]phrase, error) {
	return runs(text, "comment", func(line string) (string, bool) {
		line = strings.TrimSpace(line)
		return strings.TrimSpace(strings.TrimPrefix(line, "#")), line != ""
	}), nil
}

// pagePhrases returns a Markdown page's paragraphs and table rows, without code fences.
func pagePhrases(text string) ([]phrase, error) {
	fenced := false
	return runs(text, "doc", func(line string) (string, bool) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			return "", false
		}
		return line, !fenced && line != ""
	}), nil
}

// runs joins adjacent lines that read accepts to one phrase.
func runs(text, kind string, read func(line string) (string, bool)) []phrase {
	var out []phrase
	open := false
	for i, line := range strings.Split(text, "\n") {
		said, ok := read(line)
		switch {
		case !ok:
		case open:
			out[len(out)-1].text += "\n" + said
		default:
			out = append(out, phrase{line: i + 1, kind: kind, text: said})
		}
		open = ok
	}
	return out
}
