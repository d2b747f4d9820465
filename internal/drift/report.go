package drift

import (
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

var codeInventoryUnread = plan.NewCode("inventory-unread", plan.Critical, "the servers could not be listed, so nothing can be compared",
	"see why the provider does not answer, and run the command again")

// Report is the drift of a configuration at one moment.
type Report struct {
	Owner       fleet.Owner   `json:"-"`
	At          time.Time     `json:"-"`           // when it was observed
	Coverage    plan.Coverage `json:"-"`           // of the plan; steps that could not be read are in Unseen
	Narrowed    bool          `json:"selected"`    // only a selection was compared
	Complete    bool          `json:"complete"`    // everything that is looked for could be compared
	Fingerprint string        `json:"fingerprint"` // of Items, and of those that are Kept since an earlier report
	Items       []Item        `json:"items"`       // in the plan's order
	Unseen      []Unseen      `json:"unknown"`
	Blind       string        `json:"-"`       // why nothing could be compared; empty: something was
	Pending     int           `json:"pending"` // differences of configuration that was never applied: no drift
	Orphans     int           `json:"orphans"` // orphaned members, ignored or not
	Remarks     []Remark      `json:"notices"`
	Since       *Changes      `json:"since,omitempty"` // nil: it was compared with no earlier report
	Ignored     []Ignored     `json:"ignored"`
	Hosts       []FleetHosts  `json:"hosts"`
	Ignores     []IgnoreState `json:"ignores"`
}

// HostState is what drift says of a host as a whole.
type HostState string

// The states of hosts, from the one that counts first.
const (
	Drifted  HostState = "drift"
	NotKnown HostState = "unknown" // not all of it was compared, and no drift was seen
	Passed   HostState = "ignored" // all its drift is ignored
	Waiting  HostState = "pending" // nothing drifted, and something of the configuration was never applied
	Fine     HostState = "clean"
)

// HostStates lists them.
func HostStates() []HostState { return []HostState{Drifted, NotKnown, Passed, Waiting, Fine} }

// FleetHosts counts the hosts of a fleet by state. Each is counted once.
type FleetHosts struct {
	Fleet   string `json:"fleet"`
	Drift   int    `json:"drift"`
	Unknown int    `json:"unknown"`
	Ignored int    `json:"ignored"`
	Pending int    `json:"pending"`
	Clean   int    `json:"clean"`
}

// Of returns where the hosts of a state are counted.
func (f *FleetHosts) Of(s HostState) *int {
	return map[HostState]*int{Drifted: &f.Drift, NotKnown: &f.Unknown, Passed: &f.Ignored, Waiting: &f.Pending, Fine: &f.Clean}[s]
}

// Of makes the report of a plan, with the ignore blocks that hold at now.
func Of(p *plan.Plan, ignores []fleet.Ignore, now time.Time) (Report, error) {
	states, err := statesOf(ignores, now)
	if err != nil {
		return Report{}, err
	}
	s := p.Summarise()
	r := Report{Owner: p.Owner, At: now, Narrowed: p.Narrowed, Items: []Item{}, Ignored: []Ignored{},
		Coverage: p.Coverage(), Unseen: unseenOf(p), Pending: s.Pending, Ignores: states}
	r.Coverage.Partly = slices.DeleteFunc(r.Coverage.Partly, func(g plan.Gap) bool { return g.Code == plan.CodeUnread })
	hosts := make(map[string]*plan.Host, len(p.Hosts))
	for i := range p.Hosts {
		hosts[p.Hosts[i].Server.ID] = &p.Hosts[i]
	}
	add := func(h *plan.Host, items []Item) {
		for _, i := range items {
			counts, ignored := apart(i, h, states)
			if counts != nil {
				r.Items = append(r.Items, *counts)
			}
			r.Ignored = append(r.Ignored, ignored...)
		}
	}
	for _, a := range p.Actions { // in the plan's order
		add(hosts[a.ServerID], itemsOf(a))
	}
	for i := range p.Hosts {
		add(&p.Hosts[i], itemsOfHost(p.Hosts[i]))
	}
	for _, o := range p.Orphans {
		add(&plan.Host{Name: o.Name, Fleet: o.Fleet, Group: o.Group, Server: o.Server, Node: o.Node}, []Item{itemOf(o)})
	}
	r.Orphans = len(p.Orphans)
	r.Complete = s.Compared() && len(r.Unseen) == 0
	r.Remarks = append(inProgress(p), remarksOn(r.Ignores, now, r.Complete && !r.Narrowed)...)
	r.Hosts = r.countHosts(p)
	r.Fingerprint = fingerprintOf(r.Complete, r.Items...)
	return r, nil
}

// Blind is the report where nothing could be observed: the provider that lists the servers does not
// answer.
func Blind(cfg *fleet.Config, why string, now time.Time) Report {
	r := Report{Owner: cfg.Owner, At: now, Blind: why, Items: []Item{}, Ignored: []Ignored{}, Hosts: []FleetHosts{}, Unseen: []Unseen{{Code: codeInventoryUnread, Severity: severityOf(codeInventoryUnread), Why: why}}}
	r.Ignores, _ = statesOf(cfg.Ignores, now) // an ignore block that cannot be read is reported as soon as something can be compared
	r.Remarks = remarksOn(r.Ignores, now, false)
	for _, f := range cfg.Fleets {
		r.Hosts = append(r.Hosts, FleetHosts{Fleet: f.Name})
	}
	r.Fingerprint = Unknown
	return r
}

func (r *Report) countHosts(p *plan.Plan) []FleetHosts {
	state := make(map[string]HostState)
	for _, h := range p.Hosts {
		if h.Member {
			state[h.Name] = Fine
		}
	}
	for _, a := range p.Actions {
		if _, member := state[a.Host]; member && a.Origin.Pending {
			state[a.Host] = Waiting
		}
	}
	for _, i := range r.Ignored {
		state[i.Host] = Passed
	}
	for _, u := range r.Unseen {
		state[u.Host] = NotKnown
	}
	for _, i := range r.Items {
		state[i.Host] = Drifted
	}
	out := []FleetHosts{}
	for _, f := range p.Fleets {
		out = append(out, FleetHosts{Fleet: f})
	}
	count := func(fleet, host string) {
		if i := slices.IndexFunc(out, func(f FleetHosts) bool { return f.Fleet == fleet }); i >= 0 {
			*out[i].Of(state[host])++
		}
	}
	for _, o := range p.Orphans { // of a fleet that may be gone
		if !slices.ContainsFunc(out, func(f FleetHosts) bool { return f.Fleet == o.Fleet }) {
			out = append(out, FleetHosts{Fleet: o.Fleet})
		}
		count(o.Fleet, o.Name)
	}
	for _, h := range p.Hosts {
		if h.Member {
			count(h.Fleet, h.Name)
		}
	}
	for _, l := range p.Lost {
		count(l.Fleet, l.Name)
	}
	return out
}

// Known returns the items that the report knew: those it saw, and those it kept from
// reports before it.
func (r Report) Known() []Item {
	if r.Since == nil {
		return r.Items
	}
	return slices.Concat(r.Items, r.Since.Kept)
}

// Worst returns the worst severity of the items; ok is false where there is none.
func (r Report) Worst() (worst plan.Severity, ok bool) {
	for _, s := range plan.Severities() {
		if slices.ContainsFunc(r.Items, func(i Item) bool { return i.Severity == s }) {
			return s, true
		}
	}
	return "", false
}

// Changes are what is different from an earlier report.
type Changes struct {
	New       []Item `json:"new"`       // not in the earlier report
	Stays     []Item `json:"stays"`     // also in the earlier report
	Kept      []Item `json:"kept"`      // in the earlier report, and not compared now
	Recovered []Item `json:"recovered"` // in the earlier report, compared now, and gone or ignored
}

// After compares the report with an earlier one, of which it takes what was known:
// its items, and what it had kept itself. What could not be compared now keeps what was
// known of it, so that the fingerprint stays the same until it can be compared again.
func (r Report) After(known []Item) Report {
	c := Changes{New: []Item{}, Stays: []Item{}, Kept: []Item{}, Recovered: []Item{}}
	prints := func(items []Item) map[string]bool {
		out := make(map[string]bool)
		for _, i := range items {
			out[i.Fingerprint] = true
		}
		return out
	}
	before, there, ignored := prints(known), prints(r.Items), make(map[string]bool)
	for _, i := range r.Items {
		if before[i.Fingerprint] {
			c.Stays = append(c.Stays, i)
		} else {
			c.New = append(c.New, i)
		}
	}
	for _, i := range r.Ignored {
		ignored[i.Fingerprint] = true
	}
	for _, i := range known {
		switch {
		case there[i.Fingerprint]:
		case !ignored[i.Fingerprint] && slices.ContainsFunc(r.Unseen, func(u Unseen) bool { return u.Covers(i) }):
			c.Kept = append(c.Kept, i)
		default:
			c.Recovered = append(c.Recovered, i)
		}
		there[i.Fingerprint] = true // each item once
	}
	r.Since = &c
	r.Fingerprint = fingerprintOf(r.Complete, r.Known()...)
	return r
}
