package view_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// TestCountsAgree: the heading, the closing line of a plan, the result of an apply, the heading of hosts and the JSON count the
// same hosts, each once.
func TestCountsAgree(t *testing.T) {
	t.Parallel()
	hold := plan.Held{}
	hold.Who, hold.Reason, hold.Until = "sam@desk", "swap", narrow.Now.AddDate(0, 0, 2)
	for name, c := range map[string]struct {
		edit          func(h *plan.Host, p *plan.Plan)
		counts        plan.Tally
		heading, last string
		state         view.HostState
	}{
		"a cluster that is not prepared": {func(h *plan.Host, _ *plan.Plan) {
			h.Member, h.Refused = false, plan.CodeClusterNotPrepared.Trouble("a Role is missing", "macfleet init cluster")
		}, plan.Tally{Hosts: 1, Blocked: 1}, "1 host: 1 blocked, 0 in sync", "0/1 hosts converged, 1 blocked", ""},
		"held and in sync": {func(h *plan.Host, _ *plan.Plan) { h.Held = &hold }, plan.Tally{Hosts: 1, InSync: 1, HeldInSync: 1},
			"1 host: 1 in sync (1 held)", "1/1 hosts converged", "in-sync"},
		"held with a difference": {func(h *plan.Host, p *plan.Plan) {
			a := power(*h)
			a.Refusal = hold.Trouble(h.Name)
			h.Held, h.Converged, p.Actions = &hold, plan.Differs, []plan.Action{a}
		}, plan.Tally{Hosts: 1, HeldBack: 1}, "1 host: 1 held, 0 in sync", "0/1 hosts converged, 1 held", "held"},
		"held and blocked": {func(h *plan.Host, _ *plan.Plan) {
			h.Held, h.Refused = &hold, plan.CodeClusterNotPrepared.Trouble("a Role is missing", "macfleet init cluster")
		}, plan.Tally{Hosts: 1, Blocked: 1}, "1 host: 1 blocked, 0 in sync", "0/1 hosts converged, 1 blocked", "blocked"},
		"partly unread": {func(h *plan.Host, _ *plan.Plan) {
			h.Unread, h.Converged = []plan.StepUnread{{Step: "power"}}, plan.NotCompared
		}, plan.Tally{Hosts: 1, Uncompared: 1}, "1 host: 1 not compared, 0 in sync", "0/1 hosts converged, 1 not compared", "unknown"},
		"partly unread, and something runs": {func(h *plan.Host, p *plan.Plan) {
			h.Unread, h.Converged = []plan.StepUnread{{Step: "tart"}}, plan.Differs
			p.Actions = []plan.Action{power(*h)}
		}, plan.Tally{Hosts: 1, ToFix: 1, Actions: 1}, "1 host: 1 to fix, 0 in sync", "0/1 hosts converged, 1 to change", "drifted"},
	} {
		h := member(1, "runners")
		p := &plan.Plan{Owner: fleet.Owner{Name: "acme"}, Fleets: []string{"runners"}}
		c.edit(&h, p)
		p.Hosts = []plan.Host{h}
		if got := p.Tally(); got != c.counts || wire.PlanOf(p).HostCounts != c.counts {
			t.Errorf("%s: %+v, want %+v", name, got, c.counts)
		}
		var b bytes.Buffer
		v := view.NewText(&b, 0, false)
		v.Plan(p, view.PlanForm{})
		if !strings.Contains(b.String(), c.heading) && !strings.HasPrefix(b.String(), "No changes.") {
			t.Errorf("%s: %q is not in\n%s", name, c.heading, &b)
		}
		b.Reset()
		v.Result(view.Ending{Result: engine.Result{After: p}, Took: time.Second})
		has(t, b.String(), "  "+c.last+", 1s", name, c.last)
		if rows := view.HostRows(p, narrow.Now); h.Member && rows[0].State != c.state {
			t.Errorf("%s: the state of the host is %s, want %s", name, rows[0].State, c.state)
		}
	}
}
