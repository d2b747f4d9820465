//go:build !linux && !darwin

package runlog

// Boot names the present boot of this machine's kernel; empty: unknown.
func Boot() string { return "" }
