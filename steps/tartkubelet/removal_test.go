package tartkubelet_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// TestTakenOverJobIsDrained: virtual machines may end with a job that is taken over, like with the kubelet's own, unless
// its property list says that they survive.
func TestTakenOverJobIsDrained(t *testing.T) {
	t.Parallel()
	const job = "\tprogram = /usr/local/bin/tart-kubelet\n"
	for _, test := range []struct {
		page, brief string
		want        plan.Disruption
	}{
		{job + "\tpid = 77\n", "second-kubelet run kick, busy", plan.Drain},
		{job + "\tpid = 77\n\tchildren = survive\n", "second-kubelet run kick", plan.Restart},
		{job, "second-kubelet run kick", plan.Restart}, // it does not run
	} {
		c := newKubeletCase()
		c.other(legacyJob, test.page)
		c.mac.Work = "78 run ci-a\n"
		f := c.finding(t)
		if got := f.Changes[len(f.Changes)-1].Disruption; stepstest.Brief(f) != test.brief || got != test.want {
			t.Errorf("%q: %s, %s; want %s, %s", test.page, stepstest.Brief(f), got, test.brief, test.want)
		}
	}
}

// TestKubeletBuilderNoMore lists what the garbage collection will delete.
func TestKubeletBuilderNoMore(t *testing.T) {
	t.Parallel()
	c := newKubeletCase()
	c.keepsMachines("bake\nci-a\n")
	c.view.Pods = onePod
	var got []string
	for _, field := range stepstest.FieldsOf(c.finding(t)) {
		if machine, ok := strings.CutPrefix(field.Name, "virtual machine "); ok {
			got = append(got, machine+": "+field.After)
		}
	}
	stepstest.Expect(t, "machines", []string{"bake: deleted by the garbage collection"}, got)
	for _, w := range []string{"77 run ci-a\n", "78 push bake\n", "79 packer build\n"} {
		c.mac.Work = w
		if f := c.finding(t); len(f.Busy) != 1 || !strings.Contains(f.Busy[0].Text, strings.Fields(w)[2]) || (f.Busy[0].VM == "ci-a") != strings.Contains(w, "run") {
			t.Errorf("%q: %+v", w, f.Busy)
		}
	}
}

// TestKubeletRollback: a host goes back to the version from before, once, and the next apply without the word goes forth again.
func TestKubeletRollback(t *testing.T) {
	t.Parallel()
	older, a := stepstest.OlderSHA(), stepstest.KubeletArtifact()
	rolled := strings.NewReplacer("current "+a.SHA256+" 0.4.0", "current "+older+" 0.3.0", "previous -\n", "previous -\nrolled-back "+a.SHA256+" 0.4.0\n")
	for _, tc := range []struct {
		name     string
		edit     func(*kubeletCase)
		rollback bool
		want     string
		sha      string
	}{
		{"there was one before", (*kubeletCase).previous, true, "kubelet-outdated binary, kubelet-outdated run ask", older},
		{"its file is gone", func(c *kubeletCase) { c.previous(); c.mac.Kept = a.SHA256 + "\n" }, true, "refused nothing-to-roll-back", ""},
		{"it is the first", func(*kubeletCase) {}, true, "refused nothing-to-roll-back", ""},
		{"it is back already", func(c *kubeletCase) { c.mac.Receipt = rolled.Replace(c.mac.Receipt) }, true, "", ""},
		{"back, and forth again", func(c *kubeletCase) { c.mac.Receipt = rolled.Replace(c.mac.Receipt) }, false,
			"kubelet-outdated binary, kubelet-outdated run ask, warns version-rolled-back", a.SHA256},
		{"back, and wanted so since", func(c *kubeletCase) { c.mac.Receipt += "rolled-back " + older + " 0.5.0\n" }, false, "", ""},
		{"never came as far", func(c *kubeletCase) {
			c.older()
			c.receipt("previous -", "previous "+strings.Repeat("02", 32)+" 0.2.0")
		}, true, "", ""},
	} {
		c := newKubeletCase()
		tc.edit(c)
		c.view.Rollback = tc.rollback
		f := c.finding(t)
		if got := stepstest.Brief(f); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
		if tc.sha != "" && (f.Changes[0].Command.Args[1] != tc.sha || (f.Changes[0].Delivery == nil) != tc.rollback) {
			t.Errorf("%s: %+v", tc.name, f.Changes[0])
		}
	}
}

