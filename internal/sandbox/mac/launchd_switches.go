package mac

import (
	"strconv"
	"strings"
	"time"
)

// Names of launchd's uncertain behaviours.
const (
	noSessionSwitch  = "launchctl-no-session"
	drainCodeSwitch  = "launchctl-draining"
	drainTimeSwitch  = "launchd-drain-time"
	bootoutSwitch    = "launchctl-bootout-of-running"
	disabledSwitch   = "launchctl-disabled"
	ownerSwitch      = "launchctl-bad-owner"
	legacySwitch     = "launchctl-legacy-status"
	kickSwitch       = "launchctl-kickstart-k"
	protectedSwitch  = "launchctl-kickstart-system"
	badRequestSwitch = "launchctl-bad-request"
	overridesSwitch  = "launchctl-print-disabled"
	bootTimeSwitch   = "boot-duration"
)

// launchdSwitches are launchd's uncertain behaviours.
func launchdSwitches() []Switch {
	return []Switch{
		{noSessionSwitch, "exit code of launchctl for the domain of a missing session", []string{"113", "112", "125"}},
		{drainCodeSwitch, "exit code of bootstrap while the label of the previous job is not free yet", []string{"5", "37"}},
		{drainTimeSwitch, "how long a job's process takes to exit after a bootout", []string{"3s", "0s", "1s", "5s", "20s"}},
		{bootoutSwitch, "exit code of bootout for a job whose process is still running", []string{"0", "36"}},
		{disabledSwitch, "exit code of bootstrap for a disabled job", []string{"5", "119"}},
		{ownerSwitch, "exit code of bootstrap for a property list with a wrong owner or mode", []string{"5", "122"}},
		{legacySwitch, "exit code of a failed load or unload", []string{"0", "code"}},
		{kickSwitch, "what kickstart -k does to a running process", []string{"replaces", "keeps"}},
		{protectedSwitch, "exit code of kickstart -k for the system's own services", []string{"0", "1", "150"}},
		{badRequestSwitch, "whether print starts with a separate line for a missing domain or service", []string{"yes", "no"}},
		{overridesSwitch, "how print-disabled shows a disabled job", []string{"words", "booleans"}},
		{bootTimeSwitch, "how long a restart takes", []string{"0s", "30s", "90s", "10m"}},
	}
}

// codeSwitched returns a switch's value that is an exit code.
func (v *visit) codeSwitched(name string) int {
	// The values are constants of this file.
	n, _ := strconv.Atoi(strings.TrimSpace(v.switched(name)))
	return n
}

// timeSwitched returns a switch's value that is a time.
func (v *visit) timeSwitched(name string) time.Duration {
	d, _ := time.ParseDuration(v.switched(name))
	return d
}
