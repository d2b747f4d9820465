package drift_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
	"github.com/macfleet/macfleet/steps"
)

func day(text string) time.Time {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		panic(err)
	}
	return t
}

func noon() time.Time { return day("2026-11-21").Add(12 * time.Hour) }

// moved is an action whose step drifted for some reasons, each with a field of that
// name.
func moved(host, fleet string, step plan.StepID, codes ...string) plan.Action {
	a := plan.Action{Kind: plan.RunStep, Host: host, Fleet: fleet, ServerID: "id-" + host, Step: step, Reason: plan.Reason{Code: plantest.Code(codes[0]), Text: codes[0] + " was seen"},
		Origin: plan.Origin{Drift: true}}
	for _, c := range codes {
		f := plan.Field{Name: "field of " + c, Before: "seen", After: "wanted"}
		a.Changes = append(a.Changes, plan.Change{Reason: plan.Reason{Code: plantest.Code(c), Text: c + " was seen"}, Fields: []plan.Field{f}})
		a.Fields = append(a.Fields, f)
	}
	return a
}

// planOf is a plan of two fleets of two hosts, named a1, a2, b1, b2, with actions.
func planOf(actions ...plan.Action) *plan.Plan {
	p := &plan.Plan{Owner: fleet.Owner{Name: "acme"}, Fleets: []string{"a", "b"}, Actions: actions}
	for _, name := range []string{"a1", "a2", "b1", "b2"} {
		p.Hosts = append(p.Hosts, plan.Host{Name: name, Fleet: name[:1], Member: true, Server: inventory.Server{ID: "id-" + name}})
	}
	return p
}

