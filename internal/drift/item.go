// Package drift turns a plan into a report for alarms: one item for each thing that changed
// outside macfleet, its severity, what is ignored for now, what could not be compared, and
// fingerprints that stay the same as long as the drift does. It is pure.
package drift

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/plan"
)

// Item is one thing that changed outside macfleet: on one host, or in the cluster.
type Item struct {
	Host        string        `json:"host"`  // an object of the cluster is cluster.KIND.NAME
	Fleet       string        `json:"fleet"` // empty: of the cluster
	Step        string        `json:"step"`  // or the kind of an action that is no step's, such as rename
	Code        plan.Code     `json:"code"`
	Severity    plan.Severity `json:"severity"`
	Text        string        `json:"text"`             // the observation in words
	Fields      []Field       `json:"fields"`           // what changed; may be empty
	Fingerprint string        `json:"fingerprint"`      // of host, step and code only
	Refused     plan.Code     `json:"refused,omitzero"` // the code of why apply does not fix it; empty: it does
}

// Field is a value that changed.
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

// itemsOf returns the drift of an action of a plan. A step whose changes have several reasons is
// several items, so none hides behind another.
func itemsOf(a plan.Action) []Item {
	if !a.Origin.Drift {
		return nil
	}
	base := Item{Fleet: a.Fleet}
	base.Host, base.Step = Subject(a)
	if a.Refusal != nil {
		base.Refused = a.Refusal.Code
	}
	of := func(r plan.Reason, fields []plan.Field) Item {
		i := base
		i.Code, i.Text, i.Severity, i.Fields = r.Code, r.Text, severityOf(r.Code), moved(fields)
		i.Fingerprint = fingerprint(i)
		return i
	}
	other := func(c plan.Change) bool { return c.Reason.Code != a.Changes[0].Reason.Code }
	if len(a.Changes) == 0 || a.Changes[0].Reason.Code != a.Reason.Code || !slices.ContainsFunc(a.Changes, other) {
		return []Item{of(a.Reason, a.Fields)} // a refused action has its own reason
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

// itemOf returns the drift of an orphaned member, until a person decides about it.
func itemOf(o plan.Orphan) Item {
	i := Item{Host: o.Name, Fleet: o.Fleet, Step: Orphan, Code: o.Code, Severity: severityOf(o.Code), Text: o.Text, Fields: []Field{}, Refused: o.Code}
	i.Fingerprint = fingerprint(i)
	return i
}

// Orphan is the step of an item that is about a whole host.
const Orphan = "orphan"

// itemsOfHost returns the drift of a host that apply does not fix: a person decides.
func itemsOfHost(h plan.Host) []Item {
	var out []Item
	for _, w := range h.Warnings {
		if !w.Drift {
			continue
		}
		i := Item{Host: h.Name, Fleet: h.Fleet, Step: w.About(), Code: w.Code, Severity: severityOf(w.Code), Text: w.Text, Fields: moved(w.Fields), Refused: w.Code}
		i.Fingerprint = fingerprint(i)
		out = append(out, i)
	}
	return out
}

// ofCluster begins the names of objects of the cluster.
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

// severityOf returns the severity of a code among drift, or among what could not be compared.
func severityOf(c plan.Code) plan.Severity { return cmp.Or(c.Severity(), plan.Warning) }

// The fingerprints of no drift.
const (
	Clean   = "clean"   // everything was compared, and there is no drift
	Unknown = "unknown" // no drift was found, and not everything was compared
)

// fingerprint depends only on the host, step and code: not on times, counts, texts or severities,
// which differ between runs or versions without new drift.
func fingerprint(i Item) string {
	return short(fmt.Sprintf("%q %q %q", i.Host, i.Step, i.Code))
}

// fingerprintOf is the same for the same items in any order.
func fingerprintOf(complete bool, all ...Item) string {
	prints := make([]string, 0, len(all))
	for _, i := range all {
		prints = append(prints, i.Fingerprint)
	}
	slices.Sort(prints)
	prints = slices.Compact(prints)
	switch {
	case len(prints) > 0:
		return short(strings.Join(prints, "\n"))
	case complete:
		return Clean
	}
	return Unknown
}

// short is 64 bits of a digest: enough to distinguish drifts, and short enough for a title.
func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

var (
	CodeClusterUnread = plan.NewCode("cluster-unread", plan.Critical, "the cluster could not be read",
		"see why the cluster does not answer, and run the command again")
)

// Unseen is what could not be compared: it was not contacted, or its answer cannot be used.
type Unseen struct {
	Host     string        `json:"host"` // empty: all hosts and the cluster; "cluster": its objects
	Fleet    string        `json:"fleet"`
	Step     string        `json:"step"` // empty: all of the host
	Code     plan.Code     `json:"code"`
	Severity plan.Severity `json:"severity"`
	Why      string        `json:"why"`
}

// Covers reports whether an item may exist unseen.
func (u Unseen) Covers(i Item) bool {
	switch u.Host {
	case "":
		return true
	case ofCluster:
		return strings.HasPrefix(i.Host, ofCluster+".")
	}
	return u.Host == i.Host && (u.Step == "" || u.Step == i.Step)
}

// unseenOf returns what of a plan's hosts and cluster was not compared.
func unseenOf(p *plan.Plan) []Unseen {
	out := []Unseen{}
	see := func(host, fleet, step string, code plan.Code, why string) {
		out = append(out, Unseen{host, fleet, step, code, severityOf(code), why})
	}
	for _, u := range p.Unread {
		see(ofCluster, "", u.Probe, CodeClusterUnread, u.Why)
	}
	for _, h := range p.Hosts {
		if !h.Member {
			continue
		}
		if h.Unknown != nil {
			see(h.Name, h.Fleet, "", h.Unknown.Code, h.Unknown.Text)
		}
		if h.Refused != nil {
			see(h.Name, h.Fleet, "", h.Refused.Code, h.Refused.Text)
		}
		for _, u := range h.Unread {
			see(h.Name, h.Fleet, string(u.Step), plan.CodeUnread, u.Probe+": "+u.Why)
		}
		if t := h.NotJudged(); t != nil {
			see(h.Name, h.Fleet, "", t.Code, t.Text)
		}
		if len(p.Unread) > 0 && h.Spec.Spec.JoinsCluster() {
			see(h.Name, h.Fleet, "", CodeClusterUnread, "the cluster could not be read")
		}
	}
	for _, d := range p.Doubts {
		see(ofCluster, "", "", d.Code, d.Text)
	}
	for _, l := range p.Lost {
		see(l.Name, l.Fleet, "", l.Trouble.Code, l.Trouble.Text)
	}
	for _, a := range p.Actions {
		switch {
		case !a.NotKnown:
		case a.AfterRoot:
			see(a.Host, a.Fleet, string(a.Step), a.Reason.Code, a.Reason.Text)
		default:
			// What was drift before must not look as if it had recovered.
			see(a.Host, a.Fleet, string(a.Step), plan.CodeMarkerMissing, "the last verified state was lost with the marker, so it is not known whether the difference is drift")
		}
	}
	return out
}
