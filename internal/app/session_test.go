package app

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/plan"
)

// TestNeedsCluster: a command that is about the cluster of a configuration without one ends
// before anything is contacted; any other continues.
func TestNeedsCluster(t *testing.T) {
	t.Parallel()
	s := &session{need: need{config: &fleet.Config{}}}
	must(t, s.openCluster())
	s.needsCluster = "cordon"
	if err := s.openCluster(); err == nil || !strings.Contains(err.Error(), "macfleet cordon has no cluster to work on") {
		t.Errorf("error %v", err)
	}
}

// TestFailedFromAnother: hosts on which a run of another configuration left something are refused.
func TestFailedFromAnother(t *testing.T) {
	t.Parallel()
	s := &session{env: &Env{Global: Global{Parallelism: 1, ObserveParallelism: 1, Starts: 1}},
		need: need{config: &fleet.Config{Owner: fleet.Owner{Name: "acme", Environment: "canary"}},
			failed: &failedRun{Head: runlog.Head{Configuration: "acme", Environment: "canary"}}}}
	if sel, err := s.checked(); err != nil || !sel.Former {
		t.Errorf("the own run: %+v, %v", sel, err)
	}
	s.failed.Environment = "production"
	if _, err := s.checked(); err == nil || !strings.Contains(err.Error(), "that run was of acme-production, this is acme-canary") {
		t.Errorf("of another run: %v", err)
	}
}

// TestRestartUnread: a job that could not be read is not restarted.
func TestRestartUnread(t *testing.T) {
	t.Parallel()
	p := &plan.Plan{Hosts: []plan.Host{{Name: "a", Member: true, Unread: []plan.StepUnread{{}}}}}
	if p, err := new(session).restartPlan(t.Context(), plan.Snapshot{}, p, "a", "tart_kubelet"); err != nil || len(p.Actions) > 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

// must ends the test at the first error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
