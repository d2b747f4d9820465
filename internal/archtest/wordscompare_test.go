package archtest

import (
	"flag"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"
)

var (
	wordsAgainst = flag.String("words.against", "", "compare the words with those of another checkout, in this FOLDER")
	wordsSeed    = flag.Int64("words.seed", 1, "with -words.against: which pairs of sentences are drawn")
	wordsPairs   = flag.Int("words.pairs", 0, "with -words.against: how many pairs of sentences are printed")
)

// TestWordsCompare measures a rewrite. It is skipped without -words.against:
//
//	go test ./internal/archtest -run TestWordsCompare -v -words.against ../other -words.pairs 50
func TestWordsCompare(t *testing.T) {
	t.Parallel()
	if *wordsAgainst == "" {
		t.Skip("needs -words.against FOLDER")
	}
	before, after := perFile(t, *wordsAgainst), perFile(t, root)
	now, gone, added := make(map[string]int), make(map[string]int), make(map[string]int)
	var pairs [][2]phrase
	for _, file := range slices.Sorted(maps.Keys(before)) {
		old, new := rest(before[file], after[file]), rest(after[file], before[file])
		count(gone, old)
		pairs = append(pairs, matched(old, new)...)
	}
	for file, all := range after {
		count(now, all)
		count(added, rest(all, before[file]))
	}
	for _, kind := range []string{"string", "comment", "doc"} {
		fmt.Printf("%-8s %6d now, %6d changed or removed, %6d changed or added\n", kind, now[kind], gone[kind], added[kind])
	}
	rand.New(rand.NewSource(*wordsSeed)).Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	for _, p := range pairs[:min(*wordsPairs, len(pairs))] {
		fmt.Printf("\n%s:%d (%s)\n  - %s\n  + %s\n", p[1].file, p[1].line, p[1].kind, oneLine(p[0].text), oneLine(p[1].text))
	}
}

// perFile returns the phrases of each file; a page counts by lines.
func perFile(t *testing.T, dir string) map[string][]phrase {
	t.Helper()
	all, err := corpus(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string][]phrase)
	for _, p := range all {
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
