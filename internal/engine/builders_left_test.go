package engine_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/github"
	"github.com/macfleet/macfleet/plan"
)

// TestLeftOverRunners: of the entries that share an organization, a run deletes only offline ones under names of this
// configuration that a released server had. Package plan has the rule, and TestForgetAgent what changes after the plan.
func TestLeftOverRunners(t *testing.T) {
	t.Parallel()
	const ours = "acme-production-macos-m2-0000"
	c := builders(2)
	w, _ := converged(t, 4, c)
	c.Fleets = append(c.Fleets, builders(0).Fleets[0])
	c.Fleets[1].Name = "more"
	kept := []github.Runner{{Name: "ACME-PRODUCTION-MACOS-M2-00001"}, {Name: ours + "2", Scope: "acme/app"}, {Name: ours + "3", Status: "online"},
		{Name: ours + "4", Busy: "yes"}, {Name: ours + "5"}, {Name: "acme-canary-macos-m2-00005"}, {Name: "globex-production-macos-m2-00006"}, {Name: "build-7"}}
	for i, entry := range append(kept, github.Runner{Name: ours + "0"}) {
		entry.ID, entry.Group, entry.Client, entry.Created = int64(70+i), 1, "elsewhere", time.Now()
		if entry.Scope == "" {
			entry.Scope = organization
		}
		must(t, w.GitHub().Put(entry))
	}
	list := func() []github.Runner {
		all, err := w.GitHub().Runners()
		must(t, err)
		return all
	}
	before := list()
	e := runBuilders(t, w, c)
	must(t, e.Pins.Update(func(all []plan.Pin) []plan.Pin {
		for i := range 5 { // were the released servers; the sixth entry is one that a person, or another configuration, is setting up
			all = append(all, plan.Pin{ServerID: fmt.Sprintf("gone-%d", i), Name: ours + strconv.Itoa(i), Key: all[0].Key, Stage: plan.Released})
		}
		return all
	}))
	converges(t, e)
	want := slices.DeleteFunc(before, func(r github.Runner) bool { return r.Name == ours+"0" })
	same := func(a, b github.Runner) bool { return a.ID == b.ID && a.Name == b.Name && a.Scope == b.Scope }
	if got := list(); !slices.EqualFunc(got, want, same) {
		t.Errorf("GitHub has %+v", got)
	}
}
