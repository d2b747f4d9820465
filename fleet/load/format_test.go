package load

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"pgregory.net/rapid"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ src, want string }{
		"empty":                                  {"", ""},
		"columns":                                {"a {\nb=1\n    ccc   = 2 # why\n}\n", "a {\n  b   = 1\n  ccc = 2 # why\n}\n"},
		"list":                                   {"a = [\n1,\n  2 ,\n]\n", "a = [\n  1,\n  2,\n]\n"},
		"heredoc":                                {"a = <<-X\n   as   it is\nX\n", "a = <<-X\n   as   it is\nX\n"},
		"comments":                               {"  // a\n/* b   c */\n#d\n", "// a\n/* b   c */\n#d\n"},
		"CRLF stays":                             {"a {\r\nb=1\r\n}\r\n", "a {\r\n  b = 1\r\n}\r\n"},
		"no last end":                            {"a=1", "a = 1"},
		"BOM":                                    {"\xef\xbb\xbfa=1\n", "a = 1\n"},
		"only a BOM":                             {"\xef\xbb\xbfa = 1\n", "a = 1\n"},
		"written twice, which the syntax allows": {"a=1\na=2\n", "a = 1\na = 2\n"},
	}
	for name, tt := range tests {
		got, diags := Format("a.fleet.hcl", []byte(tt.src))
		if string(got) != tt.want || diags != nil {
			t.Errorf("%s: %q, %v", name, got, diags)
		}
	}
}

func TestFormatLeavesFaults(t *testing.T) {
	t.Parallel()
	for _, src := range []string{"a {\nb=1\n", "a   = = 1\n", "a  = \"\xff\"\n", "a=\"x\n"} {
		got, diags := Format("a.fleet.hcl", []byte(src))
		if string(got) != src || !diags.HasErrors() || diags[0].Subject.Filename != "a.fleet.hcl" {
			t.Errorf("%q: %q, %v", src, got, diags)
		}
	}
}

// checkFormat holds the laws of a text that parses: a second time changes nothing, and only spaces differ.
func checkFormat(t interface{ Fatalf(string, ...any) }, src []byte) []byte {
	before := bytes.Clone(src)
	once, diags := Format("a.fleet.hcl", src)
	if !bytes.Equal(src, before) {
		t.Fatalf("the text itself was changed: %q", before)
	}
	if diags.HasErrors() {
		if !bytes.Equal(once, src) {
			t.Fatalf("%q is faulty, and became %q", src, once)
		}
		return once
	}
	twice, diags := Format("a.fleet.hcl", once)
	if diags.HasErrors() || !bytes.Equal(once, twice) {
		t.Fatalf("%q\nbecame %q\nand then %q\n%v", src, once, twice, diags)
	}
	if !slices.EqualFunc(tokens(src), tokens(once), func(a, b hclsyntax.Token) bool { return a.Type == b.Type && bytes.Equal(a.Bytes, b.Bytes) }) {
		t.Fatalf("%q\nbecame %q, which differs in more than spaces", src, once)
	}
	return once
}

func tokens(src []byte) hclsyntax.Tokens {
	all, _ := hclsyntax.LexConfig(src, "", hcl.InitialPos) // faults are in both or in neither
	return all
}

// Formatting does not change what a configuration means.
func TestFormatMeansTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		files := drawDirectory(t, drawSpecs(t))
		want := mustLoad(t, directory(files), Options{})
		for name, text := range files {
			files[name] = string(checkFormat(t, []byte(text)))
		}
		equal(t, "laid out", want.Config, mustLoad(t, directory(files), Options{}).Config)
	})
}

func FuzzFormat(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte("a = [ # one\n1, # two\n  2 ]\nb = { c=1 # three\n d = <<-X\n  e ${f}\n  X\n}\n"))
	f.Add([]byte("\xef\xbb\xbfa {\r\nb=1 // c\r\n}"))
	for _, text := range faulty(f) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, src []byte) { checkFormat(t, src) })
}

// TestExamples holds the examples to what they show: they are laid out, and load in each environment that they declare.
func TestExamples(t *testing.T) {
	t.Parallel()
	declared := regexp.MustCompile(`(?m)^environment "(\w+)"`)
	environments := make(map[string][]string) // by folder
	files, err := filepath.Glob("../../examples/*/*" + extension)
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, name, string(text), string(checkFormat(t, text)))
		var names []string
		for _, e := range declared.FindAllSubmatch(text, -1) {
			names = append(names, string(e[1]))
		}
		environments[filepath.Dir(name)] = append(environments[filepath.Dir(name)], names...)
	}
	for dir, names := range environments {
		if len(names) == 0 {
			names = []string{""}
		}
		for _, name := range names {
			mustLoad(t, os.DirFS(dir), Options{Environment: name, Version: "0.1.0"})
		}
	}
}

// TestIrregularFile: a pipe that is named like a file must not be waited for.
func TestIrregularFile(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{"a.fleet.hcl": {Data: []byte(small)}, "b.fleet.hcl": {Mode: fs.ModeNamedPipe}}
	refused(t, fsys, "Unreadable file", "no regular file")
}

// sparse is a file that is larger than any memory.
type sparse struct{ fstest.MapFS }

func (s sparse) Stat(name string) (fs.FileInfo, error) {
	info, err := s.MapFS.Stat(name)
	return holes{info}, err
}

func (s sparse) ReadFile(name string) ([]byte, error) { panic(name + " is read") }

type holes struct{ fs.FileInfo }

func (holes) Size() int64 { return 1 << 50 }

// TestHugeFile: the size is checked before the file is read.
func TestHugeFile(t *testing.T) {
	t.Parallel()
	if d := refused(t, sparse{fstest.MapFS{"a.fleet.hcl": {Data: []byte(small)}}}, tooLarge, ""); d.Subject.Filename != "a.fleet.hcl" {
		t.Errorf("at %v", d.Subject)
	}
}

// TestFileNames: one that would end a line of what is printed, or tell a terminal what to do, is not used.
func TestFileNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a\n::error::b.fleet.hcl", "a\x1b[2J.fleet.hcl", "a\u202eb.hcl", "a\r.fleet.hcl"} {
		fsys := fstest.MapFS{"a.fleet.hcl": {Data: []byte(small)}, name: {Data: []byte("locals {}\n")}}
		d := refused(t, fsys, "Unreadable directory", "cannot be shown as it is; rename it")
		if _, err := FileNames(fsys); err == nil || strings.Contains(d.Detail, name) {
			t.Errorf("%q: %v, %v", name, err, d)
		}
	}
	if names, err := FileNames(fstest.MapFS{"ä b%0A.fleet.hcl": {}, "n\nm.txt": {}}); err != nil || len(names) != 1 {
		t.Errorf("%q, %v", names, err)
	}
}
