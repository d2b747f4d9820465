package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// TestStrandedPods: Pods of a host that is gone are let go only where everything says that
// it is gone.
func TestStrandedPods(t *testing.T) {
	t.Parallel()
	gone := "acme-prod-macos-m2-fade0"
	for name, tc := range map[string]struct {
		edit func(*world, *inventory.Pod)
		want string // the code of the action, or of the warning with its reason; "" = neither
	}{
		"gone":                {func(*world, *inventory.Pod) {}, "stranded-pods"},
		"gone, and ended":     {func(_ *world, p *inventory.Pod) { p.Phase = "Succeeded" }, "stranded-pods"},
		"not being deleted":   {func(_ *world, p *inventory.Pod) { p.Overdue, p.Due = false, time.Time{} }, ""},
		"held by another too": {func(_ *world, p *inventory.Pod) { p.Finalizers = append(p.Finalizers, "acme.dev/backup") }, ""},
		"its Node exists":     {func(w *world, _ *inventory.Pod) { w.node(2, gone, inventory.ReadyUnknown) }, ""},
		"a member":            {func(_ *world, p *inventory.Pod) { p.Node = first }, ""},
		"its server exists": {func(w *world, _ *inventory.Pod) {
			w.server(7, "someones-mac").ID = "fade0000-0000-4000-8000-000000000000"
		}, "pods-left-over the inventory has server someones-mac"},
		"a server has its name": {func(w *world, p *inventory.Pod) {
			p.Node = "acme-prod-macos-m2-bad00"
			w.server(7, p.Node)
		}, "pods-left-over the inventory has server acme-prod-macos-m2-bad00"},
		"its key is pinned": {func(w *world, _ *inventory.Pod) { w.pin(7, gone) }, "pods-left-over its host key is still pinned"},
		"another's host":    {func(_ *world, p *inventory.Pod) { p.Node = "globex-prod-macos-m2-fade0" }, "pods-left-over its name is not one of this configuration's"},
		"a selection":       {func(w *world, _ *inventory.Pod) { w.sel.Steps = []plan.StepID{"gamma"} }, ""},
		"Nodes unread":      {func(w *world, _ *inventory.Pod) { w.snap.Nodes = inventory.Unread[[]inventory.Node]("forbidden") }, ""},
		"no Nodes":          {func(w *world, _ *inventory.Pod) { w.noNodes() }, "pods-left-over the cluster has no Nodes"},
		"an empty inventory": {func(w *world, _ *inventory.Pod) {
			w.snap.Servers, w.snap.Pins = nil, nil
			w.node(1, "another", inventory.Ready)
			w.noIdentities()
		}, "pods-left-over the inventory is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := joined()
			p := inventory.Pod{Namespace: "ci", Name: "a", UID: "u", Node: gone, Phase: "Running", Finalizers: []string{inventory.VMFinalizer}, Due: time.Unix(1, 0), Overdue: true}
			tc.edit(w, &p)
			w.pods(p)
			got := w.compute()
			var said []string
			for _, a := range got.Actions {
				if a.Kind == plan.ReleasePods && a.ServerID == "" {
					said = append(said, a.Reason.Code.String())
					if !a.OfCluster() || !a.Drift || len(a.Pods) != 1 || a.Host != gone {
						t.Errorf("%+v", a)
					}
				}
			}
			for _, warning := range got.Warnings {
				_, why, _ := strings.Cut(warning.Text, "finalizer, and ")
				said = append(said, strings.TrimSpace(warning.Code.String()+" "+why))
			}
			if want := slices.DeleteFunc([]string{tc.want}, func(s string) bool { return s == "" }); !slices.Equal(said, want) {
				t.Errorf("said %q, want %q", said, want)
			}
		})
	}
}
