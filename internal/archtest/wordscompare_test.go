package archtest

import (
	"flag"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	wordsAgainst = flag.String("words.against", "", "compare the words with those of another checkout, in this FOLDER")
	wordsSeed    = flag.Int64("words.seed", 1, "with -words.against: which pairs of sentences are drawn")
	wordsPairs   = flag.Int("words.pairs", 0, "with -words.against: how many pairs of sentences are printed")
)

// change is how the phrases of two trees differ.
type change struct {
	now, gone, added map[string]int // phrases of each kind: in the second tree, only in the first, only in the second
	pairs            [][2]phrase    // a phrase of the first tree and what replaced it
}

// TestWordsCompare compares two small trees or, to measure a rewrite, another checkout with this one:
//
//	go test ./internal/archtest -run TestWordsCompare -v -words.against ../other -words.pairs 50
func TestWordsCompare(t *testing.T) {
	t.Parallel()
	if *wordsAgainst != "" {
		measure(compare(t, *wordsAgainst, root))
		return
	}
	before := tree(t, map[string]string{
		"a.go":    "package a\n\n// Same is the same.\nvar Same = \"the host was closed\"\n\n// Other starts over when needed.\nvar Other = 1\n",
		"page.md": "# A page\n\nIt has two lines,\nand this one is removed.\n",
	})
	after := tree(t, map[string]string{
		"a.go":    "package a\n\n// Same is the same.\nvar Same = \"the host was cordoned\"\n\n// Other restarts when needed.\nvar Other = 1\n",
		"page.md": "# A page\n\nIt has two lines,\n",
	})
	got := compare(t, before, after)
	for _, c := range []struct {
		what string
		got  map[string]int
		want string
	}{
		{"now", got.now, "map[comment:2 doc:2 string:1]"},
		{"gone", got.gone, "map[comment:1 doc:1 string:1]"},
		{"added", got.added, "map[comment:1 string:1]"},
	} {
		if fmt.Sprint(c.got) != c.want {
			t.Errorf("%s: %v, want %s", c.what, c.got, c.want)
		}
	}
	want := "[the host was closed|the host was cordoned Other starts over when needed.|Other restarts when needed.]"
	var pairs []string
	for _, p := range got.pairs {
		pairs = append(pairs, p[0].text+"|"+p[1].text)
	}
	if fmt.Sprint(pairs) != want {
		t.Errorf("pairs %s\nwant  %s", pairs, want)
	}
}

// tree writes files into a new folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

func compare(t *testing.T, from, to string) change {
	t.Helper()
	before, after := perFile(t, from), perFile(t, to)
	out := change{now: make(map[string]int), gone: make(map[string]int), added: make(map[string]int)}
	for _, file := range slices.Sorted(maps.Keys(before)) {
		old, new := rest(before[file], after[file]), rest(after[file], before[file])
		count(out.gone, old)
		out.pairs = append(out.pairs, matched(old, new)...)
	}
	for file, all := range after {
		count(out.now, all)
		count(out.added, rest(all, before[file]))
	}
	return out
}

// measure prints the counts of a change and some of its pairs.
func measure(c change) {
	for _, kind := range []string{"string", "comment", "doc"} {
		fmt.Printf("%-8s %6d now, %6d changed or removed, %6d changed or added\n", kind, c.now[kind], c.gone[kind], c.added[kind])
	}
	rand.New(rand.NewSource(*wordsSeed)).Shuffle(len(c.pairs), func(i, j int) { c.pairs[i], c.pairs[j] = c.pairs[j], c.pairs[i] })
	for _, p := range c.pairs[:min(*wordsPairs, len(c.pairs))] {
		fmt.Printf("\n%s:%d (%s)\n  - %s\n  + %s\n", p[1].file, p[1].line, p[1].kind, oneLine(p[0].text), oneLine(p[1].text))
	}
}

// perFile returns the phrases of each file; a page counts by lines.
func perFile(t *testing.T, dir string) map[string][]phrase {
	t.Helper()
	all, err := corpus(dir)
	must(t, err)
	out := make(map[string][]phrase)
	for _, p := range all {
		if p.kind == "name" {
			continue
		}
		lines := []string{p.text}
		if p.kind == "doc" {
			lines = strings.Split(p.text, "\n")
		}
		for i, text := range lines {
			out[p.file] = append(out[p.file], phrase{file: p.file, line: p.line + i, kind: p.kind, text: text})
		}
	}
	return out
}

// rest returns the phrases that other does not have, each as often as it has more of them.
func rest(all, other []phrase) []phrase {
	have := make(map[string]int)
	for _, p := range other {
		have[p.kind+p.text]++
	}
	var out []phrase
	for _, p := range all {
		if have[p.kind+p.text]--; have[p.kind+p.text] < 0 {
			out = append(out, p)
		}
	}
	return out
}

func count(into map[string]int, phrases []phrase) {
	for _, p := range phrases {
		into[p.kind]++
	}
}

// matched pairs each old phrase of four words or more with the new one most like it, if they share a third of their words.
func matched(old, new []phrase) [][2]phrase {
	var out [][2]phrase
	taken := make(map[int]bool)
	for _, o := range old {
		best, score := -1, 1.0/3
		for i, n := range new {
			if n.kind == o.kind && !taken[i] && n.text != o.text && len(strings.Fields(o.text)) >= 4 {
				if s := alike(o.text, n.text); s > score {
					best, score = i, s
				}
			}
		}
		if best >= 0 {
			taken[best] = true
			out = append(out, [2]phrase{o, new[best]})
		}
	}
	return out
}

// alike returns which part of two texts' words they share.
func alike(a, b string) float64 {
	words := make(map[string]int)
	for _, w := range strings.Fields(a) {
		words[w]++
	}
	all, shared := len(strings.Fields(a)), 0
	for _, w := range strings.Fields(b) {
		all++
		if words[w]--; words[w] >= 0 {
			shared++
		}
	}
	return 2 * float64(shared) / float64(max(all, 1))
}

func oneLine(text string) string {
	return strings.Join(strings.Fields(text), " ")
}
