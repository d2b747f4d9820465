package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// HostRow is one member as `hosts` shows it. Reachable, converged and Ready are
// three things and are never mixed.
type HostRow struct {
	Name      string `json:"name"`
	Fleet     string `json:"fleet"`
	Group     string `json:"group"`
	Reachable string `json:"reachable"`           // yes, or the code of the trouble
	Converged string `json:"converged"`           // yes, no, unknown, or the code of a refusal
	Ready     string `json:"ready"`               // True, False, Unknown, no-node; "-" without a cluster
	ReadyWhy  string `json:"ready_why,omitempty"` // why it is not True, where there is a Node
	// NodeTroubles are what else is wrong with its Node: a cordon, taints, conditions.
	NodeTroubles []plan.Trouble `json:"node_troubles,omitempty"`
	// ServerTroubles are what the provider says of its server: a deletion, a status that is not ready.
	ServerTroubles []plan.Trouble `json:"server_troubles,omitempty"`
	// PodsFailing counts its Pods whose virtual machines could not be made; nil: nobody knows.
	PodsFailing *int `json:"pods_failing,omitempty"`
	// Hold keeps everybody off the host, or did until a while ago; nil: nobody holds it.
	Hold *plan.Held `json:"hold,omitempty"`
	// Token says how old its token for the cluster is; nil: it has none, or nobody knows.
	Token    *plan.TokenAge `json:"token,omitempty"`
	Type     string         `json:"type"`
	Zone     string         `json:"zone"`
	Address  string         `json:"address"`
	Path     string         `json:"path"` // how it was reached; "" = it was not
	ServerID string         `json:"server_id"`
	OS       string         `json:"os"` // version the host says it runs; "" = not known
	// Orphaned says that it has no place in the configuration any more; fleet and group are
	// those that it had.
	Orphaned bool `json:"orphaned,omitempty"`
}

// HostRows returns the members of a plan in its order, and behind them those of ours that
// have no place any more.
func HostRows(p *plan.Plan) []HostRow {
	rows := []HostRow{}
	for _, h := range p.Hosts {
		if !h.Member {
			continue
		}
		os, _ := h.Seen.OSVersion.Get()
		r := HostRow{Name: h.Name, Fleet: h.Fleet, Group: h.Group, Reachable: "yes", Converged: string(h.Converged),
			Type: h.Server.Type, Zone: h.Server.Zone, Address: h.Server.Address, Hold: h.Held,
			Path: h.Seen.Path, ServerID: h.Server.ID, OS: os}
		r.Token = h.Token
		state, why, known := h.Ready()
		node, _ := h.Node.Get()
		switch {
		case known:
			r.Ready, r.ReadyWhy = string(state)+given(node.Cordoned, ",cordoned"), why
		case p.Cluster:
			r.Ready = "no-node"
		default:
			r.Ready = "-"
		}
		for _, w := range h.Warnings {
			switch {
			case w.OfServer:
				r.ServerTroubles = append(r.ServerTroubles, w.Trouble)
			case w.Step == "" && len(w.Fields) > 0:
				r.NodeTroubles = append(r.NodeTroubles, w.Trouble)
			}
		}
		if _, read := h.Pods.Get(); read && h.Spec.Spec.JoinsCluster() {
			r.PodsFailing = new(h.PodsFailing())
		}
		if h.Unknown != nil {
			r.Reachable = h.Unknown.Code.String()
		}
		if h.Refused != nil {
			r.Converged = h.Refused.Code.String()
		}
		rows = append(rows, r)
	}
	for _, o := range p.Orphans {
		os, _ := o.Seen.OSVersion.Get()
		r := HostRow{Name: o.Name, Fleet: o.Fleet, Group: o.Group, Reachable: "yes", Converged: o.Code.String(), Ready: o.Ready,
			Type: o.Server.Type, Zone: o.Server.Zone, Address: o.Server.Address, Path: o.Seen.Path, ServerID: o.Server.ID, OS: os, Orphaned: true}
		if o.Unknown != nil {
			r.Reachable = o.Unknown.Code.String()
		}
		rows = append(rows, r)
	}
	return rows
}

