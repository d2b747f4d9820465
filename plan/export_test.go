package plan

import "github.com/macfleet/macfleet/fleet"

// ComputeOn is Compute on a number of goroutines.
func ComputeOn(cfg *fleet.Config, stepsFor StepsFor, snap Snapshot, sel Selection, workers int) *Plan {
	return compute(cfg, stepsFor, snap, sel, workers, nil)
}
