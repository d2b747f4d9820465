package sandbox

import (
	"fmt"
	"maps"
	"slices"
)

// unknown returns the error for an unknown name.
func unknown[V any](what, name string, known map[string]V) error {
	if len(known) == 0 {
		return fmt.Errorf("the sandbox has no %s %q, and no others", what, name)
	}
	nearest := slices.MinFunc(slices.Sorted(maps.Keys(known)), func(a, b string) int { return distance(name, a) - distance(name, b) })
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
