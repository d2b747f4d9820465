package mac

import (
	"fmt"
	"strings"
	"testing"
)

func TestScriptsAreBounded(t *testing.T) {
	t.Parallel()
	s := newScripts(3, 1000)
	first, err := s.parse("sh", "echo 0")
	ok(t, err)
	for n := range 10 {
		if _, err := s.parse("sh", fmt.Sprint("echo ", n)); err != nil {
			t.Fatal(err)
		}
		// A used script stays in the cache.
		if again, err := s.parse("sh", "echo 0"); err != nil || again != first {
			t.Fatalf("parsed again: %v", err)
		}
	}
	if _, err := s.parse("sh", "echo "+strings.Repeat("x", 900)); err != nil {
		t.Fatal(err)
	}
	if len(s.entries) != 3 || s.recent.Len() != 3 || s.bytes != 18 {
		t.Errorf("%d scripts, %d bytes", len(s.entries), s.bytes)
	}
}

func TestNesting(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 0, "()": 1, "a) b) (((": 3, "({[": 3, "()()": 1} {
		equal(t, nesting(text), want, text)
	}
}
