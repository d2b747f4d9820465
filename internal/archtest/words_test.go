package archtest

import (
	"bufio"
	_ "embed"
	"flag"
	"fmt"
	"maps"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

var (
	//go:embed words.txt
	wordsTable string

	wordsIn    = flag.String("words.in", ".", "limit the words lint to a FOLDER or file")
	wordsBrief = flag.Bool("words.count", false, "print only the counts per folder and per turn of the words lint")
)

// turn is a way to say something that the project does not use.
type turn struct {
	name, better string
	names        bool // it applies to names, instead of sentences
	find         *regexp.Regexp
	except       []*regexp.Regexp
	needs        []string // each match contains at least one of these, in lower case; empty: find is always run
}

// finding is a turn in a phrase.
type finding struct {
	file   string
	line   int
	said   string // what was found, with a few words around it
	turn   string
	better string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %s (instead: %s)", f.file, f.line, f.said, f.better)
}

// freeFiles returns the files that the table leaves out.
func freeFiles(table string) (out []string) {
	for line := range strings.Lines(table) {
		if file, ok := strings.CutPrefix(line, "- "); ok {
			file, _, _ = strings.Cut(file, "  # ")
			out = append(out, strings.TrimSpace(file))
		}
	}
	return out
}

// readTurns reads the table of turns.
func readTurns(table string) ([]turn, error) {
	var out []turn
	lines := bufio.NewScanner(strings.NewReader(table))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "- ") {
			continue
		}
		if text, ok := strings.CutPrefix(line, "! "); ok {
			pattern, why, _ := strings.Cut(text, "  # ")
			find, err := compile(pattern)
			if err != nil || why == "" || len(out) == 0 {
				return nil, fmt.Errorf("words.txt:%d: an exception is: ! PATTERN  # reason (%v)", n, err)
			}
			last := &out[len(out)-1]
			last.except = append(last.except, find)
			continue
		}
		line, names := strings.CutPrefix(line, "@ ")
		name, better, ok := strings.Cut(line, " => ")
		find, err := compile(name)
		if err != nil || !ok {
			return nil, fmt.Errorf("words.txt:%d: a turn is: PATTERN => BETTER WORDS (%v)", n, err)
		}
		parsed, err := syntax.Parse(find.String(), syntax.Perl)
		if err != nil {
			return nil, fmt.Errorf("words.txt:%d: %w", n, err)
		}
		out = append(out, turn{name: name, better: better, names: names, find: find, needs: literals(parsed)})
	}
	return out, lines.Err()
}

// literals returns lower-case texts such that each match of a pattern contains at least one of them, or nothing if
// the pattern has none. Searching for them is a hundred times faster than running the pattern.
func literals(re *syntax.Regexp) []string {
	var out []string
	switch re.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}
	case syntax.OpCapture, syntax.OpPlus:
		return literals(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if found := literals(sub); shortest(found) > shortest(out) {
				out = found
			}
		}
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			found := literals(sub)
			if len(found) == 0 {
				return nil
			}
			out = append(out, found...)
		}
	}
	return out
}

// shortest returns the length of the shortest text, or 0 if there is none.
func shortest(texts []string) int {
	if len(texts) == 0 {
		return 0
	}
	return len(slices.MinFunc(texts, func(a, b string) int { return len(a) - len(b) }))
}

// compile compiles a pattern of the table. A pattern that ends in punctuation, such as a colon, has no word boundary there.
func compile(text string) (*regexp.Regexp, error) {
	end := `\b`
	if strings.HasSuffix(text, ":") || strings.HasSuffix(text, "]") {
		end = ""
	}
	return regexp.Compile(`(?i)\b(?:` + strings.ReplaceAll(text, " ", `\s+`) + `)` + end)
}

// bare is a text without white space: a code, a field's name, a path. Such names are stable and have no style.
var bare = regexp.MustCompile(`^\S*$`)

// judge returns the turns in a phrase.
func judge(turns []turn, p phrase) []finding {
	if p.kind == "string" && bare.MatchString(p.text) {
		return nil
	}
	var out []finding
	lower := strings.ToLower(p.text)
	for _, r := range turns {
		if r.names != (p.kind == "name") || len(r.needs) > 0 && !slices.ContainsFunc(r.needs, func(s string) bool { return strings.Contains(lower, s) }) {
			continue
		}
		for _, hit := range r.find.FindAllStringIndex(p.text, -1) {
			if slices.ContainsFunc(r.except, func(e *regexp.Regexp) bool { return overlaps(e, p.text, hit) }) {
				continue
			}
			line := p.line
			if !p.quoted {
				line += strings.Count(p.text[:hit[0]], "\n")
			}
			out = append(out, finding{p.file, line, around(p.text, hit), r.name, r.better})
		}
	}
	return out
}

