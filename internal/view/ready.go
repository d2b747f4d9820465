package view

import (
	"io"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// NotReady shows who is waited for and why.
func (t *Text) NotReady(at time.Time, late []engine.NotReady) {
	t.sayf("%s: %s not Ready.", at.UTC().Format("15:04:05 UTC"), count(len(late), "Node"))
	t.late(late)
}

func (t *Text) late(late []engine.NotReady) {
	for _, same := range grouped(late, func(l engine.NotReady) string { return l.Why }) {
		t.line(2, signUnknown, joined(same, func(l engine.NotReady) string { return l.Host.Name })+": "+same[0].Why)
	}
}

// ReadyDocument says which Nodes are Ready, as one JSON object.
type ReadyDocument struct {
	wire.OwnedHead
	Ready   bool       `json:"ready"`   // all of them are, and none is missing
	Missing int        `json:"missing"` // configured servers that are missing
	Hosts   []ReadyRow `json:"hosts"`   // those that join the cluster
}

// ReadyRow is one host that joins the cluster.
type ReadyRow struct {
	Name  string `json:"name"`
	Fleet string `json:"fleet"`
	Group string `json:"group"`
	Ready bool   `json:"ready"`
	Why   string `json:"why"` // "" = it is Ready
}

// WriteReady prints which Nodes are Ready as one JSON object.
func WriteReady(out io.Writer, owner fleet.Owner, members []plan.Host, missing int, late []engine.NotReady) error {
	d := ReadyDocument{OwnedHead: wire.HeadOf(owner), Ready: missing+len(late) == 0, Missing: missing, Hosts: []ReadyRow{}}
	why := make(map[string]string)
	for _, l := range late {
		why[l.Host.Name] = l.Why
	}
	for _, h := range members {
		if h.Spec.Spec.JoinsCluster() {
			reason, waits := why[h.Name]
			d.Hosts = append(d.Hosts, ReadyRow{Name: h.Name, Fleet: h.Fleet, Group: h.Group, Ready: !waits, Why: reason})
		}
	}
	return wire.Write(out, d)
}
