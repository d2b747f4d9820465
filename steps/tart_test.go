package steps_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

var none = fleet.Spec{}

var joined = fleet.Spec{TartKubelet: &fleet.TartKubelet{Artifact: stepstest.KubeletArtifact()}}

var tarted = fleet.Spec{Tart: &fleet.Tart{Artifact: stepstest.TartArtifact()}}

// tart is what a Mac answers about Tart.
type tart = stepstest.Tart

func TestTart(t *testing.T) {
	t.Parallel()
	a, older := stepstest.TartArtifact(), stepstest.OlderSHA()
	outdated := strings.NewReplacer("current "+a.SHA256+" 2.32.1", "current "+older+" 2.31.0")
	rolledBack := func(m *tart) { m.Receipt = outdated.Replace(m.Receipt) + "rolled-back " + a.SHA256 + " 2.32.1\n" }
	for _, tc := range []struct {
		name string
		edit func(*tart, *plan.View)
		want string
	}{
		{"settled", func(*tart, *plan.View) {}, ""},
		{"factory", func(m *tart, _ *plan.View) { *m = stepstest.Tart{FreeKB: 400_000_000} }, "tart-missing tart-install"},
		{"factory with a machine of another tart", func(m *tart, _ *plan.View) {
			*m = stepstest.Tart{FreeKB: 400_000_000, Work: "7 run x\n"}
		}, "tart-missing tart-install"},
		{"another tool's", func(m *tart, _ *plan.View) { m.Receipt = "" }, "tart-unknown tart-install"},
		{"another tool's, machines run", func(m *tart, _ *plan.View) { m.Receipt, m.Work = "", "7 run ci-a\n" }, "tart-unknown tart-install, busy"},
		{"outdated", func(m *tart, _ *plan.View) { m.Receipt = outdated.Replace(m.Receipt) }, "tart-outdated tart-install"},
		{"outdated, machines run", func(m *tart, _ *plan.View) {
			m.Receipt, m.Work = outdated.Replace(m.Receipt), "7 run ci-a\n8 push bake\n"
		}, "tart-outdated tart-install, busy"},
		{"outdated, full", func(m *tart, _ *plan.View) { m.Receipt, m.FreeKB = outdated.Replace(m.Receipt), 20_000 },
			"tart-outdated tart-install, refused disk-full"},
		{"edited", func(m *tart, _ *plan.View) { m.Stamp, m.SHA = "1 2 3", strings.Repeat("ee", 32) }, "tart-edited tart-install"},
		{"touched", func(m *tart, _ *plan.View) { m.Stamp, m.SHA = "1 2 3", strings.Repeat("b1", 32) }, ""},
		{"a whole bundle", func(m *tart, _ *plan.View) { m.Differs = "-" }, ""},
		{"a torn bundle", func(m *tart, _ *plan.View) { m.Differs = "Contents/Info.plist is missing\n" }, "tart-edited tart-install"},
		{"a torn bundle, machines run", func(m *tart, _ *plan.View) {
			m.Differs, m.Work = "Contents/Info.plist is missing\n", "7 run ci-a\n"
		}, "tart-edited tart-install, busy"},
		{"no note", func(m *tart, _ *plan.View) { m.Unverified, m.Work = true, "7 run ci-a\n" }, "tart-unverified tart-verify"},
		{"no note, no wrapper", func(m *tart, _ *plan.View) { m.Unverified, m.Wrapper = true, "" }, "tart-unverified tart-verify"},
		{"no note, full", func(m *tart, _ *plan.View) { m.Unverified, m.FreeKB = true, 20_000 }, "tart-unverified tart-verify, refused disk-full"},
		{"no note, edited", func(m *tart, _ *plan.View) { m.Unverified, m.Stamp, m.SHA = true, "1 2 3", strings.Repeat("ee", 32) },
			"tart-edited tart-install"},
		{"no note, outdated", func(m *tart, _ *plan.View) { m.Unverified, m.Receipt = true, outdated.Replace(m.Receipt) }, "tart-outdated tart-install"},
		{"no wrapper", func(m *tart, _ *plan.View) { m.Wrapper = "" }, "tart-wrapper-edited tart-wrapper"},
		{"wrapper edited, machines run", func(m *tart, _ *plan.View) { m.Wrapper, m.Work = "x", "7 run ci-a\n" }, "tart-wrapper-edited tart-wrapper"},
		{"wrapper's mode", func(m *tart, _ *plan.View) { m.WrapperMode = "501:20:755" }, "tart-wrapper-edited tart-wrapper"},
		{"a link", func(m *tart, _ *plan.View) { m.Link = true }, "tart-wrapper-edited tart-wrapper"},
		{"unfinished", func(_ *tart, v *plan.View) { v.Pending = true }, "unfinished tart-wrapper"},
		{"the old one is left", func(m *tart, _ *plan.View) { m.Old = true }, "warns tart-leftover"},
		{"the old one is left by a run that was cut off", func(m *tart, v *plan.View) { m.Old, v.Pending = true, true }, "unfinished tart-wrapper"},
		{"rolled back", func(m *tart, v *plan.View) { rolledBack(m); v.Rollback = true }, ""},
		{"rolled back, and forth", func(m *tart, _ *plan.View) { rolledBack(m) }, "tart-outdated tart-install, warns version-rolled-back"},
		{"rolled back, and wanted so since", func(m *tart, _ *plan.View) { m.Receipt += "rolled-back " + older + " 2.33.0\n" }, ""},
		{"back", func(m *tart, v *plan.View) {
			m.Receipt, m.Kept, v.Rollback = strings.Replace(m.Receipt, "previous -", "previous "+older+" 2.31.0", 1), m.Kept+older+"\n", true
		}, "tart-outdated tart-install"},
		{"nothing to go back to", func(_ *tart, v *plan.View) { v.Rollback = true }, "warns nothing-to-roll-back"},
		{"work that cannot be read", func(m *tart, _ *plan.View) { m.Receipt, m.Work = outdated.Replace(m.Receipt), "7\n" },
			`unread "work 0": malformed process line "7"`},
	} {
		m, v := stepstest.SettledTart(), stepstest.View(stepstest.Host(tarted), nil)
		tc.edit(&m, &v)
		v.Facts = stepstest.With(nil, map[string]plan.Answer{"tart.state": m.Answer()})
		f := stepstest.Find(t, "tart", v)
		stepstest.Expect(t, tc.name, tc.want, stepstest.Brief(f))
		v.Facts = stepstest.With(nil, map[string]plan.Answer{"tart.work": m.Answer()})
		for _, g := range []plan.Finding{f, stepstest.Step(t, "tart", tarted).Diff(v)} { // also where only the login user's probe ran
			_, known := g.Running.Get()
			stepstest.Expect(t, tc.name+": the work is known", len(f.Unread) == 0, known)
		}
	}
}

