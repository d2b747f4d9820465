package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/plan"
)

// adopts adds one row for the first changes of a host that is adopted, with how many of them drain, reboot or
// wipe it. It returns which actions the row covers.
func (f *findings) adopts(h *plan.Host, actions []plan.Action) (covers func(plan.Action) bool) {
	if !slices.ContainsFunc(actions, func(a plan.Action) bool { return a.Runs() && a.Reason.Code == plan.CodeAdopted }) {
		return func(plan.Action) bool { return false }
	}
	covers = func(a plan.Action) bool { return a.Runs() && !a.Drift && !a.AfterRoot }
	x := finding{category: catAdopt, host: h}
	var disruptive, restarts []string
	first := only(actions, covers)
	slices.SortStableFunc(first, func(a, b plan.Action) int { // whether sudo comes first says nothing of adoption
		return cmp.Compare(given(a.Kind != plan.CreateMarker, "later"), given(b.Kind != plan.CreateMarker, "later"))
	})
	for _, a := range first {
		switch {
		case a.Disruption >= plan.Drain:
			disruptive = append(disruptive, label(a)+": "+a.Disruption.String())
		case a.Disruption == plan.Restart:
			restarts = append(restarts, label(a))
		}
		x.codes = append(x.codes, a.Reason.Code.String())
	}
	x.codes = unique(x.codes)
	x.text = listed(", ", count(len(disruptive), "disruptive action")+given(len(disruptive) > 0, " (%s)", strings.Join(disruptive, ", ")),
		given(len(restarts) > 0, "restarts %s", strings.Join(restarts, ", "))) + ": " + labelsOf(first)
	f.add(x)
	return covers
}