func report(t interface{ Fatal(...any) }, p *plan.Plan, ignores ...fleet.Ignore) drift.Report {
	r, err := drift.Of(p, ignores, noon())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// shown lists items as HOST STEP CODE, with their fields.
func shown(items []drift.Item) []string {
	out := []string{}
	for _, i := range items {
		text := i.Host + " " + i.Step + " " + i.Code.String()
		for _, f := range i.Fields {
			text += " [" + f.Name + "]"
		}
		out = append(out, text)
	}
	return out
}

func TestItems(t *testing.T) {
	t.Parallel()
	pending := moved("b1", "b", "hostname", "hostname-edited")
	pending.Origin = plan.Origin{Pending: true}
	both := moved("b2", "b", "hostname", "hostname-edited")
	both.Origin.Pending = true
	refused := moved("a2", "a", "tart", "tart-missing")
	refused.Reason, refused.Refusal = plan.Reason{Code: plantest.Code("disk-full")}, &plan.Trouble{Code: plantest.Code("disk-full")}
	object := plan.Action{Kind: plan.KeepObject, Object: &inventory.Object{Kind: "Secret", Namespace: "default", Name: "x"}, Reason: plan.Reason{Code: plantest.Code("object-differs")}, Origin: plan.Origin{Drift: true}}
	rename := plan.Action{Kind: plan.RenameServer, Host: "a1", Fleet: "a", ServerID: "id-a1", Reason: plan.Reason{Code: plantest.Code("renamed-by-hand")}, Origin: plan.Origin{Drift: true}}
	r := report(t, planOf(object, rename, moved("a1", "a", "power", "sleep-enabled", "auto-logout-enabled", "sleep-enabled"), refused, pending, both))
	want := []string{"cluster.Secret.default.x object object-differs", "a1 rename renamed-by-hand",
		"a1 power sleep-enabled [field of sleep-enabled] [field of sleep-enabled]", "a1 power auto-logout-enabled [field of auto-logout-enabled]",
		"a2 tart disk-full [field of tart-missing]", "b2 hostname hostname-edited [field of hostname-edited]"}
	if diff := cmp.Diff(want, shown(r.Items)); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	if r.Pending != 2 || r.Items[4].Refused != plantest.Code("disk-full") || r.Items[4].Severity != plan.Critical {
		t.Errorf("%d pending, refused %+v", r.Pending, r.Items[4])
	}
	if !r.Complete || r.Fingerprint == drift.Clean || r.Fingerprint == drift.Unknown {
		t.Errorf("complete %t, fingerprint %s", r.Complete, r.Fingerprint)
	}
}

// TestPendingIsNoDrift has a plan with only pending configuration, and blocks that
// would ignore it: it stays pending.
func TestPendingIsNoDrift(t *testing.T) {
	t.Parallel()
	pending := moved("b1", "b", "hostname", "hostname-edited")
	pending.Origin = plan.Origin{Pending: true}
	r := report(t, planOf(pending), fleet.Ignore{Name: "x", Step: "hostname", Until: day("2026-12-01")})
	if len(r.Items)+len(r.Ignored) > 0 || r.Pending != 1 || r.Fingerprint != drift.Clean || r.Hosts[1].Pending != 1 {
		t.Errorf("%+v", r)
	}
	if len(r.Remarks) != 1 || r.Remarks[0].Code.String() != "ignore-unused" {
		t.Errorf("remarks %+v", r.Remarks)
	}
}

func TestIgnores(t *testing.T) {
	t.Parallel()
	p := func() *plan.Plan {
		return planOf(moved("a1", "a", "power", "sleep-enabled", "auto-logout-enabled"), moved("b1", "b", "power", "sleep-enabled"), moved("b1", "b", "hostname", "hostname-edited"))
	}
	for name, c := range map[string]struct {
		with          fleet.Ignore
		left, ignored int
		state         drift.State
	}{
		"step":                {fleet.Ignore{Step: "power"}, 1, 3, drift.Active},
		"code":                {fleet.Ignore{Code: "sleep-enabled"}, 2, 2, drift.Active},
		"code of a fleet":     {fleet.Ignore{Code: "sleep-enabled", On: "fleet=b"}, 3, 1, drift.Active},
		"a host":              {fleet.Ignore{Step: "hostname", On: "name=b*"}, 3, 1, drift.Active},
		"another host":        {fleet.Ignore{Step: "hostname", On: "name=a*"}, 4, 0, drift.Idle},
		"step and code":       {fleet.Ignore{Step: "hostname", Code: "sleep-enabled"}, 4, 0, drift.Idle},
		"a field":             {fleet.Ignore{Step: "power", Field: "field of sleep-enabled"}, 2, 2, drift.Active},
		"no such field":       {fleet.Ignore{Step: "power", Field: "field"}, 4, 0, drift.Idle},
		"its last day":        {fleet.Ignore{Step: "power", Until: day("2026-11-21")}, 1, 3, drift.Active},
		"the day after":       {fleet.Ignore{Step: "power", Until: day("2026-11-20")}, 4, 0, drift.Expired},
		"as far as it may":    {fleet.Ignore{Step: "power", Until: day("2026-11-21").AddDate(0, 0, 180)}, 1, 3, drift.Active},
		"a day further":       {fleet.Ignore{Step: "power", Until: day("2026-11-21").AddDate(0, 0, 181)}, 4, 0, drift.TooLong},
		"expired and useless": {fleet.Ignore{Step: "tart", Until: day("2026-01-01")}, 4, 0, drift.Expired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.with.Name = "it"
			if c.with.Until.IsZero() {
				c.with.Until = day("2026-12-01")
			}
			r := report(t, p(), c.with)
			if len(r.Items) != c.left || len(r.Ignored) != c.ignored || r.Ignores[0].State != c.state {
				t.Errorf("left %q, ignored %d, state %s", shown(r.Items), len(r.Ignored), r.Ignores[0].State)
			}
			code := map[drift.State]string{drift.Idle: "ignore-unused", drift.Expired: "ignore-expired", drift.TooLong: "ignore-too-long"}[c.state]
			if said := len(r.Remarks) == 1 && r.Remarks[0].Code.String() == code; said != (code != "") {
				t.Errorf("remarks %+v, want %q", r.Remarks, code)
			}
		})
	}
}

