//go:build !race

package engine_test

const everyStrike = 1

const everyPoint = 1
