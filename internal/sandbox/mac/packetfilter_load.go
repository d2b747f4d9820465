package mac

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// loading is one transaction: rules are loaded into the kernel as one, or none is.
type loading struct {
	live     *filter
	read     func(name string) ([]byte, error)
	switched func(name string) string
	only     []ruleKind // the lists that are replaced; none: all, and the tables

	next   *filter
	loaded map[string]bool // the anchors of this transaction
	full   bool            // the main ruleset is loaded
	files  []pfFile        // in the order in which they were read, for -v
}

// loadError is why a transaction failed: lines for stderr, and whether the simulation lacks something.
type loadError struct {
	lines      []string
	unmodelled bool
}

func (e *loadError) Error() string { return strings.Join(e.lines, "\n") }

// maxLoads limits how deep files may load each other.
const maxLoads = 16

// load loads a file's text into an anchor, "" for the main ruleset, and returns the new state of pf.
func (l *loading) load(name, text, anchor string) (*filter, error) {
	next, err := l.live.clone()
	if err != nil {
		return nil, err
	}
	l.next, l.loaded, l.full = next, map[string]bool{}, anchor == "" && l.only == nil
	if err := l.file(name, text, anchor, 0); err != nil {
		return nil, err
	}
	for _, r := range l.next.Rulesets {
		r.prune()
	}
	if l.full && l.next.VMNet != nil && l.switched("full-load-nat") == "broken" {
		l.next.VMNet.Broken = true
	}
	l.next.tidy()
	return l.next, nil
}

func (f *filter) clone() (*filter, error) {
	data, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("copy the rules: %w", err)
	}
	var next filter
	if err := json.Unmarshal(data, &next); err != nil {
		return nil, fmt.Errorf("copy the rules: %w", err)
	}
	next.complete()
	return &next, nil
}

func (l *loading) file(name, text, anchor string, depth int) error {
	parsed, faults, lacks := parsePF(text)
	if len(lacks) > 0 {
		return &loadError{lacks, true}
	}
	if len(faults) > 0 {
		failed := &loadError{}
		for _, fault := range faults {
			failed.lines = append(failed.lines, fmt.Sprintf("%s:%d: %s", name, fault.line, fault.text))
		}
		return failed
	}
	l.files = append(l.files, parsed)
	return l.install(name, parsed, anchor, depth)
}

// install defines the content of a file or an anchor in braces, and of the files that it loads.
func (l *loading) install(name string, parsed pfFile, anchor string, depth int) error {
	if err := l.define(name, parsed, anchor); err != nil {
		return err
	}
	for _, inline := range parsed.inline {
		if err := l.install(name, inline.body, path.Join(anchor, inline.anchor), depth); err != nil {
			return err
		}
	}
	for _, statement := range parsed.loads {
		if err := l.loadAnchor(statement, anchor, depth); err != nil {
			return err
		}
	}
	return nil
}

func (l *loading) loadAnchor(statement pfLoad, anchor string, depth int) error {
	target := path.Join(anchor, statement.anchor)
	if depth >= maxLoads {
		return &loadError{lines: []string{"pfctl: load anchor: " + target + ": too deep"}}
	}
	text, err := l.read(statement.file)
	if err != nil {
		return &loadError{lines: []string{"pfctl: " + statement.file + ": " + why(err), "pfctl: load anchors"}}
	}
	return l.file(statement.file, string(text), target, depth+1)
}

func busy(file string, line int, table string) error {
	return &loadError{lines: []string{fmt.Sprintf("%s:%d: cannot define table %s: Resource busy", file, line, table)}}
}

// define replaces the content of an anchor. A table cannot be defined twice in one transaction, nor in
// an anchor while a persistent one of its name is in the kernel.
func (l *loading) define(name string, parsed pfFile, anchor string) error {
	again := l.loaded[anchor]
	r := l.next.ruleset(anchor)
	if !again {
		r.Rules = slices.DeleteFunc(r.Rules, l.replaces)
		l.retire(r)
	}
	l.loaded[anchor] = true
	if l.only != nil {
		r.Rules = append(r.Rules, slices.DeleteFunc(slices.Clone(parsed.rules), func(one pfRule) bool { return !l.replaces(one) })...)
		return nil
	}
	for _, def := range parsed.tables {
		if again || anchor != "" && l.taken(anchor, def.name) {
			return busy(name, def.line, def.name)
		}
		fresh := def.table
		if old := l.inKernel("", def.name); anchor == "" && l.switched("table-contents") == "kept" {
			for _, address := range old.Addresses {
				fresh.add(address)
			}
		}
		r.Tables[def.name] = &fresh
	}
	r.Rules = append(r.Rules, parsed.rules...)
	return nil
}

// replaces reports whether a rule is in a list that is replaced.
func (l *loading) replaces(one pfRule) bool {
	return l.only == nil || slices.Contains(l.only, one.Kind)
}

// retire removes the tables of removed rules, but not the persistent ones.
func (l *loading) retire(r *ruleset) {
	for name, t := range r.Tables {
		if !t.Persist && l.only == nil {
			delete(r.Tables, name)
		}
	}
}

// taken reports whether a table of the kernel conflicts with an anchor's new one.
func (l *loading) taken(anchor, name string) bool {
	own, main := l.inKernel(anchor, name), l.inKernel("", name)
	return own.Persist || main.Persist || own.Active && l.full && l.switched("full-load-busy") == "yes"
}

func (l *loading) inKernel(anchor, name string) table {
	if r := l.live.Rulesets[anchor]; r != nil && r.Tables[name] != nil {
		return *r.Tables[name]
	}
	return table{}
}

// explain returns the lines for stderr of a failed load.
func explain(err error) (lines []string, unmodelled bool) {
	var known *loadError
	if errors.As(err, &known) {
		return known.lines, known.unmodelled
	}
	return []string{"pfctl: " + err.Error()}, false
}
