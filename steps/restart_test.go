package steps_test

import (
	"slices"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

// TestRestartNeedsAJob: a step without a job, and a host without the block, have nothing to restart.
func TestRestartNeedsAJob(t *testing.T) {
	t.Parallel()
	const kubelet, power, runner, exporter, tailnet = plan.StepID("tart_kubelet"), plan.StepID("power"), plan.StepID("github_runner"), plan.StepID("node_exporter"), plan.StepID("tailscale")
	if jobs := steps.Jobs(); !slices.Equal(jobs, []plan.StepID{kubelet, runner, exporter, tailnet}) {
		t.Errorf("the jobs are %q", jobs)
	}
	wanted := fleet.Host{User: "m1", Spec: fleet.Spec{TartKubelet: &fleet.TartKubelet{}}.WithDefaults()}
	for _, tt := range []struct {
		host fleet.Host
		step plan.StepID
		ok   bool
	}{
		{wanted, kubelet, true},
		{wanted, runner, false},
		{wanted, power, false},
		{fleet.Host{User: "m1"}, kubelet, false},
	} {
		c, ok := steps.Restart(tt.step, plan.View{Host: tt.host})
		if ok != tt.ok || ok && (c.Disruption != plan.Restart || c.Reason.Code.String() != "restart-asked") {
			t.Errorf("%s: %t, %+v", tt.step, ok, c.Reason)
		}
	}
}
