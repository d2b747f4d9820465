package plan

// ComputeOn is Compute on a number of goroutines.
var ComputeOn = compute

// RecordFile is the snapshot file, for the test of its schema.
type RecordFile = recordFile

// PlanFileKeys is the plan file, for the test of its schema.
type PlanFileKeys = planFile
