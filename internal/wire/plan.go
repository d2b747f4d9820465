package wire

import (
	"errors"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// Plan is a plan as one JSON object. It holds no secret and not the time of writing, so
// the same input gives the same bytes. The fields of plan.Plan keep their keys; the others
// are derived from them for readers, and ignored when a plan is read.
type Plan struct {
	OwnedHead
	Complete     bool           `json:"complete"`      // everything could be compared and no configured change is blocked
	Coverage     plan.Coverage  `json:"coverage"`      // what was compared and what was not
	UnknownHosts []TroubledHost `json:"unknown_hosts"` // hosts that could not be observed
	RefusedHosts []TroubledHost `json:"refused_hosts"` // hosts that must not be changed, and missing servers
	Unread       []UnreadStep   `json:"unread"`        // unusable answers
	Warnings     []TroubledHost `json:"warnings"`      // warnings of steps; they change nothing
	HeldHosts    []HeldHost     `json:"held_hosts"`    // hosts with a hold or an expired hold
	Summary      plan.Summary   `json:"summary"`
	HostCounts   plan.Tally     `json:"host_counts"` // each host once, by its state in the plan
	Strays       []string       `json:"strays"`      // names of servers in no pool and no fleet

	plan.Plan
	Hosts           []Host     `json:"hosts"`                 // by fleet and group in the configuration's order, then by name
	ResourceChanges []Action   `json:"resource_changes"`      // all actions: those of no host first, then by host in the order in which they run
	ResourceDrift   []Action   `json:"resource_drift"`        // the actions among them that come from drift
	Shortages       []Shortage `json:"shortages"`             // groups whose pool has too few servers
	Rejected        []Rejected `json:"rejected_pool_servers"` // pool servers that were checked for a claim and not claimed
}

// Host is a host of a plan. The host key is the only observation in it.
type Host struct {
	plan.Host
	Fingerprint string `json:"fingerprint"` // of the host key, SHA256:…
	Pinned      bool   `json:"pinned"`      // the key was already known
}

// TroubledHost is a host with the reason why it could not be observed or changed.
type TroubledHost struct {
	Address string `json:"address"` // the host's name in documents: host.NAME
	Name    string `json:"name"`
	Fleet   string `json:"fleet,omitempty"`
	plan.Trouble
}

// UnreadStep is an unusable answer.
type UnreadStep struct {
	Address string `json:"address"` // of the step on its host
	Host    string `json:"host"`
	plan.StepUnread
}

// HeldHost is a host with a hold or an expired hold.
type HeldHost struct {
	Address string    `json:"address"` // the host's name in documents: host.NAME
	Name    string    `json:"name"`
	Fleet   string    `json:"fleet"`
	Hold    plan.Held `json:"hold"`
}

// Shortage is a group that gets too few servers.
type Shortage struct {
	plan.Shortage
	Text string `json:"text"` // its diagnosis
}

// Rejected is a pool server that was checked for a claim and not claimed.
type Rejected struct {
	Address string `json:"address"` // the server's name in documents: host.NAME
	Name    string `json:"name"`
	plan.Rejected
}

// PlanOf returns a plan as a document.
func PlanOf(p *plan.Plan) Plan {
	s := p.Summarise()
	d := Plan{OwnedHead: HeadOf(p.Owner), Plan: *p, Complete: s.Complete(), Coverage: p.Coverage(), Summary: s, HostCounts: p.Tally(),
		UnknownHosts: []TroubledHost{}, RefusedHosts: []TroubledHost{}, Unread: []UnreadStep{}, HeldHosts: []HeldHost{},
		ResourceDrift:   []Action{},
		Hosts:           Each(p.Hosts, func(h plan.Host) Host { return Host{h, h.Seen.Fingerprint, h.Seen.Pinned} }),
		ResourceChanges: Each(p.Actions, ActionOf),
		Shortages:       Each(p.Shortages, func(s plan.Shortage) Shortage { return Shortage{s, s.Trouble.Text} }),
		Rejected: Each(p.Rejected, func(r plan.Rejected) Rejected {
			return Rejected{HostAddress(r.Server.Name), r.Server.Name, r}
		}),
		Strays:   Each(p.Strays, func(s inventory.Server) string { return s.Name }),
		Warnings: Each(p.Warnings, func(w plan.Trouble) TroubledHost { return TroubledHost{clusterName, clusterName, "", w} })}
	for _, s := range p.Services {
		d.Warnings = append(d.Warnings, TroubledHost{s.About(), s.About(), "", s.Trouble})
	}
	for _, u := range p.Unread {
		u.Bytes = Shortened(u.Bytes)
		d.Unread = append(d.Unread, UnreadStep{Address: clusterName, StepUnread: plan.StepUnread{Unread: u}})
	}
	for _, u := range p.NotContacted {
		d.Unread = append(d.Unread, UnreadStep{Address: "fleet." + u.Fleet + "." + u.Group,
			StepUnread: plan.StepUnread{Unread: plan.Unread{Probe: "hosts", Why: u.String()}}})
	}
	for _, h := range p.Hosts {
		if h.Unknown != nil {
			d.UnknownHosts = append(d.UnknownHosts, *Troubled(h.Name, h.Fleet, h.Unknown))
		}
		if h.Refused != nil {
			d.RefusedHosts = append(d.RefusedHosts, *Troubled(h.Name, h.Fleet, h.Refused))
		}
		if h.Held != nil {
			d.HeldHosts = append(d.HeldHosts, HeldHost{HostAddress(h.Name), h.Name, h.Fleet, *h.Held})
		}
		for _, u := range h.Unread {
			d.Unread = append(d.Unread, UnreadOf(h, u))
		}
		for _, w := range h.Warnings {
			x := *Troubled(h.Name, h.Fleet, &w.Trouble)
			if w.Step != "" || w.OfServer {
				x.Address += "." + w.About()
			}
			d.Warnings = append(d.Warnings, x)
		}
	}
	for i, a := range p.Actions {
		if a.Drift {
			d.ResourceDrift = append(d.ResourceDrift, d.ResourceChanges[i])
		}
	}
	for _, l := range p.Lost {
		d.RefusedHosts = append(d.RefusedHosts, *Troubled(l.Name, l.Fleet, &l.Trouble))
	}
	return d
}

// plan returns the plan of a document.
func (d Plan) plan() (*plan.Plan, error) {
	p := d.Plan
	p.Owner = d.OwnedHead.Owner()
	p.Hosts = Each(d.Hosts, func(h Host) plan.Host {
		h.Host.Seen = plan.HostSeen{Fingerprint: h.Fingerprint, Pinned: h.Pinned}
		return h.Host
	})
	p.Shortages = Each(d.Shortages, func(s Shortage) plan.Shortage { return s.Shortage })
	p.Rejected = Each(d.Rejected, func(r Rejected) plan.Rejected { return r.Rejected })
	p.Actions = Each(d.ResourceChanges, func(c Action) plan.Action {
		a := c.Action
		a.Reason = plan.Reason{Code: c.ActionReason, Text: c.ReasonText}
		if c.Refused != nil {
			a.Refusal = &c.Refused.Trouble
		}
		return a
	})
	for _, a := range d.ResourceChanges {
		if a.Kind.OfObject() && a.Object == nil {
			return nil, errors.New("its action " + a.Address + " names no object")
		}
	}
	return &p, nil
}

// Action is an action of a plan, with fields derived from it for readers.
type Action struct {
	Address string `json:"address"` // host.NAME.STEP, host.NAME.KIND, or cluster.KIND.NAMESPACE.NAME of a cluster object
	plan.Action
	Change       Sides         `json:"change"`
	ActionReason plan.Code     `json:"action_reason"` // why, as a stable code for programs
	ReasonText   string        `json:"reason_text"`   // why, in words
	Reasons      []plan.Code   `json:"reasons"`       // codes of a step's changes, in their order
	BusyTexts    []string      `json:"busy,omitempty"`
	Undo         string        `json:"undo,omitempty"`       // whether the host undoes the change by itself unless it is confirmed, or why not
	Deliveries   []Delivery    `json:"deliveries,omitempty"` // artifacts that it delivers to the host
	PodNames     []string      `json:"pods,omitempty"`       // NAMESPACE/NAME of those whose finalizers are removed
	Refused      *TroubledHost `json:"refused,omitempty"`    // why the action is blocked
}

// Delivery is an artifact that an action delivers to a host.
type Delivery struct {
	plan.Delivery
	Free *int64 `json:"free,omitempty"` // free bytes there; absent: unknown
}

// Sides holds the values before and after an action by field.
type Sides struct {
	Actions         []string          `json:"actions"` // create, update, delete, as in Terraform
	Before          map[string]string `json:"before"`
	After           map[string]string `json:"after"`
	BeforeSensitive map[string]bool   `json:"before_sensitive"`
	AfterSensitive  map[string]bool   `json:"after_sensitive"`
}

// ActionOf returns an action as a part of a document.
func ActionOf(a plan.Action) Action {
	c := Action{Address: a.Address(), Action: a, ActionReason: a.Reason.Code, ReasonText: a.Reason.Text, Undo: a.Undo(),
		Refused:   Troubled(a.Host, a.Fleet, a.Refusal),
		Reasons:   Each(a.Changes, func(c plan.Change) plan.Code { return c.Reason.Code }),
		PodNames:  Each(a.Pods, func(p inventory.Pod) string { return p.Namespace + "/" + p.Name }),
		BusyTexts: Each(a.Busy, func(t plan.Task) string { return t.Text }),
		Change: Sides{Actions: verbs[a.Kind.Sign()], Before: map[string]string{}, After: map[string]string{},
			BeforeSensitive: map[string]bool{}, AfterSensitive: map[string]bool{}}}
	if a.Fields == nil {
		c.Fields = []plan.Field{}
	}
	for _, f := range a.Fields {
		c.Change.Before[f.Name], c.Change.After[f.Name] = f.Before, f.After
	}
	for _, ch := range a.Changes {
		if ch.Delivery == nil {
			continue
		}
		d := Delivery{Delivery: *ch.Delivery}
		if free, ok := d.Delivery.Free.Get(); ok {
			d.Free = new(free)
		}
		c.Deliveries = append(c.Deliveries, d)
	}
	if c.Refused != nil && a.Host == "" {
		c.Refused.Address = c.Address
	}
	return c
}

// verbs maps signs to Terraform's words.
var verbs = map[plan.Sign][]string{
	plan.Create: {"create"}, plan.Update: {"update"}, plan.Remove: {"delete"}, plan.Replace: {"delete", "create"},
}

// clusterName replaces the host's name in addresses.
const clusterName = "cluster"

// HostAddress returns a host's name in documents.
func HostAddress(name string) string { return "host." + name }

// Troubled returns a host with its trouble, or nil without one.
func Troubled(name, fleet string, x *plan.Trouble) *TroubledHost {
	if x == nil {
		return nil
	}
	return &TroubledHost{HostAddress(name), name, fleet, *x}
}

// UnreadOf returns a host's answer that a step could not use.
func UnreadOf(h plan.Host, u plan.StepUnread) UnreadStep {
	u.Bytes = Shortened(u.Bytes)
	return UnreadStep{HostAddress(h.Name) + "." + string(u.Step), h.Name, u}
}

// Shortened returns the beginning of an unusable answer, which is all that is shown.
func Shortened(text string) string {
	const mostBytes = 500
	if len(text) <= mostBytes {
		return text
	}
	return strings.ToValidUTF8(text[:mostBytes], "") + "…"
}
