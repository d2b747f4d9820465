package mac

import (
	"maps"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"
)

// filter is the state of pf in the kernel.
type filter struct {
	Enabled    bool                `json:"enabled"`
	Since      time.Time           `json:"since"`                // when it was last enabled or disabled
	References []reference         `json:"references,omitempty"` // which keep it enabled
	Rulesets   map[string]*ruleset `json:"rulesets"`             // by the anchor's path; "" is the main ruleset
	VMNet      *vmnet              `json:"vmnet,omitempty"`      // the network of virtual machines, while it runs
}

// reference is one reference that keeps pf enabled, as -E adds it.
type reference struct {
	PID     int       `json:"pid"`
	Process string    `json:"process"`
	Token   uint64    `json:"token"`
	Since   time.Time `json:"since"`
}

// ruleset is the main ruleset or an anchor's.
type ruleset struct {
	Rules  []pfRule          `json:"rules,omitempty"`
	Tables map[string]*table `json:"tables,omitempty"`
}

// pfRule is one loaded rule, with all lists expanded.
type pfRule struct {
	Kind   ruleKind `json:"kind"`
	Text   string   `json:"text"`             // as pfctl shows it
	Point  string   `json:"point,omitempty"`  // of an anchor point: the path that it calls, as written
	Tables []string `json:"tables,omitempty"` // that it names
	Ticket bool     `json:"ticket,omitempty"` // its owner can remove it again
}

// ruleKind is the kernel's list of a rule.
type ruleKind string

const (
	scrubRule    ruleKind = "scrub"
	natRule      ruleKind = "nat"
	rdrRule      ruleKind = "rdr"
	binatRule    ruleKind = "binat"
	dummynetRule ruleKind = "dummynet"
	filterRule   ruleKind = "filter"
)

// table is a set of addresses. One that a rule names without a definition exists too, inactive.
type table struct {
	Persist   bool           `json:"persist,omitempty"`
	Const     bool           `json:"const,omitempty"`
	Active    bool           `json:"active,omitempty"`
	Addresses []tableAddress `json:"addresses,omitempty"`
}

// tableAddress is an entry of a table.
type tableAddress struct {
	Prefix netip.Prefix `json:"prefix"`
	Not    bool         `json:"not,omitempty"`
}

// filter returns the present state of pf. A new Mac has the state after a boot with the provider's
// files.
func (v *visit) filter() (*filter, error) {
	live := &filter{}
	if err := v.recall(inMemory("pf"), live); err != nil {
		return nil, err
	}
	if live.Rulesets == nil {
		return v.bootedFilter(factoryRules)
	}
	live.complete()
	return live, nil
}

// complete fills in what a person may have left out.
func (f *filter) complete() {
	f.ruleset("")
	for anchor := range f.Rulesets {
		maps.DeleteFunc(f.ruleset(anchor).Tables, func(_ string, t *table) bool { return t == nil })
	}
}

func (v *visit) setFilter(live *filter) error { return v.keep(inMemory("pf"), live) }

// ruleset returns an anchor's rules, and creates them if they are missing.
func (f *filter) ruleset(anchor string) *ruleset {
	if f.Rulesets[anchor] == nil {
		f.Rulesets[anchor] = &ruleset{}
	}
	r := f.Rulesets[anchor]
	if r.Tables == nil {
		r.Tables = map[string]*table{}
	}
	return r
}

// of returns the rules of some kinds in their order.
func (r *ruleset) of(kinds ...ruleKind) []pfRule {
	var found []pfRule
	for _, kind := range kinds {
		for _, one := range r.Rules {
			if one.Kind == kind {
				found = append(found, one)
			}
		}
	}
	return found
}

// drop removes the rules of some kinds, and the tables that no other rule names.
func (r *ruleset) drop(kinds ...ruleKind) {
	r.Rules = slices.DeleteFunc(r.Rules, func(one pfRule) bool { return slices.Contains(kinds, one.Kind) })
	r.prune()
}

// prune keeps the tables that are persistent or named by a rule.
func (r *ruleset) prune() {
	named := map[string]bool{}
	for _, one := range r.Rules {
		for _, name := range one.Tables {
			named[name] = true
			if r.Tables[name] == nil {
				r.Tables[name] = &table{}
			}
		}
	}
	maps.DeleteFunc(r.Tables, func(name string, t *table) bool { return !named[name] && !t.Persist })
}

func (r *ruleset) empty() bool { return len(r.Rules) == 0 && len(r.Tables) == 0 }

// tidy removes empty anchors.
func (f *filter) tidy() {
	maps.DeleteFunc(f.Rulesets, func(anchor string, r *ruleset) bool { return anchor != "" && r.empty() })
}

// anchors returns all anchors: those with rules, those that a point calls, and their parents.
func (f *filter) anchors() []string {
	found := map[string]bool{}
	add := func(anchor string) {
		for ; anchor != "" && anchor != "."; anchor = path.Dir(anchor) {
			found[anchor] = true
		}
	}
	for anchor, r := range f.Rulesets {
		add(anchor)
		for _, one := range r.Rules {
			if one.Point != "" {
				add(strings.TrimSuffix(pointed(anchor, one.Point), "/*"))
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// pointed returns the anchor that a point within an anchor calls.
func pointed(anchor, point string) string {
	if rest, absolute := strings.CutPrefix(point, "/"); absolute {
		return rest
	}
	return path.Join(anchor, point)
}

// evaluated returns the anchors whose filter rules apply to a packet: those that a point of an
// evaluated ruleset calls. A point that ends in /* calls all direct children.
func (f *filter) evaluated() []string {
	met := map[string]bool{"": true}
	for queue := []string{""}; len(queue) > 0; queue = queue[1:] {
		for _, one := range f.ruleset(queue[0]).of(filterRule) {
			for anchor := range f.Rulesets {
				if one.Point != "" && !met[anchor] && leads(pointed(queue[0], one.Point), anchor) {
					met[anchor] = true
					queue = append(queue, anchor)
				}
			}
		}
	}
	delete(met, "")
	return slices.Sorted(maps.Keys(met))
}

func leads(point, anchor string) bool {
	if folder, all := strings.CutSuffix(point, "*"); all {
		return path.Dir(anchor) == path.Clean(folder)
	}
	return point == anchor
}
