package app

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/runlog"
)

// TestNeedsCluster: a command that is about the cluster of a configuration without one ends
// before anything is contacted; any other continues.
func TestNeedsCluster(t *testing.T) {
	t.Parallel()
	s := &session{need: need{config: &fleet.Config{}}}
	if err := s.openCluster(); err != nil {
		t.Error(err)
	}
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

// must ends the test at the first error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
