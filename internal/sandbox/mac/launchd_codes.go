package mac

import "fmt"

// launchCode is launchd's error; launchctl exits with this number.
type launchCode int

// Error is launchctl's text for the number.
func (c launchCode) Error() string { return fmt.Sprintf("%d: %s", int(c), launchText(int(c))) }

// launchText returns the text for a number: those of the kernel's errors, and launchd's own from 107
// on.
func launchText(code int) string {
	known := map[int]string{
		1: "Operation not permitted", 2: "No such file or directory", 3: "No such process", 4: "Interrupted system call",
		5: "Input/output error", 6: "Device not configured", 9: "Bad file descriptor", 12: "Cannot allocate memory", 13: "Permission denied",
		16: "Resource busy", 17: "File exists", 22: "Invalid argument", 35: "Resource temporarily unavailable",
		36: "Operation now in progress", 37: "Operation already in progress", 45: "Operation not supported", 78: "Function not implemented",
		112: "Could not find specified domain", 113: "Could not find specified service", 119: "Service is disabled",
		122: "Path had bad ownership/permissions", 125: "Domain does not support specified action",
		134: "Service cannot load in requested session", 150: "Operation not permitted while System Integrity Protection is engaged",
	}
	if text, ok := known[code]; ok {
		return text
	}
	return "unknown error code"
}
