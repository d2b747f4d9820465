package plan

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// Selector keeps the hosts whose properties all match. Values are shell
// patterns (path.Match).
type Selector struct{ terms []fleet.SelectorTerm }

// ParseSelector reads "fleet=runners,zone=fr-par-1,ready=false,name=…". The
// error names the keys that exist.
func ParseSelector(text string) (Selector, error) {
	terms, err := fleet.SelectorTerms(text)
	return Selector{terms}, err
}

// Selection is what a run is limited to: hosts that match any of On (all, when
// there is none) and none of Exclude, and on them the Steps (all, when there is
// none). With Steps no server is claimed, renamed, released or replaced.
type Selection struct {
	On, Exclude []Selector
	Steps       []StepID
	Rollback    bool     // the version that a host had before is wanted, of what comes as an artifact
	ForceBusy   []string // names of hosts that are changed whatever goes on there
	Former      bool     // On names hosts as they were once: those that are gone are passed over
}

// IsAll reports whether the selection leaves nothing out.
func (s Selection) IsAll() bool { return s.allHosts() && len(s.Steps) == 0 }

func (s Selection) allHosts() bool { return len(s.On)+len(s.Exclude) == 0 }

// Asks reports whether a step is among those that the run is limited to.
func (s Selection) Asks(id StepID) bool { return len(s.Steps) == 0 || slices.Contains(s.Steps, id) }

// ParseSteps reads the names of steps that a run is limited to. The error names
// the steps that exist.
func ParseSteps(names []string, stepsFor StepsFor) ([]StepID, error) {
	var known []string
	for _, s := range stepsFor(fleet.Host{}) {
		known = append(known, string(s.ID()))
	}
	var out []StepID
	for _, name := range names {
		if !slices.Contains(known, name) {
			hint := ""
			if near := fleet.Nearest(name, known); near != "" {
				hint = fmt.Sprintf(" did you mean %q?", near)
			}
			return nil, fmt.Errorf("there is no step %q;%s the steps are %s", name, hint, strings.Join(known, ", "))
		}
		out = append(out, StepID(name))
	}
	return out, nil
}

// subject is a host as selectors see it.
type subject struct {
	name, fleet, group string
	server             inventory.Server
	ready              bool
	anywhere           bool // its zone is not decided, and no selector leaves it out for that
}

func (s Selection) matches(h subject) bool {
	any := func(all []Selector) bool {
		return slices.ContainsFunc(all, func(sel Selector) bool { return sel.matches(h) })
	}
	return (len(s.On) == 0 || any(s.On)) && !any(s.Exclude)
}

func (s Selector) matches(h subject) bool {
	for _, t := range s.terms {
		if t.Key == "zone" && h.anywhere {
			continue
		}
		if ok, _ := path.Match(t.Pattern, h.property(t.Key)); !ok {
			return false
		}
	}
	return true
}

func (h subject) property(key string) string {
	switch key {
	case "fleet":
		return h.fleet
	case "group":
		return h.group
	case "name":
		return h.name
	case "ready":
		return fmt.Sprint(h.ready)
	case "type":
		return h.server.Type
	default:
		return h.server.Zone
	}
}

// CheckSelection returns an error when a selector names a host, fleet, group,
// type or zone that does not exist: a mistyped name must not look like a clean
// fleet.
func CheckSelection(cfg *fleet.Config, snap Snapshot, sel Selection) error {
	if sel.allHosts() {
		return nil
	}
	values := make(map[string][]string)
	c := takeCensus(cfg, snap)
	hosts := c.subjects(c.assign(sel))
	for _, h := range hosts {
		for _, key := range []string{"name", "type", "zone"} {
			values[key] = append(values[key], h.property(key))
		}
	}
	for _, f := range cfg.Fleets {
		values["fleet"] = append(values["fleet"], f.Name)
		for _, g := range f.Groups {
			values["group"] = append(values["group"], g.Name)
			values["type"] = append(values["type"], g.Type)
		}
	}
	values["zone"] = append(values["zone"], c.vendor.Zones...)
	named := slices.Concat(sel.On, sel.Exclude)
	if sel.Former {
		named = sel.Exclude
	}
	for _, s := range named {
		for _, t := range s.terms {
			if err := checkTerm(t, values[t.Key]); err != nil {
				return err
			}
		}
	}
	return checkNotEmpty(cfg, sel, hosts)
}

