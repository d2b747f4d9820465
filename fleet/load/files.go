package load

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

const (
	extension = ".fleet.hcl"
	// redefined is how the HCL parser calls an argument that is written twice.
	// It is the one fault of its that leaves the rest of the file usable.
	redefined = "Attribute redefined"
)

// parse returns the bodies of the files that parse, in the order of names. It
// returns nil when the directory has no configuration.
func (l *loader) parse(fsys fs.FS) []*hclsyntax.Body {
	names, others, err := list(fsys)
	switch {
	case err != nil:
		l.faultOutside("Unreadable directory", "The directory of the configuration cannot be read: %s.", err)
		return nil
	case len(names) == 0 && len(others) > 0:
		l.faultOutside("No configuration", "%s has no *%s file, but it has %s. Rename the files of the configuration, for example main.hcl to main%s.", cmp.Or(l.opts.Dir, "This directory"), extension, listed(others), extension)
		return nil
	case len(names) == 0:
		l.faultOutside("No configuration", "%s has no *%s file. Choose the directory of the configuration with -C DIR.", cmp.Or(l.opts.Dir, "This directory"), extension)
		return nil
	}
	bodies := []*hclsyntax.Body{}
	for _, name := range names {
		content, fault := read(fsys, name)
		if fault != nil {
			l.diags = append(l.diags, fault)
			// Anything may stand in it: then nothing counts as missing.
			l.lost = append(l.lost, nil)
			continue
		}
		if body := l.parseFile(name, content); body != nil {
			bodies = append(bodies, body)
		}
	}
	return bodies
}

// read reads a regular file, or what a link to one leads to. Anything else, such
// as a pipe, could keep its reader waiting for ever, and a file of holes fill the
// memory.
func read(fsys fs.FS, name string) ([]byte, *hcl.Diagnostic) {
	var content []byte
	info, err := fs.Stat(fsys, name)
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("it is no regular file (%s)", info.Mode().Type())
	case info.Size() > maxFile:
		return nil, oversize(name, info.Size())
	default:
		content, err = fs.ReadFile(fsys, name)
	}
	if err != nil {
		return nil, faultAt(fileStart(name), "Unreadable file", "The file cannot be read: %s.", err)
	}
	return content, nil
}

// list returns the names of the configuration's files and those of other HCL
// files, both sorted. A name that cannot be shown is an error: it could end a line, and
// tell a terminal, or a job's runner, what to do.
func list(fsys fs.FS) (names, others []string, err error) {
	entries, err := fs.ReadDir(fsys, ".") // sorted
	if err != nil {
		return nil, nil, err
	}
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	for _, e := range entries {
		switch name := e.Name(); {
		case e.IsDir():
		case strings.HasSuffix(name, ".hcl") && (!utf8.ValidString(name) || strings.ContainsFunc(name, hidden)):
			return nil, nil, fmt.Errorf("the name of the file %q cannot be shown as it is; rename it", name)
		case strings.HasSuffix(name, extension):
			names = append(names, name)
		case strings.HasSuffix(name, ".hcl"):
			others = append(others, name)
		}
	}
	return names, others, nil
}

// parseFile parses one file. It reports the first syntax fault and returns nil
// when there is one: what follows it may be a consequence.
func (l *loader) parseFile(name string, content []byte) *hclsyntax.Body {
	l.files[name] = &hcl.File{Bytes: content}
	fault := excess(name, content)
	var file *hcl.File
	var diags hcl.Diagnostics
	if fault == nil {
		file, diags = hclsyntax.ParseConfig(content, name, hcl.InitialPos)
		slices.SortStableFunc(diags, func(a, b *hcl.Diagnostic) int { return compareRanges(a.Subject, b.Subject) })
		breaks := func(d *hcl.Diagnostic) bool { return d.Severity == hcl.DiagError && d.Summary != redefined }
		if i := slices.IndexFunc(diags, breaks); i >= 0 {
			fault = diags[i]
			if fault.Summary == "Invalid multi-line string" {
				fault.Detail = "The string has no closing quote on its line."
			}
		}
	}
	if fault != nil {
		l.take(hcl.Diagnostics{fault}, fileStart(name))
		l.lost = append(l.lost, content)
		return nil
	}
	l.take(diags, fileStart(name))
	l.files[name] = file
	return file.Body.(*hclsyntax.Body)
}

