package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// HostRow is one member as `hosts` shows it. Reachable, converged and Ready are
// three things and are never mixed.
type HostRow struct {
	Name      string `json:"name"`
	Fleet     string `json:"fleet"`
	Group     string `json:"group"`
	Reachable string `json:"reachable"` // yes, or the code of the trouble
	Converged string `json:"converged"` // yes, no, unknown, or the code of a refusal
	// State sums it up: in-sync, drifted, to-update, blocked, held, leaving, unknown or orphaned.
	State HostState `json:"state"`
	// Why is the most important reason why it is not in sync and Ready; "" = it is.
	Why      string `json:"why,omitempty"`
	Ready    string `json:"ready"`               // True, False, Unknown, no-node; "-" without a cluster
	ReadyWhy string `json:"ready_why,omitempty"` // why it is not True, where there is a Node
	// NodeTroubles are what else is wrong with its Node: a cordon, taints, conditions.
	NodeTroubles []plan.Trouble `json:"node_troubles,omitempty"`
	// ServerTroubles are what the provider says of its server: a deletion, a status that is not ready.
	ServerTroubles []plan.Trouble `json:"server_troubles,omitempty"`
	// PodsRunning counts its Pods that run, PodsMost how many its kubelet takes; nil: not known.
	PodsRunning *int `json:"pods_running,omitempty"`
	PodsMost    *int `json:"pods_most,omitempty"`
	// PodsFailing counts its Pods whose virtual machines could not be made; nil: not known.
	PodsFailing *int `json:"pods_failing,omitempty"`
	// Hold blocks changes to the host, or did until a while ago; nil: there is none.
	Hold *plan.Held `json:"hold,omitempty"`
	// Token says how old its token for the cluster is; nil: it has none, or it is not known.
	Token *plan.TokenAge `json:"token,omitempty"`
	// Peers are what services have of it, for example of its CI agent.
	Peers    []plan.HostPeer `json:"peers,omitempty"`
	KeySince time.Time       `json:"key_since,omitzero"` // when its SSH key was pinned; zero: it is not pinned
	Type     string          `json:"type"`
	Zone     string          `json:"zone"`
	Address  string          `json:"address"`
	Path     string          `json:"path"` // how it was reached; "" = it was not
	ServerID string          `json:"server_id"`
	OS       string          `json:"os"` // version the host says it runs; "" = not known
	// Orphaned says that it has no place in the configuration any more; fleet and group are
	// those that it had.
	Orphaned bool `json:"orphaned,omitempty"`

	joins bool     // its fleet joins the cluster, and it stays
	brief []string // what stands for Why where that does not fit, the longest first
}

