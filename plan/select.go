package plan

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// Selector keeps the hosts whose properties all match. Values are shell
// patterns (path.Match); that of a name may match the short form, too.
type Selector struct{ terms []fleet.SelectorTerm }

// ParseSelector reads "fleet=runners,zone=fr-par-1,ready=false,name=…". The
// error names the keys that exist.
func ParseSelector(text string) (Selector, error) {
	terms, err := fleet.SelectorTerms(text)
	return Selector{terms}, err
}

// String returns the selector as ParseSelector reads it.
func (s Selector) String() string {
	var parts []string
	for _, t := range s.terms {
		parts = append(parts, t.Key+"="+t.Pattern)
	}
	return strings.Join(parts, ",")
}

func texts(all []Selector) []string {
	var out []string
	for _, s := range all {
		out = append(out, s.String())
	}
	return out
}

// Selection is what a run is limited to: hosts that match any of On and none of Exclude, and on them the
// Steps; an empty list means all. With Steps, servers are not changed.
type Selection struct {
	On, Exclude []Selector
	Steps       []StepID
	Decisions
	ForceBusy []string // names of hosts that are changed without waiting until they are idle
	// Departs limits the run to a server that a person asked to leave; nil: it is not limited so.
	Departs   *Departure
	Former    bool          // On has hosts of an earlier run: those that no longer exist are ignored
	Passwords []string      // names of hosts whose login passwords a person typed
	Meant     []Meant       // what Resolve found short forms and ends of names to stand for
	WhatIf    []fleet.Scale // groups for which the configuration was given other numbers of servers
}

// IsAll reports whether everything is selected.
func (s Selection) IsAll() bool { return s.allHosts() && len(s.Steps) == 0 }

func (s Selection) allHosts() bool {
	return len(s.On)+len(s.Exclude) == 0 && !s.AdoptOnly && s.Departs == nil
}

// Includes reports whether a step is among those that the run is limited to.
func (s Selection) Includes(id StepID) bool { return len(s.Steps) == 0 || slices.Contains(s.Steps, id) }

// ParseSteps reads the names of steps that a run is limited to. The error names
// the steps that exist.
func ParseSteps(names []string, stepsFor StepsFor) ([]StepID, error) {
	var known []string
	for _, s := range stepsFor(fleet.Host{}) {
		known = append(known, string(s.ID()))
	}
	var out []StepID
	for _, name := range names {
		if err := fleet.Among("step", name, known); err != nil {
			return nil, err
		}
		out = append(out, StepID(name))
	}
	return out, nil
}

func (s Selection) matches(p *placed) bool {
	if s.AdoptOnly && !p.adopted {
		return false
	}
	if s.Departs != nil {
		return s.Departs.matches(p)
	}
	is := func(sel Selector) bool { return sel.matches(p) }
	return (len(s.On) == 0 || slices.ContainsFunc(s.On, is)) && !slices.ContainsFunc(s.Exclude, is)
}

func (s Selector) matches(p *placed) bool {
	for _, t := range s.terms {
		if t.Key == "zone" && p.role >= gone {
			continue // a selector cannot leave out what may be in any zone
		}
		if !matchesAny(t.Pattern, p.values(t.Key)) && !(t.Key == "name" && p.matchesShort(t.Pattern)) {
			return false
		}
	}
	return true
}

func matchesAny(pattern string, values []string) bool {
	return slices.ContainsFunc(values, func(v string) bool { ok, _ := path.Match(pattern, v); return ok })
}

// matchesShort reports whether a pattern such as runners/* matches the short form of a host's
// name. A short form that is no pattern never gets here: Resolve puts one full name in its place.
func (p *placed) matchesShort(pattern string) bool {
	if !isPattern(pattern) || !strings.Contains(pattern, "/") || p.adopted {
		return false
	}
	_, short := shortForm(p.name)
	return short != "" && matchesAny(pattern, []string{short})
}

// values are what a selector may match for a property.
func (p *placed) values(key string) []string {
	switch {
	case key == "name":
		return p.names()
	case key == "type" && p.role == lacking:
		return p.types
	}
	return []string{p.property(key)}
}

// names are those that a host goes by: one that moves is found by the name that it still has at the
// provider, or as a Node, too.
func (p *placed) names() []string {
	out := []string{p.name}
	n, _ := p.node.Get()
	for _, name := range []string{p.server.Name, n.Name} {
		if slices.Contains(p.former, name) {
			out = append(out, name)
		}
	}
	return out
}

func (p *placed) property(key string) string {
	switch key {
	case "fleet":
		return p.place.Fleet
	case "group":
		return p.place.Group
	case "name":
		return p.name
	case "ready":
		// Only the Node decides: a selection says which hosts are contacted, so it cannot depend on their answers.
		return strconv.FormatBool(ready(p.node))
	case "type":
		return p.server.Type
	default:
		return p.server.Zone
	}
}

