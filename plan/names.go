package plan

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
)

// shortestEnd is how many characters the end of a name needs to stand for the whole name.
const shortestEnd = 4

// Names are names of hosts as people read and type them. A name that follows the grammar has the
// short form fleet/suffix, such as macos/fba75, where no other host has the same.
type Names struct {
	all    []string            // full names, sorted, each once
	short  map[string]string   // by full name: its short form, unique or not
	bearer map[string][]string // by short form: full names
	prefix string
}

// NewNames returns the names of an owner's hosts. Without an owner any name that follows the
// grammar has a short form.
func NewNames(owner fleet.Owner, hosts []string) Names {
	n := Names{all: slices.Compact(slices.Sorted(slices.Values(hosts))), short: make(map[string]string), bearer: make(map[string][]string)}
	owners := make(map[string]bool)
	for _, name := range n.all {
		of, short := shortForm(name)
		if short == "" || owner != (fleet.Owner{}) && of != owner.String() {
			continue
		}
		n.short[name], n.bearer[short] = short, append(n.bearer[short], name)
		owners[of] = true
	}
	if len(owners) == 1 {
		for of := range owners {
			n.prefix = of + "-"
		}
	}
	return n
}

// Names returns the names of all hosts that the plan is about.
func (p *Plan) Names() Names {
	var all []string
	for i := range p.Hosts {
		all = append(all, p.Hosts[i].Name)
	}
	for i := range p.Lost {
		all = append(all, p.Lost[i].Name)
	}
	for i := range p.Orphans {
		all = append(all, p.Orphans[i].Name)
	}
	return NewNames(p.Owner, all)
}

// Prefix is what all names that have a short form begin with, such as acme-production-; "" where
// none has one. A heading prints it once.
func (n Names) Prefix() string { return n.prefix }

// Short returns the short form of a name, or the name itself where it has none or another host
// has the same.
func (n Names) Short(name string) string {
	if short, ok := n.short[name]; ok && len(n.bearer[short]) == 1 {
		return short
	}
	return name
}

// Find returns the names that a text stands for: a full name; a short form; the end of one name,
// of at least 4 characters; or a pattern (path.Match) of full names or short forms, which may match
// several. A text that only ends several names is an error that lists them.
func (n Names) Find(text string) ([]string, error) {
	found, err := n.matching(text)
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, fmt.Errorf("no host matches %q%s", text, n.hint(text))
	case len(found) > 1 && !isPattern(text):
		return nil, &ambiguousError{text, found}
	}
	return found, nil
}

// One returns the one name that a text stands for, "" where it stands for none. A text that stands
// for several is an error.
func (n Names) One(text string) (string, error) {
	found, err := n.matching(text)
	switch {
	case err != nil || len(found) == 0:
		return "", err
	case len(found) > 1:
		return "", &ambiguousError{text, found}
	}
	return found[0], nil
}

// matching returns all names that a text may stand for.
func (n Names) matching(text string) ([]string, error) {
	if _, exact := slices.BinarySearch(n.all, text); exact {
		return []string{text}, nil
	}
	if !isPattern(text) {
		if found := n.bearer[text]; len(found) > 0 || len(text) < shortestEnd {
			return found, nil
		}
		return n.where(func(name string) bool { return strings.HasSuffix(name, text) }), nil
	}
	if _, err := path.Match(text, ""); err != nil {
		return nil, fmt.Errorf("the pattern %q is not complete", text)
	}
	is := func(name string) bool { ok, _ := path.Match(text, name); return ok }
	return n.where(func(name string) bool { return is(name) || n.short[name] != "" && is(n.short[name]) }), nil
}

func (n Names) where(is func(string) bool) []string {
	var out []string
	for _, name := range n.all {
		if is(name) {
			out = append(out, name)
		}
	}
	return out
}

// hint ends the error of a text that stands for no name.
func (n Names) hint(text string) string {
	switch near := n.nearest(text); {
	case near != "":
		return "; did you mean " + near + "?"
	case len(text) < shortestEnd && !isPattern(text):
		return fmt.Sprintf("; type at least %d characters of the end of its name", shortestEnd)
	case len(n.containing(text)) > 1:
		return "; type more of the name: " + sampleOf(n.containing(text)) + " contain it"
	case len(n.all) > 0:
		return "; hosts are " + sampleOf(n.all)
	}
	return ""
}

// containing returns the names that a text is a part of, such as the beginning of a suffix.
func (n Names) containing(text string) []string {
	if len(text) < shortestEnd {
		return nil
	}
	return n.where(func(name string) bool { return strings.Contains(name, text) || strings.Contains(n.short[name], text) })
}

// nearest returns the name that a text may be a slip for. One wrong character of a suffix is a
// slip; two are another host.
func (n Names) nearest(text string) string {
	if near := fleet.Nearest(text, n.all); near != "" {
		return near
	}
	for _, name := range n.all {
		end := name[max(0, len(name)-len(text)):]
		if short := n.short[name]; len(text) >= shortestEnd && (oneOff(text, end) || oneOff(text, short)) {
			return name
		}
	}
	if found := n.containing(text); len(found) == 1 {
		return found[0]
	}
	return ""
}

