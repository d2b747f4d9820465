package archtest

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"
)

//go:embed sentences.txt
var oldSentences string

// TestSentences finds sentences of the first edition in string literals, comments and pages.
func TestSentences(t *testing.T) {
	t.Parallel()
	var parts []string
	for line := range strings.Lines(oldSentences) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			parts = append(parts, strings.ToLower(line))
		}
	}
	if len(parts) < 60 {
		t.Fatalf("sentences.txt has only %d lines", len(parts))
	}
	phrases, err := corpus(root)
	must(t, err)
	for _, p := range phrases {
		for _, found := range oldIn(parts, p.text) {
			t.Errorf("%s:%d: %q is a sentence of the first edition; say it in plain English", p.file, p.line, found)
		}
	}
}

// oldIn returns the parts that a text contains, whatever its case and white space.
func oldIn(parts []string, text string) (found []string) {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, part := range parts {
		if strings.Contains(text, part) {
			found = append(found, part)
		}
	}
	return found
}

func TestOldIn(t *testing.T) {
	t.Parallel()
	if got := fmt.Sprint(oldIn([]string{"a turn", "of old"}, "A\n turn of\tolder days; returns")); got != "[a turn of old]" {
		t.Errorf("found %s", got)
	}
}
