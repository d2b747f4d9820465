package drift

import (
	"strings"

	"github.com/macfleet/macfleet/plan"
)

// The codes that are raised here.
var (
	CodeClusterUnread = plan.NewCode("cluster-unread", plan.Critical, "what the cluster knows could not be read",
		"see why the cluster does not answer, and run the command again")
	CodeUnread = plan.NewCode("unread", plan.Warning, "an answer of the host cannot be read", "see what the host says: macfleet explain NAME")
)

// Unseen is what nobody can say whether it drifted: it was not asked, or its answer
// cannot be used.
type Unseen struct {
	Host     string        `json:"host"` // empty: all hosts and the cluster; "cluster": its objects
	Fleet    string        `json:"fleet"`
	Step     string        `json:"step"` // empty: all of the host
	Code     plan.Code     `json:"code"`
	Severity plan.Severity `json:"severity"`
	Why      string        `json:"why"`
}

// Covers reports whether an item may be there unseen.
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
			see(h.Name, h.Fleet, string(u.Step), CodeUnread, u.Probe+": "+u.Why)
		}
		if len(p.Unread) > 0 && h.Spec.Spec.JoinsCluster() {
			see(h.Name, h.Fleet, "", CodeClusterUnread, "what the cluster knows of it could not be read")
		}
	}
	for _, l := range p.Lost {
		see(l.Name, l.Fleet, "", l.Trouble.Code, l.Trouble.Text)
	}
	for _, a := range p.Actions {
		if !a.Deferred {
			continue // nearly always, and finding the host takes longer
		}
		// A step that shows only to root, and was proven before: what it says is not known
		// until there is root again.
		h, _ := p.HostByServer(a.ServerID)
		marker, _ := h.Seen.Marker.Get()
		if _, proven := marker.Steps[a.Step]; proven {
			see(a.Host, a.Fleet, string(a.Step), a.Reason.Code, a.Reason.Text)
		}
	}
	// With a marker that somebody took away went the proof, so that nobody knows any more
	// whether a difference is drift: what was known to be must not look as if it had recovered.
	lost := make(map[string]bool) // by server id
	for _, a := range p.Actions {
		if a.Kind == plan.CreateMarker && a.Origin.Drift {
			lost[a.ServerID] = true
		}
	}
	for _, a := range p.Actions {
		if lost[a.ServerID] && a.Kind.OfStep() && !a.Origin.Drift && !a.Deferred {
			see(a.Host, a.Fleet, string(a.Step), plan.CodeMarkerMissing, "its proof went with the marker: nobody knows whether the difference is drift")
		}
	}
	return out
}
