package view

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/lipgloss"

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
	// PodsFailing counts its Pods whose virtual machines could not be made; nil: nobody knows.
	PodsFailing *int `json:"pods_failing,omitempty"`
	// Hold keeps everybody off the host, or did until a while ago; nil: nobody holds it.
	Hold     *plan.Held `json:"hold,omitempty"`
	Type     string     `json:"type"`
	Zone     string     `json:"zone"`
	Address  string     `json:"address"`
	Path     string     `json:"path"` // how it was reached; "" = it was not
	ServerID string     `json:"server_id"`
	OS       string     `json:"os"` // version the host says it runs; "" = not known
}

// HostRows returns the members of a plan in its order.
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
		r.Ready, r.ReadyWhy = ready(p, h)
		if _, read := h.Pods.Get(); read && h.Spec.Spec.JoinsCluster() {
			n := h.PodsFailing()
			r.PodsFailing = &n
		}
		if h.Unknown != nil {
			r.Reachable = h.Unknown.Code.String()
		}
		if h.Refused != nil {
			r.Converged = h.Refused.Code.String()
		}
		rows = append(rows, r)
	}
	return rows
}

// ready says how a host stands as a Node, by its Node and its kubelet, and why it is
// not Ready.
func ready(p *plan.Plan, h plan.Host) (text, why string) {
	state, why, known := h.Ready()
	n, _ := h.Node.Get()
	switch {
	case known && n.Cordoned:
		return string(state) + ",cordoned", why
	case known:
		return string(state), why
	case !p.Cluster:
		return "-", ""
	}
	return "no-node", ""
}

// Hosts prints the members as a table. wide adds what the provider and the host
// say of the machine.
func (t *Text) Hosts(p *plan.Plan, wide bool) {
	rows := HostRows(p)
	table := [][]string{{"NAME", "FLEET", "REACHABLE", "CONVERGED", "READY"}}
	pods := slices.ContainsFunc(rows, func(r HostRow) bool { return r.PodsFailing != nil })
	if pods {
		table[0] = append(table[0], "PODS FAILING")
	}
	held := slices.ContainsFunc(rows, func(r HostRow) bool { return r.Hold != nil && !r.Hold.Expired })
	if held {
		table[0] = append(table[0], "HELD")
	}
	if wide {
		table[0] = append(table[0], "GROUP", "TYPE", "ZONE", "ADDRESS", "PATH", "OS", "SERVER")
	}
	for _, r := range rows {
		row := []string{r.Name, r.Fleet, r.Reachable, r.Converged, r.Ready}
		if pods {
			row = append(row, r.failing())
		}
		if held {
			row = append(row, r.held())
		}
		if wide {
			row = append(row, r.Group, r.Type, r.Zone, r.Address, r.Path, r.OS, r.ServerID)
		}
		table = append(table, row)
	}
	if len(table) == 1 {
		t.line(0, "", "No hosts: nothing was claimed yet, or the selection matches none.")
		return
	}
	t.table(table)
	var late []engine.NotReady
	for _, r := range rows {
		if r.ReadyWhy != "" {
			late = append(late, engine.NotReady{Host: plan.Host{Name: r.Name}, Why: r.ReadyWhy})
		}
	}
	if len(late) > 0 {
		t.Say("Not Ready:")
		t.late(late)
	}
}

func (r HostRow) failing() string {
	if r.PodsFailing == nil {
		return "-"
	}
	return strconv.Itoa(*r.PodsFailing)
}

func (r HostRow) held() string {
	switch {
	case r.Hold == nil || r.Hold.Expired:
		return "-"
	case r.Hold.Until.IsZero():
		return "yes"
	}
	return fmt.Sprintf("by %s until %s", r.Hold.Who, r.Hold.Until.UTC().Format("2006-01-02 15:04"))
}

// HostNames prints one name a line.
func (t *Text) HostNames(p *plan.Plan) {
	for _, r := range HostRows(p) {
		fmt.Fprintln(t.out, r.Name)
	}
}

// HostsDocument is the members as one JSON object.
type HostsDocument struct {
	wire.OwnedHead
	Hosts []HostRow `json:"hosts"` // the members
}

// WriteHosts prints the members as one JSON object.
func WriteHosts(out io.Writer, p *plan.Plan) error {
	return wire.Write(out, HostsDocument{wire.HeadOf(p.Owner), HostRows(p)})
}

// table prints aligned columns. Where they do not fit, each row becomes lines
// of "column: value".
func (t *Text) table(rows [][]string) {
	rows = shown(rows)
	widths := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, c := range r {
			widths[i] = max(widths[i], lipgloss.Width(c))
		}
	}
	total := -2
	for _, w := range widths {
		total += w + 2
	}
	if t.width > 0 && total > t.width {
		t.records(rows)
		return
	}
	for n, r := range rows {
		var b strings.Builder
		for i, c := range r {
			b.WriteString(c)
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-lipgloss.Width(c)+2))
			}
		}
		text := strings.TrimRight(b.String(), " ")
		if n == 0 {
			text = t.styles.faint.Render(text)
		}
		fmt.Fprintln(t.out, text)
	}
}

// shown makes rows printable, so that columns are measured as they appear.
func shown(rows [][]string) [][]string {
	out := make([][]string, len(rows))
	for i, r := range rows {
		for _, c := range r {
			out[i] = append(out[i], printable(c))
		}
	}
	return out
}

func (t *Text) records(rows [][]string) {
	for _, r := range rows[1:] {
		t.styled(0, "", t.styles.strong.Render(r[0]))
		var parts []string
		for i, c := range r[1:] {
			parts = append(parts, strings.ToLower(rows[0][i+1])+" "+c)
		}
		t.line(4, "", strings.Join(parts, ", "))
	}
}