// TestPartOfAnItem ignores one of two fields: the rest counts, with the same
// fingerprint as before.
func TestPartOfAnItem(t *testing.T) {
	t.Parallel()
	a := moved("a1", "a", "power", "sleep-enabled")
	a.Fields = append(a.Fields, plan.Field{Name: "disk"})
	a.Changes[0].Fields = a.Fields
	all := report(t, planOf(a))
	r := report(t, planOf(a), fleet.Ignore{Name: "x", Code: "sleep-enabled", Field: "disk", Until: day("2026-12-01")})
	if got := shown(r.Items); len(got) != 1 || got[0] != "a1 power sleep-enabled [field of sleep-enabled]" || r.Fingerprint != all.Fingerprint {
		t.Errorf("left %q", got)
	}
	if got := r.Ignored; len(got) != 1 || len(got[0].Fields) != 1 || got[0].Fields[0].Name != "disk" || r.Hosts[0].Drift != 1 {
		t.Errorf("ignored %+v", got)
	}
}

// TestFingerprints draws plans: order, texts, values, times and what is done about
// it leave the fingerprint alone, and any other set of items has another one.
func TestFingerprints(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) map[string]plan.Action {
			out := make(map[string]plan.Action)
			for range rapid.IntRange(0, 6).Draw(t, label) {
				host := rapid.SampledFrom([]string{"a1", "a2", "b1", "b2"}).Draw(t, "host")
				step := rapid.SampledFrom([]plan.StepID{"power", "hostname"}).Draw(t, "step")
				code := rapid.SampledFrom([]string{"sleep-enabled", "hostname-edited", "disk-full"}).Draw(t, "code")
				out[fmt.Sprint(host, step)] = moved(host, host[:1], step, code)
			}
			return out
		}
		list := func(of map[string]plan.Action, change bool) (out []plan.Action, about []string) {
			for k, a := range of { // in any order
				about = append(about, k+" "+a.Reason.Code.String())
				if change {
					a.Fields = []plan.Field{{Name: "other", Before: rapid.String().Draw(t, "before")}}
					a.Reason.Text = rapid.String().Draw(t, "text")
				}
				out = append(out, a)
			}
			slices.Sort(about)
			return out, about
		}
		one, two := draw("one"), draw("two")
		ones, about := list(one, false)
		again, _ := list(one, true)
		others, aboutOthers := list(two, false)
		print := report(t, planOf(ones...)).Fingerprint
		later, err := drift.Of(planOf(again...), nil, noon().Add(time.Hour*time.Duration(rapid.IntRange(0, 1000).Draw(t, "hours"))))
		if err != nil || later.Fingerprint != print {
			t.Fatalf("%s became %s for the same drift: %v", print, later.Fingerprint, err)
		}
		if other := report(t, planOf(others...)).Fingerprint; (other == print) != slices.Equal(about, aboutOthers) {
			t.Fatalf("%q has %s, %q has %s", about, print, aboutOthers, other)
		}
		if (print == drift.Clean) != (len(one) == 0) {
			t.Fatalf("%d items have %s", len(one), print)
		}
	})
}

// TestFingerprintsStay keeps what others have written into their alarms.
func TestFingerprintsStay(t *testing.T) {
	t.Parallel()
	r := report(t, planOf(moved("a1", "a", "power", "sleep-enabled")))
	if r.Items[0].Fingerprint != "792d3c17b777ea84" || r.Fingerprint != "aecdda78d8205228" {
		t.Errorf("%s of %s", r.Items[0].Fingerprint, r.Fingerprint)
	}
}

// TestFingerprintWithoutJudgement: a newer macfleet that judges a code otherwise finds
// no new drift.
func TestFingerprintWithoutJudgement(t *testing.T) {
	t.Parallel()
	of := func(s plan.Severity) string {
		return drift.Fingerprint(drift.Item{Host: "a1", Step: "power", Code: plantest.Code("sleep-enabled"), Severity: s, Text: string(s)})
	}
	if of(plan.Notice) != of(plan.Critical) {
		t.Error("a severity makes another drift")
	}
}