// overlaps reports whether a match of find shares a byte with the hit.
func overlaps(find *regexp.Regexp, text string, hit []int) bool {
	return slices.ContainsFunc(find.FindAllStringIndex(text, -1), func(m []int) bool { return m[0] < hit[1] && hit[0] < m[1] })
}

// around returns the hit in brackets with some of the text on both sides.
func around(text string, hit []int) string {
	from, to := max(0, hit[0]-40), min(len(text), hit[1]+40)
	said := text[from:hit[0]] + "[" + text[hit[0]:hit[1]] + "]" + text[hit[1]:to]
	return strings.ToValidUTF8(strings.Join(strings.Fields(said), " "), "")
}

func within(file, folder string) bool {
	return folder == "." || file == folder || strings.HasPrefix(file, folder+"/")
}

// TestWords holds string literals, comments, pages and names to plain English. For one folder:
//
//	go test ./internal/archtest -run TestWords$ -words.in plan
func TestWords(t *testing.T) {
	t.Parallel()
	turns, err := readTurns(wordsTable)
	must(t, err)
	phrases, err := corpus(root)
	must(t, err)
	free := freeFiles(wordsTable)
	for _, file := range free {
		if !slices.ContainsFunc(phrases, func(p phrase) bool { return p.file == file }) {
			t.Errorf("words.txt leaves out %s, which has no words", file)
		}
	}
	folders, names := make(map[string]int), make(map[string]int)
	for _, p := range phrases {
		if !within(p.file, path.Clean(*wordsIn)) || slices.Contains(free, p.file) {
			continue
		}
		for _, f := range judge(turns, p) {
			folders[path.Dir(f.file)]++
			names[f.turn]++
			if !*wordsBrief {
				t.Error(f)
			}
		}
	}
	if !*wordsBrief {
		return
	}
	for _, counts := range []map[string]int{folders, names} {
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			t.Errorf("%6d  %s", counts[name], name)
		}
	}
}

// TestWordsFind keeps the lint able to find: turns, exceptions, and text that is skipped.
func TestWordsFind(t *testing.T) {
	t.Parallel()
	turns, err := readTurns("presto => again\nbe nil => is not a\n! must be nil  # existence\ntodo now: => fix:\n@ old turn => new turn\n")
	must(t, err)
	for _, c := range []struct {
		read func(string) ([]phrase, error)
		text string
		want string // lines of what is found
	}{
		{goPhrases, "package p\n\n// It starts\n// presto.\nvar x = \"it be\" + ` nil\nhost, presto`\n", "[4 6]"},
		{goPhrases, "package p\n\nimport _ \"a presto\"\n\ntype x struct {\n\ta int `json:\"todo now: presto\"`\n}\n", "[]"},
		{goPhrases, "package p\n\nvar a, b = \"presto\", \"must be nil; Presto: be nil\"\n", "[3 3]"},
		{goPhrases, "package p\n\nvar a = \"todo now:\\n x\"\n", "[3]"},
		{goPhrases, "package p\n\nvar oldTurn = 1\n\nfunc TestOldTurns() { oldTurn++; presto, old_turn := 1, 1 } // an old turn\n", "[3 5]"},
		{pagePhrases, "# A page\n\n```sh\npresto\n```\nso presto\n", "[6]"},
		{commentPhrases, "#!/bin/sh\n# starts\n#   presto\necho presto\n", "[3]"},
		{scriptPhrases, "#!/bin/sh\n# presto\necho \"it comes presto\"\npresto=\"$presto\"\n", "[2 3]"},
		{linePhrases, "jobs:\n  # presto\n  - name: Do it presto\n", "[2 3]"},
	} {
		phrases, err := c.read(c.text)
		must(t, err)
		lines := []int{}
		for _, p := range phrases {
			for _, f := range judge(turns, p) {
				lines = append(lines, f.line)
			}
		}
		slices.Sort(lines)
		if got := fmt.Sprint(lines); got != c.want {
			t.Errorf("lines %s, want %s:\n%s", got, c.want, c.text)
		}
	}
}

func TestWordsLiterals(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		`(?i)\b(?:(is|are) asked)\b`: "[ asked]",
		`(?i)\b(?:fixes?|Way)\b`:     "[fixe way]",
		`(?i)\b(?:a|b?)\b`:           "[]",
	} {
		re, err := syntax.Parse(pattern, syntax.Perl)
		must(t, err)
		if got := fmt.Sprint(literals(re)); got != want {
			t.Errorf("%s: literals %s, want %s", pattern, got, want)
		}
	}
}
