package mac

import (
	"bytes"
	"fmt"
	"syscall"
	"time"
)

// pin identifies a job's program. launchd takes it when the job is loaded; starting another program
// under that pin violates a launch constraint. A program signed by a team is identified by the team,
// any other by its bytes.
type pin struct {
	Team string `json:"team,omitempty"`
	Hash string `json:"hash,omitempty"`
}

const (
	teamLine    = "team" // key of a program's line with the team that signed it
	pinSwitch   = "launchd-pins-program"
	freshSwitch = "launchctl-bootstrap-of-new-file"
	endSwitch   = "launchd-ends-with-job"
)

// pinSwitches are the uncertain behaviours of launchd with a job's program, file and processes.
func pinSwitches() []Switch {
	return []Switch{
		{pinSwitch, "how launchd ends a job whose ad-hoc signed program changed since the job was loaded: " +
			"killed by the kernel, exit code 78, or never", []string{"killed", "78", "never"}},
		{freshSwitch, "exit code of the first bootstrap of a property list that was just written", []string{"0", "5"}},
		{endSwitch, "what ends with a kubelet's job: its process group, or its virtual machines too",
			[]string{"group", "all"}},
	}
}

// tooFresh reports whether launchd refuses a file that was just written: once for each write.
func (v *visit) tooFresh(m *manager, n node) bool {
	stamp := inodeOf(n) + n.info.ModTime().String()
	if v.switched(freshSwitch) == "0" || m.Fresh[n.path] == stamp {
		return false
	}
	if m.Fresh == nil {
		m.Fresh = map[string]string{}
	}
	m.Fresh[n.path] = stamp
	return true
}

// endsWith ends the virtual machines of a job if they end with it.
func (v *visit) endsWith(j *job) error {
	if j.PID == 0 || j.Kubelet == nil || j.About.Abandon || v.switched(endSwitch) != "all" {
		return nil
	}
	return v.endGuests(func(g guest) bool { return g.runs() && g.Home == j.Home })
}

// pinOf returns launchd's pin for the program of a job: nil if it is missing, and for a script, which
// the shell reads.
func (v *visit) pinOf(j *job) *pin {
	n, err := v.find(v.session.users()[0], "/", j.About.Program, true)
	if err != nil || v.program(n) || !n.plain() {
		return nil
	}
	head, err := v.code(n)
	if err != nil || bytes.HasPrefix(head, []byte("#!")) {
		return nil
	}
	if team := teamOf(head); team != "" {
		return &pin{Team: team}
	}
	hash, err := v.sum(n)
	if err != nil {
		return nil
	}
	return &pin{Hash: hash}
}

// teamOf returns the team that signed a program, or "" if it is signed ad hoc.
func teamOf(head []byte) string {
	if hasLine(head, signatureLine) {
		return ""
	}
	return codeValue(head, teamLine)
}

// violates ends a job's start if its program is not the pinned one, and reports whether it did. A job
// that was loaded without its program is pinned by its first start.
func (v *visit) violates(j *job, due, now time.Time) bool {
	seen := v.pinOf(j)
	if j.Pin == nil {
		j.Pin = seen
	}
	if seen == nil || *seen == *j.Pin {
		return false
	}
	switch how := v.switched(pinSwitch); {
	case how == "never" && !j.Outdated:
		return false
	case how == "78", j.Outdated:
		j.Outdated = true
		j.dies(ending{Code: exitConfig}, 0, due, now)
	default:
		j.dies(ending{Signal: int(syscall.SIGKILL), Reason: killedByKernel}, 0, due, now)
	}
	return true
}

// registrations count how often each job was loaded: macOS notifies the user of each, and its database
// of background items grows.
var registrationsRecord = inFirmware("registrations")

// registered counts a load of a job.
func (v *visit) registered(label string) error {
	all := map[string]int{}
	if err := v.recall(registrationsRecord, &all); err != nil {
		return err
	}
	all[label]++
	return v.keep(registrationsRecord, all)
}

// generation returns how often a job was loaded by hand, at least 1.
func (v *visit) generation(label string) int {
	all := map[string]int{}
	if v.recall(registrationsRecord, &all) != nil {
		return 1 // an unreadable record is empty
	}
	return max(1, all[label])
}

// OutdatePin makes launchd's pin that of another program, which launchd reports at the next start.
func (m *Machine) OutdatePin(target string) error {
	return m.changeJob(target, func(j *job, _ time.Time) { j.Pin, j.Outdated = &pin{Hash: "other bytes"}, true })
}

// PinOutdated reports whether launchd reports that its pin of a job's program needs an update.
func (m *Machine) PinOutdated(target string) (outdated bool, err error) {
	err = m.asRoot(func(v *visit, _ *proc) error {
		held, _, err := v.launchd()
		if err != nil {
			return err
		}
		if j, ok := held.Jobs[target]; ok {
			outdated = j.Outdated
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("read the job %s of the machine in %s: %w", target, m.dir, err)
	}
	return outdated, nil
}