// HostRows returns the members of a plan in its order, and behind them orphaned members.
func HostRows(p *plan.Plan, now time.Time) []HostRow {
	rows := []HostRow{}
	actions := byHost(p)
	for _, h := range p.Hosts {
		if !h.Member {
			continue
		}
		os, _ := h.Seen.OSVersion.Get()
		r := HostRow{Name: h.Name, Fleet: h.Fleet, Group: h.Group, Reachable: "yes", Converged: string(h.Converged), Peers: h.Peers,
			Type: h.Server.Type, Zone: h.Server.Zone, Address: h.Server.Address, Hold: h.Held, Token: h.Token,
			Path: h.Seen.Path, ServerID: h.Server.ID, OS: os}
		if pin := h.Trust().Pin; pin != nil {
			r.KeySince = pin.Since
		}
		state, why, known := h.Ready()
		node, _ := h.Node.Get()
		switch {
		case known:
			r.Ready, r.ReadyWhy = string(state)+given(node.Cordoned, ",cordoned"), why
		case p.Cluster && h.Node.IsUnread() && h.Spec.Spec.JoinsCluster():
			r.Ready = string(inventory.ReadyUnknown)
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
		r.countPods(h)
		if h.Unknown != nil {
			r.Reachable = h.Unknown.Code.String()
		}
		if h.Refused != nil {
			r.Converged = h.Refused.Code.String()
		}
		r.joins = h.Spec.Spec.JoinsCluster() && !h.Leaves
		r.State = stateOf(h, actions[h.Server.ID])
		r.Why, r.brief = r.because(h, actions[h.Server.ID], now)
		rows = append(rows, r)
	}
	for _, o := range p.Orphans {
		os, _ := o.Seen.OSVersion.Get()
		r := HostRow{Name: o.Name, Fleet: o.Fleet, Group: o.Group, Reachable: "yes", Converged: o.Code.String(), Ready: o.Ready, State: orphaned,
			Type: o.Server.Type, Zone: o.Server.Zone, Address: o.Server.Address, Path: o.Seen.Path, ServerID: o.Server.ID, OS: os, Orphaned: true}
		r.Why, r.brief = ofTrouble(&o.Trouble)
		if o.Unknown != nil {
			r.Reachable = o.Unknown.Code.String()
		}
		rows = append(rows, r)
	}
	return rows
}

func (r *HostRow) countPods(h plan.Host) {
	pods, read := h.Pods.Get()
	if !read || !h.Spec.Spec.JoinsCluster() {
		return
	}
	running := 0
	for _, p := range pods {
		if p.Works() && p.Phase == "Running" {
			running++
		}
	}
	r.PodsRunning, r.PodsFailing = &running, new(h.PodsFailing())
	if node, ok := h.Node.Get(); ok && node.Capacity.Pods > 0 {
		r.PodsMost = &node.Capacity.Pods
	}
}

// HostsDocument is the members as one JSON object.
type HostsDocument struct {
	wire.OwnedHead
	Coverage plan.Coverage `json:"coverage"` // what was compared, and what was not
	Hosts    []HostRow     `json:"hosts"`    // the members, and those that have no place any more
}

// HostsOptions say how hosts are listed.
type HostsOptions struct {
	Now    time.Time
	Wide   bool   // all columns
	Bare   bool   // without the heading, the heads of the columns and the footer
	SortBy string // head of a column in any case; empty: the order of the configuration
}

// rows returns the rows in the wanted order.
func (o HostsOptions) rows(p *plan.Plan) []HostRow {
	rows := HostRows(p, o.Now)
	if o.SortBy == "" {
		return rows
	}
	c := tableOfHosts(p.Names())[slices.Index(HostColumns(), strings.ToUpper(o.SortBy))]
	slices.SortStableFunc(rows, func(a, b HostRow) int {
		if c.order != nil {
			return c.order(a, b)
		}
		return cmp.Compare(c.cell(a), c.cell(b))
	})
	return rows
}

// WriteHosts prints the members as one JSON object.
func WriteHosts(out io.Writer, p *plan.Plan, o HostsOptions) error {
	return wire.Write(out, o.document(p))
}

func (o HostsOptions) document(p *plan.Plan) HostsDocument {
	return HostsDocument{wire.HeadOf(p.Owner), p.Coverage(), o.rows(p)}
}

// WriteHostsYAML prints the same object as YAML.
func WriteHostsYAML(out io.Writer, p *plan.Plan, o HostsOptions) error {
	var text strings.Builder
	if err := wire.Write(&text, o.document(p)); err != nil {
		return err
	}
	content, err := yaml.JSONToYAML([]byte(text.String()))
	if err != nil {
		return fmt.Errorf("write hosts as YAML: %w", err)
	}
	if _, err := out.Write(content); err != nil {
		return fmt.Errorf("write hosts: %w", err)
	}
	return nil
}

// HostNames prints one full name a line.
func (t *Text) HostNames(p *plan.Plan, o HostsOptions) {
	for _, r := range o.rows(p) {
		if !r.Orphaned { // no command takes the name of one
			fmt.Fprintln(t.out, r.Name)
		}
	}
}
