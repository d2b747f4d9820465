package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// TestTokenActions: which tokens are made and ended, and when.
func TestTokenActions(t *testing.T) {
	t.Parallel()
	edit := func(change func(*inventory.Identity)) func(*world) {
		return func(w *world) {
			w.observe(func(c *inventory.Cluster) {
				all, _ := c.Identities.Get()
				change(&all[0])
			})
		}
	}
	outdated := func(w *world) { w.answers(1, "old") }
	rotate := func(w *world) { w.sel.NewTokens = true }
	for _, tc := range []struct {
		name  string
		edits []func(*world)
		want  []string
	}{
		{"nothing is asked for", nil, nil},
		{"rotate", []func(*world){rotate}, []string{"renew-token token-rotation P", "gamma token-rotation P", "old-tokens token-rotation P"}},
		{"a rotation broke off before the host had the new one", []func(*world){edit(func(i *inventory.Identity) { i.Token, i.Spent = "t-2", []string{"t"} }), outdated},
			[]string{"gamma kubeconfig-differs D", "old-tokens old-tokens D"}},
		{"a rotation broke off, and rotate", []func(*world){rotate, edit(func(i *inventory.Identity) { i.Token, i.Spent = "t-2", []string{"t"} }), outdated},
			[]string{"gamma kubeconfig-differs D", "old-tokens old-tokens D"}},
		{"nobody knows which token the host has", []func(*world){edit(func(i *inventory.Identity) { i.Token, i.Spent = "t-2", []string{"t"} })}, nil},
		{"an identity that is not complete", []func(*world){rotate, edit(func(i *inventory.Identity) { i.Bound = false })}, []string{"identity token-revoked D", "gamma config-changed P"}},
		{"the host is silent", []func(*world){rotate, func(w *world) {
			w.change(1, func(h *plan.HostSeen) { h.Trouble = plantest.Code("unreachable").Trouble("no route to host") })
		}}, nil},
	} {
		w := joined()
		for _, edit := range tc.edits {
			edit(w)
		}
		p := w.plan(t)
		var got []string
		for _, line := range lines(p) {
			got = append(got, strings.TrimPrefix(line, first+" "))
		}
		expect(t, tc.name, tc.want, got)
	}
}

func TestTokenAge(t *testing.T) {
	t.Parallel()
	w := joined()
	if h := oneHost(t, w.plan(t)); h.Token != nil {
		t.Errorf("of an older record: %+v", h.Token)
	}
	w.observe(func(c *inventory.Cluster) {
		all, _ := c.Identities.Get()
		all[0].Since = w.snap.Taken.Add(-50 * time.Hour)
	})
	if h := oneHost(t, w.plan(t)); h.Token == nil || h.Token.Days != 2 {
		t.Errorf("%+v", h.Token)
	}
}