// TestKubeletTakesOver: the other jobs go by their targets and files.
func TestKubeletTakesOver(t *testing.T) {
	t.Parallel()
	c := newKubeletCase()
	c.mac = stepstest.FactoryKubelet()
	c.other(legacyJob, "\tpath = "+legacyPlist+"\n\tprogram = /usr/local/bin/tart-kubelet\n\tgc = off\n")
	c.mac.Plists, c.mac.Machines = legacyPlist+"\n", "bake\n"
	c.view.Node = inventory.Absent[inventory.Node]()
	f := c.finding(t)
	run := f.Changes[len(f.Changes)-1]
	stepstest.Expect(t, "jobs that go", []string{legacyJob, legacyPlist}, run.Command.Args[3:])
	if !slices.ContainsFunc(run.Fields, func(f plan.Field) bool { return f.Name == "virtual machine bake" }) {
		t.Errorf("it kept the machines, and the new one does not: %+v", run.Fields)
	}
}

// TestKubeletRemoval: what macfleet made goes when the block does, and nothing else does.
func TestKubeletRemoval(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		edit func(*kubeletCase)
		want string
		args []string
	}{
		{"settled", func(*kubeletCase) {}, "kubelet-not-wanted remove", []string{"program", ""}},
		{"no receipt", func(c *kubeletCase) { c.mac.Receipt = "" }, "kubelet-not-wanted remove", []string{"", ""}},
		{"factory", func(c *kubeletCase) { c.mac = stepstest.FactoryKubelet() }, "", nil},
		{"someone else's", func(c *kubeletCase) {
			c.mac = stepstest.FactoryKubelet()
			c.mac.Stamp, c.mac.Access = "1 2 3", "0:0:755"
			c.other(legacyJob, "\tprogram = /usr/local/bin/tart-kubelet\n")
		}, "", nil},
		{"half removed", func(c *kubeletCase) { c.mac = stepstest.FactoryKubelet(); c.view.Pending = true }, "kubelet-not-wanted remove", []string{"", ""}},
		{"machines run", func(c *kubeletCase) { c.mac.Work = "77 run ci-a\n" }, "kubelet-not-wanted remove, busy", []string{"program", ""}},
	} {
		c := newKubeletCase()
		c.spec, c.host = none, stepstest.Host(none)
		tc.edit(c)
		f := c.finding(t)
		if got := stepstest.Brief(f); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
		if tc.args != nil {
			stepstest.Expect(t, tc.name, tc.args, f.Changes[0].Command.Args)
		}
	}
}

// TestKubeletRemedy: what helps against a crash loop is the version before, where the host has one.
func TestKubeletRemedy(t *testing.T) {
	t.Parallel()
	const back = "macfleet apply --rollback --on name=" + name + " --step tart_kubelet"
	for _, tc := range []struct {
		name string
		edit func(*kubeletCase)
		want string
	}{
		{"one from before", (*kubeletCase).previous, back},
		{"its file is gone", func(c *kubeletCase) { c.previous(); c.mac.Kept = stepstest.KubeletArtifact().SHA256 + "\n" }, "no previous version"},
		{"the first", func(*kubeletCase) {}, "no previous version"},
		{"the version changes", func(c *kubeletCase) { c.older(); c.mac.Kept += stepstest.OlderSHA() + "\n" }, back},
		{"on the way back", func(c *kubeletCase) { c.previous(); c.view.Rollback = true }, "no previous version"},
	} {
		c := newKubeletCase()
		tc.edit(c)
		c.view.Pending = true
		f := c.finding(t)
		if got := f.Changes[len(f.Changes)-1].Remedy; !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q", tc.name, got)
		}
	}
}
