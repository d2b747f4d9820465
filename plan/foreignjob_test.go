package plan_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// TestForeignJob: systems that schedule work or configure the Mac stop it; device management, unknown jobs, a builder's
// runner and what the configuration allows do not.
func TestForeignJob(t *testing.T) {
	t.Parallel()
	builder := fleet.Spec{GithubRunner: &fleet.GithubRunner{}}
	for _, test := range []struct {
		job    plan.Job
		spec   fleet.Spec
		ignore string
		own    string
		want   string // part of the trouble; empty: none
	}{
		{job: plan.Job{Target: "system/org.cirruslabs.orchard.worker", Loaded: true}, want: "of Orchard; when its work is done, on the host: " +
			"sudo launchctl disable system/org.cirruslabs.orchard.worker && sudo launchctl bootout system/org.cirruslabs.orchard.worker;"},
		{job: plan.Job{Target: "gui/501/gitlab-runner", Path: "/Users/m1/Library/LaunchAgents/gitlab-runner.plist"},
			want: "gitlab-runner.plist), which the next boot loads; when its work is done, on the host: sudo launchctl disable gui/501/gitlab-runner; or"},
		{job: plan.Job{Target: "system/dev.acme.pull", Program: "/opt/homebrew/bin/ansible-pull", Loaded: true}, want: "of ansible-pull"},
		{job: plan.Job{Target: "system/com.puppetlabs.puppet", Loaded: true}, want: "of Puppet"},
		{job: plan.Job{Target: "gui/501/actions.runner.acme.mini-1", Loaded: true}, want: "of an Actions runner"},
		{job: plan.Job{Target: "gui/501/actions.runner.acme.mini-1", Loaded: true}, spec: builder},
		{job: plan.Job{Target: "gui/501/actions.runner.acme.mini-1", Loaded: true}, own: "actions.runner.acme.mini-1"},
		{job: plan.Job{Target: "gui/501/actions.runner.acme.mini-1", Loaded: true}, own: "actions.runner.acme.mini-2", want: "of an Actions runner"},
		{job: plan.Job{Target: "system/org.cirruslabs.orchard.worker", Loaded: true}, spec: builder, want: "of Orchard"},
		{job: plan.Job{Target: "system/org.cirruslabs.orchard.worker", Loaded: true}, ignore: "org.cirruslabs.*"},
		{job: plan.Job{Target: "system/org.cirruslabs.orchard.worker", Loaded: true}, ignore: "com.buildkite.*", want: "of Orchard"},
		{job: plan.Job{Target: "system/com.jamf.management.daemon", Loaded: true}},
		{job: plan.Job{Target: "system/com.googlecode.munki.managedsoftwareupdate-check", Loaded: true}},
		{job: plan.Job{Target: "system/dev.tuist.tart-kubelet", Program: "/usr/local/bin/tart-kubelet", Loaded: true}},
		{job: plan.Job{Target: "system/com.tailscale.tailscaled", Program: "/usr/local/bin/tailscaled", Loaded: true}},
	} {
		cfg := &fleet.Config{}
		if test.ignore != "" {
			cfg.Guardrails.IgnoreJobs = []string{test.ignore}
		}
		got := plan.ForeignJob(cfg, inventory.Present(plan.Controlling([]plan.Job{test.job})), test.spec, test.own)
		switch {
		case (got == nil) != (test.want == ""):
			t.Errorf("%+v, ignored %q: %v", test.job, test.ignore, got)
		case got != nil && (got.Code.String() != "foreign-job" || !strings.Contains(got.Error(), test.want)):
			t.Errorf("%+v: %q lacks %q", test.job, got, test.want)
		}
	}
}

// TestForeignJobKeepsTheServer: a server on which another system works is neither claimed nor erased, and jobs that cannot
// be read make the plan incomplete.
func TestForeignJobKeepsTheServer(t *testing.T) {
	t.Parallel()
	runs := func(h *plan.HostSeen) {
		h.Jobs = inventory.Present([]plan.Job{{Target: "system/org.cirruslabs.orchard.worker", Loaded: true}})
	}
	w := newWorld(1, 0, 0)
	w.free(1)
	w.change(1, runs)
	w.free(2)
	p := w.plan(t)
	expect(t, "rejected", []string{"acme-pool-01 foreign-job"}, rejected(p))
	expect(t, "claims", []string{"acme-pool-02 > acme-prod-macos-m2-00002"}, claimed(p))

	w = leaver()
	w.change(3, runs)
	for _, a := range w.plan(t).Actions {
		if a.ServerID == serverID(3) && a.Runs() {
			t.Errorf("%s runs on a server that another system uses", a.Kind)
		}
	}

	w = members(1, 1)
	w.change(1, func(h *plan.HostSeen) { h.Jobs = inventory.Unread[[]plan.Job]("exit code 1") })
	if h := oneHost(t, w.plan(t)); len(h.Unread) != 1 || h.Unread[0].Probe != "host.jobs" {
		t.Errorf("unread %+v", h.Unread)
	}
}

// ownsJob keeps an agent whose job looks like another system's.
type ownsJob struct{ agentStep }

func (ownsJob) Job(plan.Facts) string { return "actions.runner.acme.mini-1" }

// TestOwnJob: the job that macfleet made itself, on a host that should have none any more, does not stop the host.
func TestOwnJob(t *testing.T) {
	t.Parallel()
	w := members(1, 1)
	w.change(1, func(h *plan.HostSeen) {
		h.Jobs = inventory.Present([]plan.Job{{Target: "gui/501/actions.runner.acme.mini-1", Loaded: true}})
	})
	w.plan(t) // contacts the host
	compute := func(owner bool) *plan.Trouble {
		p := plan.Compute(w.cfg, func(h fleet.Host) []plan.Step {
			all := w.steps(h)
			if owner {
				all = append(all, ownsJob{agentStep{views: &views{}}})
			}
			return all
		}, w.snap, plan.Selection{})
		return p.Hosts[0].Refused
	}
	if got := compute(false); got == nil || got.Code.String() != "foreign-job" {
		t.Errorf("someone's runner: %v", got)
	}
	if got := compute(true); got != nil {
		t.Errorf("macfleet's own runner: %v", got)
	}
}

// TestForeignWriter: another controller stops the host of its Node, unless the configuration allows it or connects the
// Cluster API, whose controllers have that name.
func TestForeignWriter(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, ignore string
		capi         bool
		refused      bool
	}{
		{"acme-node-operator", "", false, true},
		{"acme-node-operator", "acme-node-operator", false, false},
		{"acme-node-operator", "", true, true},
		{"manager", "", true, false},
		{"manager", "", false, true},
	} {
		w := leaver()
		w.cfg.Kubernetes.IgnoreFieldManagers = []string{test.ignore}
		if test.capi {
			w.cfg.Kubernetes.CAPI = &fleet.CAPI{Cluster: "macs", Namespace: "default"}
		}
		list, _ := w.snap.Nodes.Get()
		list[0].Writers = []inventory.Writer{{Name: test.name, Fields: []string{"spec.taints"}, Pause: "kubectl annotate node x y=true"}}
		h, _ := w.plan(t).HostByServer(serverID(1))
		if got := h.Refused != nil && h.Refused.Code.String() == "foreign-field-manager"; got != test.refused {
			t.Errorf("%+v: refused %v", test, h.Refused)
		}
	}
}
