package load

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2"
)

// fault reports an error at a place. The summary is short and stable; the
// detail is full sentences that say what to do.
func (l *loader) fault(at hcl.Range, summary, detail string, args ...any) {
	l.report(hcl.DiagError, &at, summary, detail, args)
}

// warn reports a warning at a place.
func (l *loader) warn(at hcl.Range, summary, detail string, args ...any) {
	l.report(hcl.DiagWarning, &at, summary, detail, args)
}

// faultOutside reports an error that has no place in a file.
func (l *loader) faultOutside(summary, detail string, args ...any) {
	l.report(hcl.DiagError, nil, summary, detail, args)
}

func (l *loader) report(severity hcl.DiagnosticSeverity, at *hcl.Range, summary, detail string, args []any) {
	l.diags = append(l.diags, &hcl.Diagnostic{Severity: severity, Summary: summary, Detail: fmt.Sprintf(detail, args...), Subject: at})
}

// take adds the diagnostics of the HCL library, giving a place to those that
// have none.
func (l *loader) take(diags hcl.Diagnostics, at hcl.Range) {
	for _, d := range diags {
		own := *d
		if own.Subject == nil {
			own.Subject = &at
		}
		l.diags = append(l.diags, &own)
	}
}

// finish sorts the diagnostics and drops repetitions, which arise where one
// text is read twice, such as a variable file given twice.
func (l *loader) finish() hcl.Diagnostics {
	if l.unknown && !l.diags.HasErrors() {
		l.faultOutside("Value not known", "A value of the configuration could not be determined, and no reason was found. This is a bug: please report it with the configuration.")
	}
	slices.SortStableFunc(l.diags, compareDiagnostics)
	return slices.CompactFunc(l.diags, func(a, b *hcl.Diagnostic) bool { return compareDiagnostics(a, b) == 0 })
}

func compareDiagnostics(a, b *hcl.Diagnostic) int {
	return cmp.Or(
		compareRanges(a.Subject, b.Subject),
		cmp.Compare(a.Severity, b.Severity),
		cmp.Compare(a.Summary, b.Summary),
		cmp.Compare(a.Detail, b.Detail),
	)
}

// compareRanges orders by files and places; no place is before all.
func compareRanges(a, b *hcl.Range) int {
	a, b = cmp.Or(a, &hcl.Range{}), cmp.Or(b, &hcl.Range{})
	return cmp.Or(
		cmp.Compare(a.Filename, b.Filename),
		cmp.Compare(a.Start.Byte, b.Start.Byte),
		cmp.Compare(a.End.Byte, b.End.Byte),
	)
}

// where names a place within a sentence.
func where(at hcl.Range) string { return fmt.Sprintf("%s line %d", at.Filename, at.Start.Line) }

// fileStart is the place of a fault that concerns a file as a whole.
func fileStart(name string) hcl.Range {
	return hcl.Range{Filename: name, Start: hcl.InitialPos, End: hcl.InitialPos}
}

const (
	longestName = 60 // of what a message quotes or compares, in bytes
	longestList = 20 // names that a message lists
)

// didYouMean returns a sentence with a space before it, or "".
func didYouMean(suggestion string) string {
	if suggestion == "" {
		return ""
	}
	return fmt.Sprintf(" Did you mean %q?", suggestion)
}

// quoted quotes a name that a person wrote, cutting what is too long.
func quoted(name string) string {
	if len(name) > longestName {
		name = strings.ToValidUTF8(name[:longestName], "") + "…"
	}
	return fmt.Sprintf("%q", name)
}

// listed joins names for a sentence, in their order.
func listed(names []string) string {
	if len(names) > longestList {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:longestList], ", "), len(names)-longestList)
	}
	return strings.Join(names, ", ")
}

// sortedKeys returns the keys of m, sorted.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// hasWord reports whether text contains word between characters other than
// those of names. A nil text, of which nothing is known, has every word.
func hasWord(text []byte, word string) bool {
	words := bytes.FieldsFunc(text, func(r rune) bool {
		return r < 0x80 && !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-'
	})
	return text == nil || slices.ContainsFunc(words, func(w []byte) bool { return string(w) == word })
}
