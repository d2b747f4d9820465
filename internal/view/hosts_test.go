package view_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// TestHostStates: what a plan says of a host is one word, the worst first.
func TestHostStates(t *testing.T) {
	t.Parallel()
	got := make(map[string]view.HostState)
	for _, r := range view.HostRows(everything(), narrow.Now) {
		got[r.Name[len(r.Name)-5:]] = r.State
		equal(t, r.Why == "", r.State == "in-sync", r.Name, r.State, r.Why)
	}
	want := map[string]view.HostState{"00002": "drifted", "00003": "drifted", "00004": "unknown", "00005": "blocked", "00006": "blocked", "00007": "unknown", "0000b": "orphaned"}
	for name, state := range want {
		equal(t, got[name], state, name)
	}
	p := everything()
	for i := range p.Hosts {
		p.Hosts[i].Held = &plan.Held{}
		p.Hosts[i].Held.Who, p.Hosts[i].Held.Reason, p.Hosts[i].Held.Until = "sam@desk", "swap", narrow.Now.AddDate(0, 0, 2)
	}
	for i := range p.Actions {
		p.Actions[i].Refusal = p.Hosts[0].Held.Trouble(p.Actions[i].Host)
	}
	r := view.HostRows(p, narrow.Now)[0]
	if r.State != "held" || r.Why != "held by sam@desk until 2026-11-24 05:19: swap" {
		t.Errorf("a held host with a difference is %s: %s", r.State, r.Why)
	}
}

// leavingHost is a plan in which the only member is released.
func leavingHost() *plan.Plan {
	h := member(1, "runners")
	h.Leaves, h.Converged = true, plan.Differs
	h.Spec.Spec.TartKubelet = &fleet.TartKubelet{}
	p := &plan.Plan{Owner: fleet.Owner{Name: "acme", Environment: "production"}, Cluster: true, Hosts: []plan.Host{h}}
	for _, k := range []plan.Kind{plan.ReinstallServer, plan.ReleaseServer} {
		p.Actions = append(p.Actions, plan.Action{Kind: k, Host: h.Name, Fleet: h.Fleet, Group: h.Group, ServerID: h.Server.ID, Reset: &plan.Reset{},
			Reason: plan.Reason{Code: plantest.Code("too-many-replicas"), Text: "runners.m2 has replicas = 0"}})
	}
	return p
}

// TestAHostThatLeaves: a host that is released is leaving, also while it is erased and does not answer, and it does not
// count as not Ready.
func TestAHostThatLeaves(t *testing.T) {
	t.Parallel()
	p := leavingHost()
	p.Hosts[0].Unknown = &plan.Trouble{Code: plan.CodeUnreachable, Text: "connection refused"}
	var b strings.Builder
	view.NewText(&b, 0, false).Hosts(p, narrow)
	r := view.HostRows(p, narrow.Now)[0]
	if r.State != "leaving" || r.Why != "release: runners.m2 has replicas = 0 (too-many-replicas)" || !strings.Contains(b.String(), "1 host · 1 leaving ") {
		t.Errorf("%s: %s\n%s", r.State, r.Why, b.String())
	}
	p = leavingHost()
	for i := range p.Actions {
		p.Actions[i].Deferral = &plan.Trouble{Code: plantest.Code("too-many-wipes"), Text: "one run wipes at most 1 host"}
	}
	if r := view.HostRows(p, narrow.Now)[0]; r.State != "leaving" || r.Why != "release: runners.m2 has replicas = 0; deferred (too-many-replicas, too-many-wipes)" {
		t.Errorf("deferred: %s: %s", r.State, r.Why)
	}
}

// TestAHostWithoutItsNode: a host whose fleet joins the cluster is counted as not Ready without a Node, with the reason.
func TestAHostWithoutItsNode(t *testing.T) {
	t.Parallel()
	p := everything()
	p.Actions, p.Orphans, p.Cluster = nil, nil, true
	h := p.Hosts[slices.IndexFunc(p.Hosts, func(h plan.Host) bool { return h.Member && h.Unknown == nil })]
	h.Unread = nil
	h.Warnings, h.Node, h.Unknown, h.Refused = nil, inventory.Absent[inventory.Node](), nil, nil
	h.Spec.Spec.TartKubelet = &fleet.TartKubelet{}
	p.Hosts = []plan.Host{h}
	if r := view.HostRows(p, narrow.Now)[0]; r.Why != "not Ready: the cluster has no Node of that name" {
		t.Errorf("%s: %s", r.State, r.Why)
	}
	var b bytes.Buffer
	view.NewText(&b, 0, false).Hosts(p, view.HostsOptions{Now: narrow.Now})
	has(t, b.String(), "1 not Ready")
}

func TestHostsFormats(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	v := view.NewText(&b, 0, false)
	v.Hosts(everything(), view.HostsOptions{Now: narrow.Now, Bare: true, SortBy: "state"})
	rows := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(rows) != 7 || !strings.Contains(rows[0], "unknown") || !strings.Contains(rows[6], "orphaned") {
		t.Errorf("rows, the worst first:\n%s", b.String())
	}
	b.Reset()
	must(t, view.WriteHostsYAML(&b, everything(), narrow))
	var d view.HostsDocument
	if err := yaml.Unmarshal(b.Bytes(), &d); err == nil && len(d.Hosts) != 7 {
		t.Errorf("YAML of %d hosts", len(d.Hosts))
	}
	has(t, b.String(), "\n  state: drifted\n", "YAML")
}

// TestHostChanges prints the rows that changed, behind the time.
func TestHostChanges(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	v := view.NewText(&b, 0, false)
	c := new(view.HostChanges)
	c.Print(v, everything(), narrow)
	if n := strings.Count(b.String(), "\n"); n != 8 || !strings.HasPrefix(b.String(), "TIME  ") {
		t.Errorf("at first %d lines:\n%s", n, b.String())
	}
	b.Reset()
	c.Print(v, everything(), narrow)
	if b.Len() > 0 {
		t.Errorf("nothing changed:\n%s", b.String())
	}
	p := everything()
	p.Hosts[1].Unknown, p.Orphans = &plan.Trouble{Code: plan.CodeUnreachable, Text: "no route to host"}, nil
	c.Print(v, p, narrow)
	if n := strings.Count(b.String(), "2026-11-22T05:19:00Z"); n != 2 || !strings.Contains(b.String(), "no route to host") || !strings.Contains(b.String(), "no longer a member") {
		t.Errorf("%d lines:\n%s", n, b.String())
	}
}

// TestFrames: each frame takes the place of the one before, line by line, and is never higher than the terminal.
func TestFrames(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	f := view.NewFrames(&b, func() (columns, rows int) { return 10, 5 })
	draw := func(lines int) string {
		b.Reset()
		f.Draw(func(out io.Writer, width int) {
			for i := range lines {
				fmt.Fprintf(out, "%d %s\n", i, strings.Repeat("x", 2*width))
			}
		})
		return b.String()
	}
	if got := draw(2); strings.Count(got, "\n") != 2 || strings.Contains(got, "\x1b[J") || strings.Contains(got, strings.Repeat("x", 9)) {
		t.Errorf("the first frame: %q", got)
	}
	if got := draw(9); !strings.HasPrefix(got, "\x1b[2A") || strings.Count(got, "\n") != 4 || !strings.Contains(got, "… 6 more") {
		t.Errorf("a frame that is too high: %q", got)
	}
	if got := draw(1); !strings.HasPrefix(got, "\x1b[4A") || !strings.HasSuffix(got, "\x1b[J") {
		t.Errorf("a lower frame: %q", got)
	}
}
