//go:build !linux && !darwin

package runlog

// Boot names the present boot of this machine's kernel; empty: it cannot be told.
func Boot() string { return "" }