// tokenAge is how old a token is, in days.
func tokenAge(a *plan.TokenAge) string {
	if a == nil {
		return "-"
	}
	return strconv.Itoa(a.Days) + " d"
}

// Hosts prints the members as a table, which is wide with what is known of the machine.
func (t *Text) Hosts(p *plan.Plan, wide bool) {
	rows := HostRows(p)
	if len(rows) == 0 {
		t.Say("No hosts: nothing was claimed yet, or the selection matches none.")
		return
	}
	pods := slices.ContainsFunc(rows, func(r HostRow) bool { return r.PodsFailing != nil })
	held := slices.ContainsFunc(rows, func(r HostRow) bool { return r.heldBy() != "" })
	cells := func(always []string, failing, hold string, more ...string) []string {
		if pods {
			always = append(always, failing)
		}
		if held {
			always = append(always, hold)
		}
		if wide {
			always = append(always, more...)
		}
		return always
	}
	table := [][]string{cells([]string{"NAME", "FLEET", "REACHABLE", "CONVERGED", "READY"}, "PODS FAILING", "HELD",
		"GROUP", "TYPE", "ZONE", "ADDRESS", "PATH", "OS", "TOKEN", "SERVER")}
	var late, troubled, servers []engine.NotReady
	told := func(r HostRow, all []plan.Trouble) []engine.NotReady {
		return mapped(all, func(x plan.Trouble) engine.NotReady {
			return engine.NotReady{Host: plan.Host{Name: r.Name}, Why: x.Code.String() + ": " + x.Text}
		})
	}
	for _, r := range rows {
		troubled, servers = append(troubled, told(r, r.NodeTroubles)...), append(servers, told(r, r.ServerTroubles)...)
		failing := "-"
		if r.PodsFailing != nil {
			failing = strconv.Itoa(*r.PodsFailing)
		}
		table = append(table, cells([]string{r.Name, r.Fleet, r.Reachable, r.Converged, r.Ready}, failing, cmp.Or(r.heldBy(), "-"),
			r.Group, r.Type, r.Zone, r.Address, r.Path, r.OS, tokenAge(r.Token), r.ServerID))
		if r.ReadyWhy != "" {
			late = append(late, engine.NotReady{Host: plan.Host{Name: r.Name}, Why: r.ReadyWhy})
		}
	}
	t.uncovered(p.Coverage())
	t.Table(table, "SERVER", "OS", "PATH", "ZONE", "TYPE", "GROUP", "TOKEN", "ADDRESS", "FLEET")
	if len(late) > 0 {
		t.Say("Not Ready:")
		t.late(late)
	}
	if len(troubled) > 0 {
		t.Say("Troubles of Nodes:")
		t.late(troubled)
	}
	if len(servers) > 0 {
		t.Say("Troubles of servers:")
		t.late(servers)
	}
}

// heldBy says by whom and until when the host is held, or "".
func (r HostRow) heldBy() string {
	switch {
	case r.Hold == nil || r.Hold.Expired:
		return ""
	case r.Hold.Until.IsZero():
		return "yes"
	}
	return fmt.Sprintf("by %s until %s", r.Hold.Who, r.Hold.Until.UTC().Format("2006-01-02 15:04"))
}

// HostNames prints one name a line.
func (t *Text) HostNames(p *plan.Plan) {
	for _, r := range HostRows(p) {
		if !r.Orphaned { // no command takes the name of one
			fmt.Fprintln(t.out, r.Name)
		}
	}
}

// HostsDocument is the members as one JSON object.
type HostsDocument struct {
	wire.OwnedHead
	Coverage plan.Coverage `json:"coverage"` // what was compared, and what was not
	Hosts    []HostRow     `json:"hosts"`    // the members, and those that have no place any more
}

// WriteHosts prints the members as one JSON object.
func WriteHosts(out io.Writer, p *plan.Plan) error {
	return wire.Write(out, HostsDocument{wire.HeadOf(p.Owner), p.Coverage(), HostRows(p)})
}

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
	Missing int        `json:"missing"` // servers that are wanted and not there
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
