package drift

import (
	"cmp"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/plan"
)

// Item is one thing that moved behind our back: of one host, or of the cluster.
type Item struct {
	Host        string        `json:"host"`  // an object of the cluster is cluster.KIND.NAME
	Fleet       string        `json:"fleet"` // empty: of the cluster
	Step        string        `json:"step"`  // or the kind of an action that is no step's, such as rename
	Code        plan.Code     `json:"code"`
	Severity    plan.Severity `json:"severity"`
	Text        string        `json:"text"`             // the observation in words
	Fields      []Field       `json:"fields"`           // what moved; may be empty
	Fingerprint string        `json:"fingerprint"`      // of host, step and code alone
	Refused     plan.Code     `json:"refused,omitzero"` // the code of why apply does not mend it; empty: it does
	serverID    string
}

// Field is a value that moved.
type Field struct {
	Name   string `json:"name"`
	Before string `json:"seen"`
	After  string `json:"wanted"`
}

func moved(fields []plan.Field) []Field {
	out := make([]Field, 0, len(fields))
	for _, f := range fields {
		out = append(out, Field(f))
	}
	return out
}

// itemsOf returns a plan's drift in the plan's order. A step whose changes have
// several reasons is several items, so that a second one does not hide behind the
// first.
func itemsOf(p *plan.Plan) []Item {
	var out []Item
	for _, a := range p.Actions {
		if !a.Origin.Drift {
			continue
		}
		for _, i := range itemsOfAction(a) {
			i.Fingerprint = fingerprint(i)
			out = append(out, i)
		}
	}
	return out
}

func itemsOfAction(a plan.Action) []Item {
	base := Item{Fleet: a.Fleet, serverID: a.ServerID}
	base.Host, base.Step = Subject(a)
	if a.Refusal != nil {
		base.Refused = a.Refusal.Code
	}
	of := func(r plan.Reason, fields []plan.Field) Item {
		i := base
		i.Code, i.Text, i.Severity, i.Fields = r.Code, r.Text, severityOf(r.Code), moved(fields)
		return i
	}
	other := func(c plan.Change) bool { return c.Reason.Code != a.Changes[0].Reason.Code }
	if len(a.Changes) == 0 || a.Changes[0].Reason.Code != a.Reason.Code || !slices.ContainsFunc(a.Changes, other) {
		return []Item{of(a.Reason, a.Fields)} // what is refused has a reason of its own
	}
	var out []Item
	for _, c := range a.Changes {
		at := slices.IndexFunc(out, func(i Item) bool { return i.Code == c.Reason.Code })
		if at < 0 {
			out = append(out, of(c.Reason, c.Fields))
			continue
		}
		out[at].Fields = append(out[at].Fields, moved(c.Fields)...)
		if c.Reason.Text != "" && !strings.Contains(out[at].Text, c.Reason.Text) {
			out[at].Text += ", " + c.Reason.Text
		}
	}
	return out
}

// ofCluster begins the name of what is no host's.
const ofCluster = "cluster"

// Subject returns the host and the step of the items that an action makes.
func Subject(a plan.Action) (host, step string) {
	step = cmp.Or(string(a.Step), string(a.Kind))
	if a.Object == nil {
		return cmp.Or(a.Host, ofCluster), step
	}
	parts := []string{ofCluster, a.Object.Kind, a.Object.Namespace, a.Object.Name}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "."), step
}
