//go:build race

package engine_test

// Under the race detector every thirteenth strike is enough: what it looks for does not
// depend on where a strike falls, and CI runs all of them without it.
const everyStrike = 13

// A point of the fault matrix is dearer still.
const everyPoint = 61
