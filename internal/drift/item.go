package drift

import (
	"cmp"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/plan"
)

// Item is one thing that moved behind our back: of one host, or of the cluster.
type Item struct {
	Host        string // an object of the cluster is cluster.KIND.NAME
	Fleet       string // empty: of the cluster
	Step        string // or the kind of an action that is no step's, such as rename
	Code        string
	Severity    Severity
	Text        string       // the observation in words
	Fields      []plan.Field // what moved; may be empty
	Fingerprint string       // of host, step and code alone
	Refused     string       // the code of why apply does not mend it; empty: it does
	serverID    string
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
		i.Code, i.Text, i.Severity, i.Fields = r.Code, r.Text, SeverityOf(r.Code), slices.Clip(fields)
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
		out[at].Fields = append(out[at].Fields, c.Fields...)
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
