package runlog

import (
	"os"
	"strings"
)

// Boot names the present boot of this machine's kernel; empty: unknown.
func Boot() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // what cannot be read names nothing
	return strings.TrimSpace(string(text))
}
