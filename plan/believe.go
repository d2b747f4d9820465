package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan/lists"
)

var (
	codeOtherTailnet = NewCode("other-tailnet", Warning, "the credentials are those of a tailnet that the hosts are not in")
	codeListLacking  = NewCode("list-lacks-hosts", Warning, "a service lacks the objects of many hosts at once, so its list may be wrong")
	codeLeftUnknown  = NewCode("left-over-unknown", NotDrift, "a service lists an object with a name of this configuration that no host has, and nothing shows that macfleet made it")
)

// sayings are what hosts say of their objects at a service, by server id.
type sayings map[string]lists.Said

// believe withholds each list that is not shown to be about this configuration's hosts: all who read it see why instead. Only members count
// whose markers say that the step was verified there. A person may accept a list by its name.
func (c *computation) believe() {
	c.devicesSaid, c.agentsSaid = make(sayings), make(sayings)
	var devices []lists.Said
	agents := make(map[string][]lists.Said) // by scope
	for _, f := range c.cfg.Fleets {
		for _, g := range f.Groups {
			for _, p := range c.members[fleet.Place{Fleet: f.Name, Group: g.Name}] {
				seen := c.snap.Hosts[p.server.ID]
				if seen.Trouble != nil || len(seen.Facts) == 0 {
					continue
				}
				all := c.stepsFor(c.specified(g, p))
				if k, is := deviceKeeper(all); is && c.snap.Tailnet != nil {
					devices = append(devices, c.devicesSaid.hear(p, k, c.cfg.Owner, seen, func() (lists.Said, bool) { return k.Device(seen.Facts) })...)
				}
				if k, is := keeper(all); is && len(c.snap.Services) > 0 {
					for _, s := range c.agentsSaid.hear(p, k, c.cfg.Owner, seen, func() (lists.Said, bool) { return k.Entry(seen.Facts) }) {
						agents[s.Realm] = append(agents[s.Realm], s)
					}
				}
			}
		}
	}
	if s := c.snap.Tailnet; s != nil && s.Trouble == nil && !s.Unlisted {
		ids := make([]string, len(s.Devices))
		for i, d := range s.Devices {
			ids[i] = d.ID
		}
		what := "the tailnet"
		if s.Suffix != "" {
			what += " " + s.Suffix
		}
		if why := c.disbelief(lists.Judge(s.Suffix, ids, devices), what, TailnetName); why != nil {
			c.snap.Tailnet = &TailnetSeen{Trouble: why}
		}
	}
	services := maps.Clone(c.snap.Services)
	for scope, s := range services {
		if s.Churned { // what it lacks shows nothing
			continue
		}
		ids := make([]string, len(s.Agents))
		for i, a := range s.Agents {
			ids[i] = a.ID
		}
		if why := c.disbelief(lists.Judge(scope, ids, agents[scope]), scope, SilentService{Scope: scope}.About()); why != nil && s.Trouble == nil {
			services[scope] = ServiceSeen{Trouble: why}
		}
	}
	c.snap.Services = services
}

// hear notes what a host says of its object, and returns it if the host is verified: its marker is this owner's, and says that the step was
// in sync there once.
func (all sayings) hear(p *placed, step Step, owner fleet.Owner, seen HostSeen, says func() (lists.Said, bool)) []lists.Said {
	s, is := says()
	if !is {
		return nil
	}
	s.Host = p.name
	all[p.server.ID] = s
	m, _ := seen.Marker.Get()
	if _, once := m.Steps[step.ID()]; !once || m.Owner() != owner {
		return nil
	}
	return []lists.Said{s}
}

// of returns what the host of a server says, which is parsed once.
func (all sayings) of(id string, says func() (lists.Said, bool)) (lists.Said, bool) {
	if s, is := all[id]; is {
		return s, true
	}
	return says()
}

// disbelief is why a list does not count; nil: it does, or a person accepted it.
func (c *computation) disbelief(v lists.Verdict, what, name string) *Trouble {
	if v.Believed() || slices.Contains(c.sel.AcceptLists, name) {
		return nil
	}
	accept := "correct the credentials; if the hosts should change to what it lists: macfleet apply --accept-list " + name
	switch hosts := count(len(v.Missing), "host"); {
	case v.State == lists.Lacking:
		return codeListLacking.Trouble(fmt.Sprintf("%s lacks %s of %d at once (%s)", what, hosts, v.Of, sampleOf(v.Missing)), accept)
	case v.Realm != "":
		return codeOtherTailnet.Trouble(fmt.Sprintf("the credentials are those of %s, and %s say that they are in %s (%s)", what, hosts, v.Realm, sampleOf(v.Missing)), accept)
	default:
		return codeOtherTailnet.Trouble(fmt.Sprintf("%s has none of the objects of %s (%s)", what, hosts, sampleOf(v.Missing)), accept)
	}
}

// leftOver reports whether an object at a service, with a name of this configuration that no host has, is one that macfleet made: a server
// with that name was released. Another's list of names may look the same, and a host may be about to come, so any other is only shown.
func (c *computation) leftOver(what, name string) bool {
	if slices.ContainsFunc(c.snap.Released, func(p Pin) bool { return p.Name == name }) {
		return true
	}
	c.plan.Warnings = append(c.plan.Warnings, *codeLeftUnknown.Trouble(what+", no host has this name, and no released server had it",
		"if nothing uses it, delete it there"))
	return false
}
