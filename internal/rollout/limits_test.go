package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/rollout"
)

// TestLimitsOf: each value of a rollout block bounds the run. One that is lost on the way
// would let a run disturb more hosts than the block allows.
func TestLimitsOf(t *testing.T) {
	t.Parallel()
	r := fleet.Rollout{MaxUnavailable: fleet.Share{Count: 3}, Canary: 2, Soak: time.Minute, FailureBudget: 4, MinReady: 5}
	want := rollout.Limits{MaxUnavailable: 3, Canary: 2, Soak: time.Minute, FailureBudget: 4, MinReady: 5}
	if diff := cmp.Diff(want, rollout.LimitsOf(r, 10)); diff != "" {
		t.Error(diff)
	}
}