// Format returns src in the canonical layout: two spaces a level, equals signs
// in columns. Only spaces change, so the result means the same, and a second time
// changes nothing; line ends stay as they are, LF or CRLF, and a byte order mark
// is dropped. A text that does not parse is returned as it is, with the
// diagnostics that say why, which use the name. Otherwise they are nil.
func Format(name string, src []byte) ([]byte, hcl.Diagnostics) {
	l := &loader{files: map[string]*hcl.File{}, maybe: map[string]bool{}}
	// An argument that is written twice is a fault, but none of the syntax.
	if l.parseFile(name, slices.Clone(src)) == nil {
		return src, l.finish()
	}
	return hclwrite.Format(src), nil
}

// Files returns a text as the source that diagnostics about it are shown with.
func Files(name string, src []byte) map[string]*hcl.File {
	return map[string]*hcl.File{name: {Bytes: src}}
}

// FileNames returns the names of the configuration's files in a directory, in
// the order in which they are read.
func FileNames(fsys fs.FS) ([]string, error) {
	names, _, err := list(fsys)
	return names, err
}

// The parser and the evaluator call themselves as deep as a text is nested, and
// Go ends the process when a stack is full. These bounds are far above any real
// configuration and far below that.
const (
	maxFile      = 1 << 20 // bytes
	maxDepth     = 100     // brackets in brackets
	maxOperators = 10_000  // in one file; a chain of them nests without brackets
	maxLiterals  = 10_000  // in one text: the parser's time grows with the square of a heredoc's lines
	maxExponent  = 3       // digits of a number's exponent
)

const tooLarge = "Text too large"

// excess returns the fault of a text that goes beyond the bounds, or nil.
func excess(name string, content []byte) *hcl.Diagnostic {
	if size := int64(len(content)); size > maxFile {
		return oversize(name, size)
	}
	tokens, _ := hclsyntax.LexConfig(content, name, hcl.InitialPos)
	depth, operators := 0, 0
	var lines literals
	for _, t := range tokens {
		if slices.Contains(opening, t.Type) {
			depth++
		} else if slices.Contains(closing, t.Type) {
			depth = max(depth-1, 0)
		}
		if slices.Contains(chaining, t.Type) {
			operators++
		}
		switch {
		case lines.count(t.Type) > maxLiterals:
			return faultAt(t.Range, tooLarge, "This text has more than %d lines or parts. Split it into several texts, or make it an artifact.", maxLiterals)
		case t.Type == hclsyntax.TokenNumberLit && longExponent(string(t.Bytes)):
			return faultAt(t.Range, tooLarge, "The exponent of this number is too large.")
		case depth > maxDepth:
			return faultAt(t.Range, tooLarge, "Brackets are nested more than %d deep here. Write it flatter.", maxDepth)
		case operators > maxOperators:
			return faultAt(t.Range, tooLarge, "The file has more than %d operators and lists. Split it into several files.", maxOperators)
		}
	}
	return nil
}

// oversize is the fault of a text of too many bytes.
func oversize(name string, size int64) *hcl.Diagnostic {
	return faultAt(fileStart(name), tooLarge, "The text has %d bytes; at most %d are read. Split it into several files.", size, maxFile)
}

func faultAt(at hcl.Range, summary, detail string, args ...any) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(detail, args...), Subject: &at}
}

// The tokens that nest, and those that nest what follows them without brackets.
var (
	opening = []hclsyntax.TokenType{hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote,
		hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl}
	closing = []hclsyntax.TokenType{hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote,
		hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd}
	chaining = []hclsyntax.TokenType{hclsyntax.TokenStar, hclsyntax.TokenSlash, hclsyntax.TokenPlus, hclsyntax.TokenMinus, hclsyntax.TokenPercent,
		hclsyntax.TokenEqualOp, hclsyntax.TokenNotEqual, hclsyntax.TokenLessThan, hclsyntax.TokenLessThanEq,
		hclsyntax.TokenGreaterThan, hclsyntax.TokenGreaterThanEq, hclsyntax.TokenAnd, hclsyntax.TokenOr,
		hclsyntax.TokenBang, hclsyntax.TokenQuestion, hclsyntax.TokenOBrack, hclsyntax.TokenTemplateControl}
)

// literals counts the lines and other literal parts of the text that tokens are in.
type literals struct{ depth, parts int }

func (l *literals) count(token hclsyntax.TokenType) int {
	switch token {
	case hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc:
		if l.depth == 0 {
			l.parts = 0
		}
		l.depth++
	case hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc:
		l.depth = max(l.depth-1, 0)
	case hclsyntax.TokenStringLit, hclsyntax.TokenQuotedLit:
		l.parts++
	}
	return l.parts
}

func longExponent(text string) bool {
	i := strings.IndexAny(text, "eE")
	return i >= 0 && len(strings.TrimLeft(text[i+1:], "+-0")) > maxExponent
}
