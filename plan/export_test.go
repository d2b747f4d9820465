package plan

// ComputeOn is Compute on a number of goroutines.
var ComputeOn = compute