// CheckSelection returns an error if a selector names something that does not exist, or if no host is left: a
// mistyped name must not look like a clean fleet. Only ready=… may match no host.
func CheckSelection(cfg *fleet.Config, snap Snapshot, sel Selection) error {
	if sel.allHosts() {
		return nil
	}
	values := make(map[string][]string)
	c := takeCensus(cfg, snap)
	hosts := c.hosts(c.assign(sel))
	for _, f := range cfg.Fleets {
		values["fleet"] = append(values["fleet"], f.Name)
		for _, g := range f.Groups {
			hosts = append(hosts, lackingIn(f, g)) // a group without hosts may be selected
		}
	}
	for i := range c.servers {
		if p := &c.servers[i]; p.role == orphan {
			hosts = append(hosts, p)
			values["fleet"] = append(values["fleet"], p.place.Fleet)
		}
	}
	for _, p := range hosts {
		for _, key := range []string{"group", "name", "type", "zone"} {
			for _, v := range p.values(key) {
				if v != "" {
					values[key] = append(values[key], v)
				}
			}
		}
	}
	values["zone"] = append(values["zone"], c.vendor.Zones...)
	live := false // Nodes become Ready and not Ready by themselves, so ready=… may match no host
	for i, s := range slices.Concat(sel.On, sel.Exclude) {
		for _, t := range s.terms {
			live = live || t.Key == "ready"
			if sel.Former && i < len(sel.On) {
				continue
			}
			if t.Key == "name" && slices.ContainsFunc(hosts, func(p *placed) bool { return p.matchesShort(t.Pattern) }) {
				continue
			}
			if err := checkTerm(t, values[t.Key]); err != nil {
				return err
			}
		}
	}
	switch {
	case live || slices.ContainsFunc(hosts, sel.matches):
		return nil
	case sel.Former:
		return errors.New("--failed-from: none of the hosts that run left unfinished exists any more; run macfleet plan")
	}
	return sel.nothing(hosts)
}

// nothing is the error of a selection that no host matches, although each value of its selectors exists.
func (s Selection) nothing(hosts []*placed) error {
	switch on := (Selection{On: s.On}); {
	case s.AdoptOnly && !slices.ContainsFunc(hosts, Selection{Decisions: Decisions{AdoptOnly: true}}.matches):
		return errors.New("no host is selected: no host block adopts a server; macfleet import writes such blocks")
	case s.AdoptOnly:
		return errors.New("no host is selected: --on and --exclude leave no adopted server; macfleet plan --adopt-only shows all")
	case len(s.On) == 0:
		return errors.New("no host is selected: --exclude matches all hosts")
	case slices.ContainsFunc(hosts, on.matches):
		return errors.New("no host is selected: --exclude matches all hosts that --on selects")
	case len(s.On) > 1:
		return fmt.Errorf("no host is selected: none matches all of %s; the terms of one selector must all match", strings.Join(texts(s.On), " or all of "))
	}
	return fmt.Errorf("no host is selected: none matches all of %s; for hosts that match one of several selectors, repeat --on", s.On[0])
}

func checkTerm(t fleet.SelectorTerm, known []string) error {
	if t.Key == "ready" || matchesAny(t.Pattern, known) {
		return nil
	}
	slices.Sort(known)
	hint := ""
	if near := fleet.Nearest(t.Pattern, known); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	} else if t.Key == "name" {
		hint = NewNames(fleet.Owner{}, known).hint(t.Pattern)
	} else if len(known) > 0 {
		hint = "; known: " + sampleOf(slices.Compact(known))
	}
	return fmt.Errorf("no host has %s=%s%s", t.Key, t.Pattern, hint)
}

// SelectHost returns the selection of one host, by any name that Find takes.
func SelectHost(cfg *fleet.Config, snap Snapshot, name string) (Selection, error) {
	p, err := find(cfg, snap, name)
	if err != nil {
		return Selection{}, err
	}
	return Selection{On: []Selector{{[]fleet.SelectorTerm{{Key: "name", Pattern: exactly(p.name)}}}}}, nil
}

// CheckLists returns the selection with the full names of hosts, and an error if the providers' lists do not
// allow a plan. It ignores the hosts' answers: a recorded observation is judged as before they were read.
func CheckLists(cfg *fleet.Config, snap Snapshot, sel Selection) (Selection, error) {
	snap.Hosts = nil
	if err := CheckInventory(cfg, snap); err != nil {
		return sel, err
	}
	if sel.Departs != nil {
		found, err := sel.Departs.found(cfg, snap)
		sel.Departs = found
		return sel, err
	}
	sel, err := Resolve(cfg, snap, sel)
	if err != nil {
		return sel, err
	}
	return sel, CheckSelection(cfg, snap, sel)
}