// TestTartArtifact: another digest is another configuration, and what is installed.
func TestTartArtifact(t *testing.T) {
	t.Parallel()
	other := stepstest.TartArtifact()
	other.SHA256, other.Version = strings.Repeat("88", 32), "2.33.0"
	spec := fleet.Spec{Tart: &fleet.Tart{Artifact: other}}
	facts := stepstest.With(nil, map[string]plan.Answer{"tart.state": stepstest.SettledTart().Answer()})
	f := stepstest.Step(t, "tart", spec).Diff(stepstest.View(stepstest.Host(spec), facts))
	if len(f.Changes) != 1 || f.Changes[0].Delivery.Artifact != *other || f.Changes[0].Command.Args[0] != other.HostPath() || f.Changes[0].Command.Args[1] != other.SHA256 {
		t.Errorf("%+v", f.Changes)
	}
	spec.Tart = &fleet.Tart{}
	if f := stepstest.Step(t, "tart", spec).Diff(stepstest.View(stepstest.Host(spec), facts)); f.Refused == nil || f.Refused.Code.String() != "artifact-missing" {
		t.Errorf("%+v", f)
	}
}

func TestTartRemoval(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit func(*tart)
		want string
	}{
		"settled":        {func(*tart) {}, "tart-not-wanted tart-remove"},
		"another tool's": {func(m *tart) { m.Receipt = "" }, ""},
		"machines run":   {func(m *tart) { m.Work = "7 run ci-a\n" }, "tart-not-wanted tart-remove, busy"},
		"work unread":    {func(m *tart) { m.Work = "7\n" }, ""},
	} {
		m := stepstest.SettledTart()
		tc.edit(&m)
		v := stepstest.View(stepstest.Host(none), stepstest.With(nil, map[string]plan.Answer{"tart.state": m.Answer()}))
		stepstest.Expect(t, name, tc.want, stepstest.Brief(stepstest.Find(t, "tart", v)))
	}
}

func TestGithubRunner(t *testing.T) {
	t.Parallel()
	builder := fleet.Spec{GithubRunner: &fleet.GithubRunner{}, TartKubelet: joined.TartKubelet}
	work := inventory.Pod{Namespace: "ci", Name: "a", Phase: "Running"}
	for _, tc := range []struct {
		name string
		spec fleet.Spec
		pods inventory.Seen[[]inventory.Pod]
		want string
	}{
		{"no Pods", builder, inventory.Present([]inventory.Pod{}), ""},
		{"work", builder, inventory.Present([]inventory.Pod{work, {Namespace: "ci", Name: "b", Phase: "Pending"}}), "refused pod-on-builder"},
		{"work that has ended", builder, inventory.Present([]inventory.Pod{{Namespace: "ci", Name: "a", Phase: "Succeeded"}}), ""},
		{"those of every Node", builder, inventory.Present([]inventory.Pod{{Name: "csi", Controller: "DaemonSet"}, {Name: "proxy", Mirror: true}}), ""},
		{"no one knows", builder, inventory.Unread[[]inventory.Pod]("it was forbidden"), "unread it was forbidden"},
		{"not read", builder, inventory.Seen[[]inventory.Pod]{}, "unread the cluster was not read"},
		{"no Node", fleet.Spec{GithubRunner: &fleet.GithubRunner{}}, inventory.Seen[[]inventory.Pod]{}, ""},
		{"a runner", joined, inventory.Present([]inventory.Pod{work}), ""},
	} {
		v := stepstest.View(stepstest.Host(tc.spec), nil)
		v.Pods = tc.pods
		f := stepstest.Step(t, "github_runner", tc.spec).Diff(v)
		stepstest.Expect(t, tc.name, tc.want, stepstest.Brief(f))
		if f.Refused != nil && (!strings.Contains(f.Refused.Text, ": ci/a, ci/b") || !strings.Contains(f.Refused.Remedy, "kubectl -n ci delete pod a; kubectl -n ci delete pod b")) {
			t.Errorf("%s: %+v", tc.name, f.Refused)
		}
	}
}
