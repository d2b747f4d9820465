package fleet

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// MaxIgnore limits how far ahead an ignore may reach: a longer exception belongs in the configuration.
const MaxIgnore = 180 * 24 * time.Hour

// Ignore is drift that raises no alert until a day. It has no other effect: apply fixes it anyway.
type Ignore struct {
	Name   string    `hcl:"name,label" is:"ignore"`
	Step   string    `hcl:"step,optional" is:"step"`   // a step, or another part of DriftParts; empty: any
	Code   string    `hcl:"code,optional" is:"code"`   // of the reason; empty: any. Step or Code is set
	On     string    `hcl:"on,optional" is:"selector"` // a selector of hosts, as SelectorTerms reads it; empty: all
	Field  string    `hcl:"field,optional" is:"note"`  // the field of a difference that is ignored; empty: all
	Owner  string    `hcl:"owner" is:"note"`           // who is responsible
	Reason string    `hcl:"reason" is:"note"`
	Until  time.Time // the last day of the ignore, at 0:00 UTC
}

// Expires returns when it expires: at the end of its last day, in UTC.
func (i Ignore) Expires() time.Time { return i.Until.AddDate(0, 0, 1) }

// Expired reports whether it has expired at t.
func (i Ignore) Expired(t time.Time) bool { return !t.Before(i.Expires()) }

// TooLong reports whether it reaches further ahead of t than allowed.
func (i Ignore) TooLong(t time.Time) bool {
	t = t.UTC()
	today := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	return i.Until.Sub(today) > MaxIgnore
}

// DriftParts are what can drift of a host or the cluster apart from steps: the kinds of actions that are not
// a step's.
func DriftParts() []string {
	return []string{"delete-node", "identity", "marker", "node", "object", "orphan", "pods", "provider-id", "rename", "revoke"}
}

const maxNote = 200

// checkNote says what is wrong with the owner, reason or field of an ignore, or "".
func checkNote(text string) string {
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	switch {
	case strings.TrimSpace(text) == "":
		return "it must not be empty"
	case len(text) > maxNote || strings.ContainsFunc(text, control):
		return fmt.Sprintf("it must be one line of at most %d bytes", maxNote)
	}
	return ""
}

// SelectorTerm is one property of a host and the shell pattern (path.Match) that its
// value must match.
type SelectorTerm struct{ Key, Pattern string }

// SelectorKeys are the properties of hosts that a selector may name.
func SelectorKeys() []string { return []string{"fleet", "group", "name", "ready", "type", "zone"} }

// SelectorTerms reads "fleet=runners,zone=fr-par-1,ready=false,name=…". The error
// names the keys that exist.
func SelectorTerms(text string) ([]SelectorTerm, error) {
	var terms []SelectorTerm
	for _, part := range strings.Split(text, ",") {
		key, pattern, found := strings.Cut(part, "=")
		if !found && part != "" {
			return nil, fmt.Errorf("selector %q: use key=value, for example name=%s; the keys are %s", text, part, strings.Join(SelectorKeys(), ", "))
		}
		if pattern == "" {
			return nil, fmt.Errorf("selector %q: use key=value, where key is one of %s", text, strings.Join(SelectorKeys(), ", "))
		}
		if !slices.Contains(SelectorKeys(), key) {
			return nil, fmt.Errorf("selector %q: unknown key %q; the keys are %s", text, key, strings.Join(SelectorKeys(), ", "))
		}
		if key == "ready" && pattern != "true" && pattern != "false" {
			return nil, fmt.Errorf("selector %q: ready must be true or false", text)
		}
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, fmt.Errorf("selector %q: invalid pattern %q", text, pattern)
		}
		terms = append(terms, SelectorTerm{key, pattern})
	}
	return terms, nil
}
