package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox/github"
	"github.com/macfleet/macfleet/plan"
)

// TestLeftOverRunners: of the entries that share an organization, a run deletes only offline ones under names of this
// configuration that no server has, and none while a host is silent or if the run is narrowed.
func TestLeftOverRunners(t *testing.T) {
	t.Parallel()
	const ours = "acme-production-macos-m2-00000"
	for name, tc := range map[string]struct {
		entry  github.Runner
		happen func(*testing.T, builder, *engine.Engine) // before the plan
		since  func(*github.Runner)                      // to the entry, since the plan
		gone   bool                                      // the entry is deleted
		fails  string
	}{
		"this configuration's":                  {entry: github.Runner{Name: ours}, gone: true},
		"this configuration's, in capitals":     {entry: github.Runner{Name: strings.ToUpper(ours)}},
		"this configuration's, of a repository": {entry: github.Runner{Name: ours, Scope: "acme/app"}},
		"this configuration's, online":          {entry: github.Runner{Name: ours, Status: "online"}},
		"this configuration's, busy":            {entry: github.Runner{Name: ours, Busy: "yes"}},
		"of another environment":                {entry: github.Runner{Name: "acme-canary-macos-m2-00000"}},
		"of another configuration":              {entry: github.Runner{Name: "globex-production-macos-m2-00000"}},
		"of a person":                           {entry: github.Runner{Name: "build-1"}},
		"online since the plan":                 {entry: github.Runner{Name: ours}, since: func(r *github.Runner) { r.Status = "online" }, fails: "changed since the plan"},
		"busy since the plan":                   {entry: github.Runner{Name: ours}, since: func(r *github.Runner) { r.Busy = "yes" }, fails: "changed since the plan"},
		"another name since the plan":           {entry: github.Runner{Name: ours}, since: func(r *github.Runner) { r.Name = "build-1" }, fails: "changed since the plan"},
		"a host is silent": {entry: github.Runner{Name: ours}, happen: func(t *testing.T, b builder, _ *engine.Engine) {
			if err := b.Inject(b.name, "unreachable"); err != nil {
				t.Error(err)
			}
		}},
		"a narrowed run": {entry: github.Runner{Name: ours}, happen: func(t *testing.T, b builder, e *engine.Engine) {
			on, err := plan.ParseSelector("name=" + b.name)
			if err != nil {
				t.Error(err)
			}
			e.Selection.On = []plan.Selector{on}
		}},
	} {
		parallel(t, name, func(t *testing.T) {
			w, _ := converged(t, 4, builders(2))
			b := builderOf(t, w, member(t, w))
			tc.entry.ID, tc.entry.Group, tc.entry.Client, tc.entry.Created = 7, 1, "elsewhere", time.Now()
			if tc.entry.Scope == "" {
				tc.entry.Scope = organization
			}
			must(t, b.GitHub().Put(tc.entry))
			c := builders(2)
			more := builders(0).Fleets[0]
			more.Name = "more"
			c.Fleets = append(c.Fleets, more)
			e := runBuilders(t, b.World, c)
			if tc.happen != nil {
				tc.happen(t, b, e)
			}
			p := planned(t, e)
			forgets := func(a plan.Action) bool { return a.Kind == plan.ForgetAgent }
			if planned := slices.ContainsFunc(p.Actions, forgets); planned != (tc.gone || tc.fails != "") {
				t.Errorf("planned: %t", planned)
			}
			if tc.since != nil {
				if _, err := b.GitHub().Edit(7, tc.since); err != nil {
					t.Fatal(err)
				}
			}
			r := performed(t, e, p)
			if got := strings.Join(failed(r), "\n"); (got == "") != (tc.fails == "") || !strings.Contains(got, tc.fails) {
				t.Errorf("failures %q, want %q", got, tc.fails)
			}
			all, err := b.GitHub().Runners()
			must(t, err)
			has := slices.ContainsFunc(all, func(r github.Runner) bool { return r.ID == 7 })
			if has == tc.gone || len(all) < 2 {
				t.Errorf("GitHub has %+v", all)
			}
		})
	}
}
