package archtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// The limits of a page.
const (
	sentenceWords  = 30
	paragraphLines = 6
	cellLength     = 200
)

// generated pages follow their source.
var generatedPages = []string{"docs/codes.md", "docs/reference/commands.md", "docs/reference/configuration.md"}

// handwritten are the pages that people write, from the root of the repository.
func handwritten(t *testing.T) []string {
	t.Helper()
	out := []string{"README.md", "examples/ci/README.md"}
	must(t, filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		name, rerr := filepath.Rel(root, path)
		if page := filepath.ToSlash(name); filepath.Ext(path) == ".md" && !slices.Contains(generatedPages, page) {
			out = append(out, page)
		}
		return errors.Join(err, rerr)
	}))
	if len(out) < 60 {
		t.Fatalf("%d pages", len(out))
	}
	return out
}

// TestPagesAreShort holds the pages to short sentences, paragraphs and cells, and commands to fenced blocks.
func TestPagesAreShort(t *testing.T) {
	t.Parallel()
	for _, page := range append(handwritten(t), generatedPages...) {
		text, err := os.ReadFile(filepath.Join(root, page))
		must(t, err)
		for _, fault := range tooLong(string(text)) {
			t.Errorf("%s:%s", page, fault)
		}
	}
}

func TestTooLong(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 31)
	for text, faults := range map[string]int{
		long + "\n":                                          1,
		"One. " + long[:100] + ". Three.\n":                  0,
		"- " + long[:140] + "\n- and this.\n":                0,
		strings.Repeat("line.\n", 7):                         1,
		"```sh\n" + long + "\n```\n":                         0,
		"| a | " + strings.Repeat("x", 201) + " |\n":         1,
		"| a | " + strings.Repeat("`x/y`, ", 40) + "`z` |\n": 0,
		"Text.\n\n    macfleet plan\n":                       1,
	} {
		if got := tooLong(text); len(got) != faults {
			t.Errorf("%q: %q, want %d faults", text, got, faults)
		}
	}
}

var (
	listItem    = regexp.MustCompile(`^\s*([-*]|\d+\.) `)
	codeSpan    = regexp.MustCompile("`[^`]*`")
	sentenceEnd = regexp.MustCompile(`[.!?:]["')*]*(\s|$)`)
	listOfCode  = regexp.MustCompile("^(`[^`]*`(, )?)+$")
)

// tooLong returns the parts of a page that are too long, with their lines.
func tooLong(text string) (faults []string) {
	var paragraph []string
	start, fence := 0, false
	end := func() {
		if len(paragraph) > paragraphLines {
			faults = append(faults, fmt.Sprintf("%d: a paragraph of %d lines, at most %d", start, len(paragraph), paragraphLines))
		}
		for _, s := range sentenceEnd.Split(codeSpan.ReplaceAllString(strings.Join(paragraph, " "), "x"), -1) {
			if n := len(strings.Fields(s)); n > sentenceWords {
				faults = append(faults, fmt.Sprintf("%d: a sentence of %d words, at most %d: %.60s…", start, n, sentenceWords, s))
			}
		}
		paragraph = nil
	}
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			end()
			fence = !fence
		case fence:
		case trimmed == "" || strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, "<!--"):
			end()
		case strings.HasPrefix(trimmed, "|"):
			end()
			for _, cell := range strings.Split(strings.ReplaceAll(trimmed, `\|`, ""), "|") {
				if cell = strings.TrimSpace(cell); len(cell) > cellLength && !listOfCode.MatchString(cell) {
					faults = append(faults, fmt.Sprintf("%d: a cell of %d characters, at most %d: %.60s…", i+1, len(cell), cellLength, cell))
				}
			}
		case len(paragraph) == 0 && strings.HasPrefix(line, "    ") && !listItem.MatchString(line):
			faults = append(faults, fmt.Sprintf("%d: an indented block; put it between lines of backticks: %.60s…", i+1, trimmed))
		default:
			if listItem.MatchString(line) {
				end()
			}
			if len(paragraph) == 0 {
				start = i + 1
			}
			paragraph = append(paragraph, listItem.ReplaceAllString(line, ""))
		}
	}
	end()
	return faults
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestPagesLink finds links to missing files and headings.
func TestPagesLink(t *testing.T) {
	t.Parallel()
	for _, page := range append(handwritten(t), generatedPages...) {
		text, err := os.ReadFile(filepath.Join(root, page))
		must(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			target, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := filepath.Join(root, page)
			if target != "" {
				file = filepath.Join(root, filepath.Dir(page), target)
			}
			found, err := os.ReadFile(file)
			if _, missing := os.Stat(file); missing != nil {
				t.Errorf("%s: %s: %v", page, m[1], missing)
			} else if heading != "" && (err != nil || !slices.Contains(headings(string(found)), heading)) {
				t.Errorf("%s: %s has no heading #%s", page, m[1], heading)
			}
		}
	}
}

// headings returns the anchors of a page's headings.
func headings(text string) (out []string) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			continue
		}
		name := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
		out = append(out, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return r
			}
			return -1
		}, name))
	}
	return out
}
