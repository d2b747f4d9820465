package mac

import (
	"strconv"
	"strings"
	"time"
)

// Names of the doubts about launchd.
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

// launchdSwitches are the doubts about launchd.
func launchdSwitches() []Switch {
	return []Switch{
		{noSessionSwitch, "how launchctl ends when it is asked for the domain of a session that does not exist", []string{"113", "112", "125"}},
		{drainCodeSwitch, "how bootstrap ends while the label of the job before is not free yet", []string{"5", "37"}},
		{drainTimeSwitch, "how long a job's process takes to end after a bootout", []string{"3s", "0s", "1s", "5s", "20s"}},
		{bootoutSwitch, "how bootout ends for a job whose process has not ended yet", []string{"0", "36"}},
		{disabledSwitch, "how bootstrap ends for a job that is disabled", []string{"5", "119"}},
		{ownerSwitch, "how bootstrap ends for a property list with a wrong owner or mode", []string{"5", "122"}},
		{legacySwitch, "how a failed load or unload ends", []string{"0", "code"}},
		{kickSwitch, "what kickstart -k does to a running process", []string{"replaces", "keeps"}},
		{protectedSwitch, "how kickstart -k ends for the system's own services", []string{"0", "1", "150"}},
		{badRequestSwitch, "whether print begins with a line of its own for what is not there", []string{"yes", "no"}},
		{overridesSwitch, "how print-disabled says that a job is disabled", []string{"words", "booleans"}},
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
