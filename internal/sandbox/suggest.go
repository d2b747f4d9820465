package sandbox

import (
	"fmt"
	"maps"
	"slices"
)

// unknown returns the error for an unknown name: it suggests the known name that differs by a slip,
// else the command that lists them all.
func unknown[V any](what, name string, known map[string]V, list string) error {
	nearest, least := "", 1+len(name)/3
	for _, other := range slices.Sorted(maps.Keys(known)) {
		if d := distance(name, other); d < least {
			nearest, least = other, d
		}
	}
	if nearest == "" {
		return fmt.Errorf("the sandbox has no %s %q; %s", what, name, list)
	}
	return fmt.Errorf("the sandbox has no %s %q; did you mean %q?", what, name, nearest)
}

// distance counts the letters to insert, delete or replace to get from a to b.
func distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range from {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range to {
			replace := diagonal
			if x != y {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(to)]
}