// Keeps reports whether a selector keeps a host of a plan.
func (s Selector) Keeps(h Host) bool {
	return s.matches(&placed{role: member, name: h.Name, place: fleet.Place{Fleet: h.Fleet, Group: h.Group}, server: h.Server, node: h.Node, former: h.formerNames()})
}

// Find returns the server that a person means: by the name it should have, by its present name at
// the provider, by its id, by the name under which its key is pinned, or by what Names.Find takes of
// one of these names. The error says that a server vanished, or which name is similar.
func Find(cfg *fleet.Config, snap Snapshot, name string) (inventory.Server, error) {
	p, err := find(cfg, snap, name)
	return p.server, err
}

func find(cfg *fleet.Config, snap Snapshot, name string) (placed, error) {
	c := takeCensus(cfg, snap)
	all := c.hosts(c.assign(Selection{})) // a server that is claimed goes by the name it gets
	byName := func(p *placed) bool { return p.name == name && p.role != gone }
	if i := slices.IndexFunc(all, byName); i >= 0 {
		return *all[i], nil
	}
	for i := range c.servers {
		all = append(all, &c.servers[i])
	}
	pins := make(map[string][]string) // names by server id
	for _, p := range snap.Pins {
		pins[p.ServerID] = append(pins[p.ServerID], p.Name)
	}
	for _, means := range []func(*placed) bool{
		func(p *placed) bool { return p.server.Name == name || p.server.ID == name },
		func(p *placed) bool { return slices.Contains(pins[p.server.ID], name) },
	} {
		if i := slices.IndexFunc(all, func(p *placed) bool { return p.role != gone && means(p) }); i >= 0 {
			return *all[i], nil
		}
	}
	known := newBearers(cfg.Owner, all, func(p *placed) []string {
		return slices.DeleteFunc(append([]string{p.name, p.server.Name}, pins[p.server.ID]...), func(n string) bool { return n == "" })
	})
	p, err := known.one(name)
	switch {
	case err != nil:
		return placed{}, err
	case p != nil && p.role != gone:
		return *p, nil
	case p != nil:
		t := c.vanished(p)
		return placed{}, fmt.Errorf("%s: %w", p.name, &t)
	}
	hint := "; macfleet hosts lists the members, " + c.vendor.Console() + " lists all servers"
	switch near := known.nearest(name); {
	case strings.Contains(name, "="):
		return placed{}, fmt.Errorf("%q is a selector, and one HOST is needed; macfleet hosts --on %[1]s lists its hosts", name)
	case near != "":
		hint = "; did you mean " + near + "?"
	case len(name) < shortestEnd || len(known.containing(name)) > 1:
		hint = known.hint(name)
	}
	return placed{}, fmt.Errorf("no server is named %s%s", name, hint)
}

var codeNotAsked = NewCode("not-asked", Warning, "the host was not contacted", "run the command again")

func notContacted() *Trouble {
	return codeNotAsked.Trouble("the host is not in the snapshot, which was recorded for less", "record a new one: macfleet plan --record FILE")
}

// Subject is one server as a plan sees it, whatever its role.
type Subject struct {
	Host
	Pooled bool     // free to be claimed
	Orphan *Trouble // why it has no place in the configuration although it is a member; nil: it has one, or is not a member
	// Fleet and Group are those of a member. For another server they are the first that need its type, or the
	// first of all: it would have to answer their probes.
	Fleet fleet.Fleet
	Group fleet.Group
}

// SubjectOf returns a server of a snapshot. It is pure.
func SubjectOf(cfg *fleet.Config, snap Snapshot, serverID string) Subject {
	c := takeCensus(cfg, snap)
	var at placed
	for _, p := range c.servers {
		if p.server.ID == serverID {
			at = p
		}
	}
	s := Subject{Pooled: at.role == pool, Orphan: at.placeless}
	for _, f := range cfg.Fleets {
		for _, g := range f.Groups {
			own := at.role == member && at.place.Fleet == f.Name && at.place.Group == g.Name
			nearer := at.role != member && g.Accepts(at.server.Type) && !s.Group.Accepts(at.server.Type)
			if own || nearer || s.Fleet.Name == "" {
				s.Fleet, s.Group = f, g
			}
		}
	}
	at.place = fleet.Place{Fleet: s.Fleet.Name, Group: s.Group.Name}
	s.Host = c.host(s.Group, &at)
	looked := &computation{census: c}
	if t := c.unready(at.server); s.Member {
		looked.watchServer(&s.Host, nil)
	} else if t != nil {
		s.Warnings = append(s.Warnings, StepWarning{OfServer: true, Trouble: *t})
	}
	looked.watchNode(&s.Host, nil)
	s.trust = c.trusts().of(&at)
	return s
}