// TestUnseen makes parts of a plan unreadable: it is never complete and never clean,
// and names the hosts and steps that may have drifted.
func TestUnseen(t *testing.T) {
	t.Parallel()
	item := func(host, step string) drift.Item { return drift.Item{Host: host, Step: step} }
	for name, c := range map[string]struct {
		damage func(*plan.Plan)
		of     []drift.Item // may have drifted unseen
		not    []drift.Item
	}{
		"silent host":  {func(p *plan.Plan) { p.Hosts[0].Unknown = &plan.Trouble{Code: plantest.Code("unreachable")} }, []drift.Item{item("a1", "power"), item("a1", "rename")}, []drift.Item{item("a2", "power")}},
		"foreign host": {func(p *plan.Plan) { p.Hosts[0].Refused = &plan.Trouble{Code: plantest.Code("foreign-marker")} }, []drift.Item{item("a1", "power")}, []drift.Item{item("a2", "power")}},
		"unread step": {func(p *plan.Plan) { p.Hosts[0].Unread = []plan.StepUnread{{Step: "power"}} },
			[]drift.Item{item("a1", "power")}, []drift.Item{item("a1", "hostname"), item("a2", "power")}},
		"lost server": {func(p *plan.Plan) {
			p.Lost = []plan.Lost{{Name: "a9", Fleet: "a", Trouble: plan.Trouble{Code: plantest.Code("server-vanished")}}}
		},
			[]drift.Item{item("a9", "power")}, []drift.Item{item("a1", "power")}},
		"cluster": {func(p *plan.Plan) {
			p.Unread = []plan.Unread{{Probe: "cluster"}}
			p.Hosts[0].Spec.Spec.TartKubelet = &fleet.TartKubelet{}
		}, []drift.Item{item("a1", "power"), item("cluster.Secret.default.x", "object")}, []drift.Item{item("a2", "power")}},
		"no root": {func(p *plan.Plan) {
			a := moved("a1", "a", "power", "known-after-sudo")
			a.AfterRoot, a.Origin = true, plan.Origin{NotKnown: true}
			p.Actions = append(p.Actions, a)
		}, []drift.Item{item("a1", "power")}, []drift.Item{item("a1", "hostname")}},
		"lost marker": {func(p *plan.Plan) {
			gone, power, other := moved("a1", "a", "", "marker-missing"), moved("a1", "a", "power", "sleep-enabled"), moved("a2", "a", "power", "sleep-enabled")
			gone.Kind = plan.CreateMarker
			power.Origin, other.Origin = plan.Origin{NotKnown: true}, plan.Origin{Pending: true}
			p.Actions = append(p.Actions, gone, power, other)
		}, []drift.Item{item("a1", "power")}, []drift.Item{item("a1", "hostname"), item("a2", "power")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := planOf()
			c.damage(p)
			r := report(t, p)
			if r.Complete || r.Fingerprint == drift.Clean || len(r.Items) == 0 && r.Fingerprint != drift.Unknown {
				t.Errorf("complete %t, fingerprint %s", r.Complete, r.Fingerprint)
			}
			covered := func(i drift.Item) bool {
				return slices.ContainsFunc(r.Unseen, func(u drift.Unseen) bool { return u.Covers(i) })
			}
			for _, i := range c.of {
				if !covered(i) {
					t.Errorf("%s %s cannot have drifted unseen: %+v", i.Host, i.Step, r.Unseen)
				}
			}
			for _, i := range c.not {
				if covered(i) {
					t.Errorf("%s %s may have drifted unseen: %+v", i.Host, i.Step, r.Unseen)
				}
			}
		})
	}
}