// checkNotEmpty returns an error for selectors that contradict each other: they
// leave nothing, and nothing must not look like a clean fleet. A fleet that wants
// no hosts may be selected, and so may hosts that are not Ready where all are.
func checkNotEmpty(cfg *fleet.Config, sel Selection, hosts []subject) error {
	for _, f := range cfg.Fleets {
		for _, g := range f.Groups {
			hosts = append(hosts, need{fleet: f, group: g}.subject())
		}
	}
	live := func(s Selector) bool {
		return slices.ContainsFunc(s.terms, func(t fleet.SelectorTerm) bool { return t.Key == "ready" })
	}
	if slices.ContainsFunc(hosts, sel.matches) || slices.ContainsFunc(slices.Concat(sel.On, sel.Exclude), live) {
		return nil
	}
	if sel.Former {
		return errors.New("--failed-from: none of the hosts on which that run left something is there any more; macfleet plan shows what is wanted now")
	}
	return fmt.Errorf("the selection leaves no host: --on and --exclude contradict each other")
}

func checkTerm(t fleet.SelectorTerm, known []string) error {
	if t.Key == "ready" || slices.ContainsFunc(known, func(v string) bool { ok, _ := path.Match(t.Pattern, v); return ok }) {
		return nil
	}
	slices.Sort(known)
	hint := ""
	if near := fleet.Nearest(t.Pattern, known); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	} else if len(known) > 0 {
		hint = "; there is " + sampleOf(slices.Compact(known))
	}
	return fmt.Errorf("no host has %s=%s%s", t.Key, t.Pattern, hint)
}

// subjects returns every host the plan could be about, in no order.
func (c *census) subjects(needs []need) []subject {
	var out []subject
	for i := range c.servers {
		if p := &c.servers[i]; p.role == member {
			out = append(out, p.subject())
		}
	}
	for id, t := range c.gone {
		at, _ := c.place(t.name, id)
		out = append(out, subject{name: t.name, fleet: at.Fleet, group: at.Group, anywhere: true})
	}
	for _, n := range needs {
		for i := range n.chosen {
			out = append(out, n.chosen[i].subject())
		}
	}
	return out
}

// SelectHost returns the selection of one host, by any name that Find takes.
func SelectHost(cfg *fleet.Config, snap Snapshot, name string) (Selection, error) {
	server, err := Find(cfg, snap, name)
	if err != nil {
		return Selection{}, err
	}
	c := takeCensus(cfg, snap)
	name = server.Name
	for _, h := range c.subjects(c.assign(Selection{})) {
		if h.server.ID == server.ID {
			name = h.name
		}
	}
	pattern := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
	return Selection{On: []Selector{{[]fleet.SelectorTerm{{Key: "name", Pattern: pattern}}}}}, nil
}

// CheckLists returns an error when no plan must be made of what the providers list
// (CheckInventory, CheckSelection). What hosts said is left aside: a recorded
// observation is judged as it was before any host was asked.
func CheckLists(cfg *fleet.Config, snap Snapshot, sel Selection) error {
	snap.Hosts = nil
	if err := CheckInventory(cfg, snap); err != nil {
		return err
	}
	return CheckSelection(cfg, snap, sel)
}

// Keeps reports whether a selector keeps a host of a plan.
func (s Selector) Keeps(h Host) bool {
	n, there := h.Node.Get()
	return s.matches(subject{name: h.Name, fleet: h.Fleet, group: h.Group, server: h.Server, ready: there && n.Ready == inventory.Ready})
}

// Find returns the server that a person means: by the name it bears or should
// bear, by its present name at the provider, by its id, or by the name under
// which its key is pinned. The error says what became of a server that vanished,
// or which name is near.
func Find(cfg *fleet.Config, snap Snapshot, name string) (inventory.Server, error) {
	c := takeCensus(cfg, snap)
	hosts := c.subjects(c.assign(Selection{}))
	for _, h := range hosts {
		if h.name == name && h.server.ID != "" {
			return h.server, nil
		}
	}
	byID := make(map[string]inventory.Server, len(snap.Servers))
	var names []string
	for _, s := range snap.Servers {
		if s.Name == name || s.ID == name {
			return s, nil
		}
		byID[s.ID] = s
		names = append(names, s.Name)
	}
	for _, p := range snap.Pins {
		if s, there := byID[p.ServerID]; there && p.Name == name {
			return s, nil
		}
	}
	for id, t := range c.gone {
		if t.name == name {
			remedy := "if it is really gone, forget it with: " + t.forget()
			if t.by == byBlock {
				remedy = "check its server_id, the zones and the project"
			}
			return inventory.Server{}, fmt.Errorf("%s: server %s is known by its %s and is not in the inventory; %s", name, id, t.by, remedy)
		}
	}
	for _, h := range hosts {
		names = append(names, h.name)
	}
	hint := "; macfleet hosts lists the members, " + c.vendor.Console() + " all servers"
	if near := fleet.Nearest(name, names); near != "" {
		hint = "; did you mean " + near + "?"
	}
	return inventory.Server{}, fmt.Errorf("no server is called %s%s", name, hint)
}
