package plan

import (
	"slices"
	"strings"
)

// Extent is how much of a host was compared.
type Extent int

// The extents.
const (
	Whole   Extent = iota
	Part           // an answer could not be read or needs missing root, or the Node cannot be judged yet
	Nothing        // the host could not be read, or must not be compared
)

// Extent returns how much of the host was compared.
func (h Host) Extent() Extent {
	switch {
	case h.Unknown != nil, h.Refused != nil && !h.Compared:
		return Nothing
	case len(h.Unread) > 0, h.Refused != nil && h.NeedsRoot, h.NotJudged() != nil:
		return Part
	}
	return Whole
}

// CodeUnread is the code of an answer that could not be read.
var CodeUnread = NewCode("unread", Warning, "an answer of the host could not be read", "macfleet explain NAME")

// Coverage describes what a plan compares. A plan of a part must not look like a plan of everything, so it is
// printed first.
type Coverage struct {
	Hosts        int      `json:"hosts"`                // of the plan: members, claims, and servers that vanished
	LeftOut      int      `json:"left_out"`             // hosts that On and Exclude leave out, including those still to be claimed
	On           []string `json:"on,omitempty"`         // selectors that the plan is limited to
	Exclude      []string `json:"exclude,omitempty"`    // selectors whose hosts are left out
	Steps        []StepID `json:"steps,omitempty"`      // the only steps that were compared; empty: all
	AdoptOnly    bool     `json:"adopt_only,omitempty"` // only markers and host keys of adopted servers were compared
	NotCompared  []Gap    `json:"not_compared"`         // hosts of which nothing was compared, by reason
	Partly       []Gap    `json:"partly_compared"`      // hosts of which some steps were not compared, by reason
	NotContacted int      `json:"unasked,omitempty"`    // configured hosts that were not contacted

	ClusterUnread  []string `json:"cluster_unread,omitempty"`   // parts of the cluster that could not be read
	ObjectsLeftOut bool     `json:"objects_left_out,omitempty"` // a limited plan does not compare the cluster's own objects
}

// Gap is a reason why hosts were not compared.
type Gap struct {
	Code  Code     `json:"code"`
	Hosts []string `json:"hosts"` // names
}

// Coverage returns what the plan is a comparison of.
func (p *Plan) Coverage() Coverage {
	c := Coverage{Hosts: len(p.Hosts) + len(p.Lost), LeftOut: p.LeftOut, On: p.On, Exclude: p.Exclude, Steps: p.Steps, AdoptOnly: p.AdoptOnly,
		NotCompared: []Gap{}, Partly: []Gap{}, ObjectsLeftOut: p.Narrowed && p.Cluster}
	for i := range p.Hosts {
		h := &p.Hosts[i]
		switch h.Extent() {
		case Nothing:
			c.NotCompared = enterGap(c.NotCompared, h.trouble().Code, h.Name)
		case Part:
			code := CodeUnread
			if t := h.NotJudged(); t != nil && len(h.Unread) == 0 {
				code = t.Code
			}
			if h.Refused != nil && h.NeedsRoot {
				code = h.Refused.Code
			}
			c.Partly = enterGap(c.Partly, code, h.Name)
		}
	}
	for _, l := range p.Lost {
		c.NotCompared = enterGap(c.NotCompared, l.Code, l.Name)
	}
	for _, u := range p.Unread {
		c.ClusterUnread = append(c.ClusterUnread, strings.TrimPrefix(u.Probe, "cluster."))
	}
	for _, u := range p.NotContacted {
		c.NotContacted += u.Replicas
	}
	return c
}

// trouble returns why nothing of the host could be compared.
func (h *Host) trouble() *Trouble {
	if h.Unknown != nil {
		return h.Unknown
	}
	return h.Refused
}

func enterGap(all []Gap, code Code, host string) []Gap {
	at := slices.IndexFunc(all, func(g Gap) bool { return g.Code == code })
	if at < 0 {
		return append(all, Gap{code, []string{host}})
	}
	all[at].Hosts = append(all[at].Hosts, host)
	return all
}

// HostsOf counts the hosts of gaps.
func HostsOf(gaps []Gap) int {
	n := 0
	for _, g := range gaps {
		n += len(g.Hosts)
	}
	return n
}

// Limited reports whether the plan was limited to some hosts or steps.
func (c Coverage) Limited() bool { return len(c.On)+len(c.Exclude)+len(c.Steps) > 0 }

// Complete reports whether everything that the plan was limited to was compared.
func (c Coverage) Complete() bool {
	return len(c.NotCompared)+len(c.Partly)+len(c.ClusterUnread)+c.NotContacted == 0
}
