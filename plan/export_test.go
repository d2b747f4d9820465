package plan

import "github.com/macfleet/macfleet/fleet"

// ComputeOn is Compute on a number of goroutines.
func ComputeOn(cfg *fleet.Config, stepsFor StepsFor, snap Snapshot, sel Selection, workers int) *Plan {
	return compute(cfg, stepsFor, snap, sel, workers, nil)
}

// CompleteOn is Complete on a number of goroutines.
func CompleteOn(cfg *fleet.Config, stepsFor StepsFor, snap Snapshot, sel Selection, before *Plan, again map[string]bool, workers int) *Plan {
	return compute(cfg, stepsFor, snap, sel, workers, before.besides(again))
}