// oneOff reports whether texts of one length differ in one character.
func oneOff(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	wrong := 0
	for i := range len(a) {
		if a[i] != b[i] {
			wrong++
		}
	}
	return wrong == 1
}

// ambiguousError is about a text that stands for several names where one is required.
type ambiguousError struct {
	text  string
	names []string
}

func (e *ambiguousError) Error() string {
	return fmt.Sprintf("%q matches %d names: %s; type more of the name", e.text, len(e.names), strings.Join(e.names, ", "))
}

// shortForm returns the owner's part and the short form of a name that follows the grammar, else "".
func shortForm(name string) (owner, short string) {
	owner, at, ok := fleet.Split(name, name[max(0, len(name)-fleet.SuffixLength):])
	if !ok {
		return "", ""
	}
	return owner, at.Fleet + "/" + at.Suffix
}

// isPattern reports whether path.Match reads a text as more than itself.
func isPattern(text string) bool { return strings.ContainsAny(text, `*?[\`) }

// exactly is the pattern that matches a name and no other.
func exactly(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}

// bearers are hosts by all the names they go by.
type bearers struct {
	Names
	by map[string][]*placed
}

func newBearers(owner fleet.Owner, hosts []*placed, names func(*placed) []string) bearers {
	b := bearers{by: make(map[string][]*placed)}
	var all []string
	for _, p := range hosts {
		for _, name := range names(p) {
			b.by[name], all = append(b.by[name], p), append(all, name)
		}
	}
	b.Names = NewNames(owner, all)
	return b
}

// one returns the host that a text stands for, the first of those that are the same server, and nil
// where it stands for none. A text that ends names of several servers is an error.
func (b bearers) one(text string) (*placed, error) {
	found, err := b.matching(text)
	if err != nil {
		return nil, err
	}
	var p *placed
	for _, name := range found {
		for _, other := range b.by[name] {
			if p != nil && p.server.ID != other.server.ID {
				return nil, &ambiguousError{text, found}
			}
			p = cmp.Or(p, other)
		}
	}
	return p, nil
}

// Meant is a part of a host's name that a person gave, and the name it stands for.
type Meant struct{ Given, Name string }

// Resolve puts full names in the place of their short forms and ends, in the selectors' names and
// in ForceBusy; those of Passwords are only entered into Meant. From then on a run means the same hosts, even if
// others join the lists. A text without a match stays, and CheckSelection reports it.
func Resolve(cfg *fleet.Config, snap Snapshot, sel Selection) (Selection, error) {
	if !sel.names() {
		return sel, nil
	}
	c := takeCensus(cfg, snap)
	hosts := c.hosts(c.assign(sel))
	for i := range c.servers {
		if p := &c.servers[i]; p.role == orphan {
			hosts = append(hosts, p)
		}
	}
	known := newBearers(cfg.Owner, hosts, func(p *placed) []string { return p.names() })
	full := func(text string) (string, error) {
		if isPattern(text) || known.by[text] != nil {
			return text, nil
		}
		p, err := known.one(text)
		if err != nil || p == nil {
			return text, err
		}
		sel.Meant = append(sel.Meant, Meant{text, p.name})
		return p.name, nil
	}
	var err error
	if !sel.Former { // a run of the past recorded full names
		if sel.On, err = resolved(sel.On, full); err != nil {
			return sel, fmt.Errorf("--on: %w", err)
		}
	}
	if sel.Exclude, err = resolved(sel.Exclude, full); err != nil {
		return sel, fmt.Errorf("--exclude: %w", err)
	}
	sel.ForceBusy = slices.Clone(sel.ForceBusy)
	for i, text := range sel.ForceBusy {
		if sel.ForceBusy[i], err = full(text); err != nil {
			return sel, fmt.Errorf("--force-busy: %w", err)
		}
	}
	for _, text := range sel.Passwords {
		if _, err = full(text); err != nil {
			return sel, fmt.Errorf("--ask-password: %w", err)
		}
	}
	return sel, nil
}

// names reports whether the selection names hosts.
func (s Selection) names() bool {
	return len(s.ForceBusy)+len(s.Passwords) > 0 || slices.ContainsFunc(slices.Concat(s.On, s.Exclude), func(s Selector) bool {
		return slices.ContainsFunc(s.terms, func(t fleet.SelectorTerm) bool { return t.Key == "name" })
	})
}

func resolved(all []Selector, full func(string) (string, error)) ([]Selector, error) {
	out := make([]Selector, 0, len(all))
	for _, s := range all {
		terms := slices.Clone(s.terms)
		for i := range terms {
			if t := &terms[i]; t.Key == "name" {
				name, err := full(t.Pattern)
				if err != nil {
					return nil, err
				}
				if name != t.Pattern {
					t.Pattern = exactly(name)
				}
			}
		}
		out = append(out, Selector{terms})
	}
	return out, nil
}