// TestLostMarker: without its marker, no difference on a host counts as drift. The drift
// that was known has not recovered by that.
func TestLostMarker(t *testing.T) {
	t.Parallel()
	known := report(t, planOf(moved("a1", "a", "power", "sleep-enabled"), moved("a1", "a", "hostname", "hostname-edited"))).Items
	gone, power := moved("a1", "a", "", "marker-missing"), moved("a1", "a", "power", "sleep-enabled")
	gone.Kind, power.Origin = plan.CreateMarker, plan.Origin{NotKnown: true}
	c := report(t, planOf(gone, power)).After(known).Since
	if len(c.Kept) != 1 || c.Kept[0].Step != "power" || len(c.Recovered) != 1 || c.Recovered[0].Step != "hostname" || len(c.New) != 1 {
		t.Errorf("%+v", c)
	}
}

// TestAfter lets a drifted host fall silent and come back: its drift is kept, the
// fingerprint stays, and it has recovered only once it was compared.
func TestAfter(t *testing.T) {
	t.Parallel()
	drifted := func(silent bool, hosts ...string) drift.Report {
		p := planOf()
		for _, h := range hosts {
			p.Actions = append(p.Actions, moved(h, h[:1], "power", "sleep-enabled"))
		}
		if silent {
			p.Hosts[0].Unknown = &plan.Trouble{Code: plantest.Code("unreachable")}
		}
		return report(t, p)
	}
	known := func(r drift.Report) []drift.Item {
		if r.Since == nil {
			return r.Items
		}
		return append(slices.Clone(r.Items), r.Since.Kept...)
	}
	first := drifted(false, "a1", "b1")
	var said []string
	last := first
	for _, now := range []drift.Report{drifted(false, "a1", "b1"), drifted(true, "b1"), drifted(true, "b1"), drifted(false, "b1"), drifted(false, "b1", "b2"), drifted(false)} {
		r := now.After(known(last))
		said = append(said, fmt.Sprintf("new %d stays %d kept %d recovered %d same %t", len(r.Since.New), len(r.Since.Stays), len(r.Since.Kept), len(r.Since.Recovered), r.Fingerprint == first.Fingerprint))
		last = r
	}
	want := []string{"new 0 stays 2 kept 0 recovered 0 same true", "new 0 stays 1 kept 1 recovered 0 same true", "new 0 stays 1 kept 1 recovered 0 same true",
		"new 0 stays 1 kept 0 recovered 1 same false", "new 1 stays 1 kept 0 recovered 0 same false", "new 0 stays 0 kept 0 recovered 2 same false"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if last.Fingerprint != drift.Clean {
		t.Errorf("in the end %s", last.Fingerprint)
	}
	blind := drift.Blind(&fleet.Config{}, "away", noon()).After(first.Items)
	if len(blind.Since.Kept) != 2 || len(blind.Since.Recovered) != 0 || blind.Fingerprint != first.Fingerprint || blind.Complete {
		t.Errorf("blind: %+v", blind)
	}
}

// TestSelectorThatIsNone ends with an error that names the block.
func TestSelectorThatIsNone(t *testing.T) {
	t.Parallel()
	_, err := drift.Of(planOf(), []fleet.Ignore{{Name: "odd", On: "colour=red", Until: day("2026-12-01")}}, noon())
	if err == nil || !strings.Contains(err.Error(), `ignore "odd"`) {
		t.Errorf("%v", err)
	}
}

// TestParts compares what an ignore block may name with the kinds that plans have.
func TestParts(t *testing.T) {
	t.Parallel()
	for _, part := range fleet.DriftParts() {
		if k := plan.Kind(part); k.OfStep() || k == plan.ClaimServer || k == plan.ReleaseServer {
			t.Errorf("%s cannot drift", part)
		}
	}
	for _, k := range []plan.Kind{plan.RenameServer, plan.CreateMarker, plan.IdentifyHost, plan.SetProviderID, plan.ReplaceNode, plan.DeleteNode, plan.RevokeHost, plan.ReleasePods, plan.KeepObject} {
		if !slices.Contains(fleet.DriftParts(), string(k)) {
			t.Errorf("an ignore block cannot name %s", k)
		}
	}
	for _, s := range steps.For(fleet.Host{}) {
		if slices.Contains(fleet.DriftParts(), string(s.ID())) {
			t.Errorf("%s is a step", s.ID())
		}
	}
}
