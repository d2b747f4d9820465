package mac

import (
	"bytes"
	"fmt"
	"syscall"
	"time"
)

// pin is by what launchd knows a job's program again. It takes it when the job is loaded, and a start of
// another program under that pin is a violation of a launch constraint: what a team has signed is known by
// the team, anything else by its bytes.
type pin struct {
	Team string `json:"team,omitempty"`
	Hash string `json:"hash,omitempty"`
}

const (
	teamLine    = "team" // key of a program's line that names the team which has signed it
	pinSwitch   = "launchd-pins-program"
	freshSwitch = "launchctl-bootstrap-of-new-file"
	endSwitch   = "launchd-ends-with-job"
)

// pinSwitches are the doubts about what launchd keeps of a job's program and file, and of what it has started.
func pinSwitches() []Switch {
	return []Switch{
		{pinSwitch, "how a job's process ends whose program has other bytes than when the job was loaded, and no team's signature: " +
			"killed by the kernel, with 78 as launchd's constraint needs an update, or never for that", []string{"killed", "78", "never"}},
		{freshSwitch, "how the first bootstrap of a property list ends that was just written", []string{"0", "5"}},
		{endSwitch, "what ends with a kubelet's job that does not abandon its process group: that group, or its virtual machines too",
			[]string{"group", "all"}},
	}
}

// tooFresh reports whether launchd refuses a file that was just written: once, for each time it was written.
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

// endsWith ends the virtual machines that a job has started where they end with it.
func (v *visit) endsWith(j *job) error {
	if j.PID == 0 || j.Kubelet == nil || j.About.Abandon || v.switched(endSwitch) != "all" {
		return nil
	}
	return v.endGuests(func(g guest) bool { return g.runs() && g.Home == j.Home })
}

// pinOf is by what launchd would know the program of a job: nil where there is none, and for a script, which
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

// teamOf is the team that has signed a program, "" where it is signed ad hoc.
func teamOf(head []byte) string {
	if hasLine(head, signatureLine) {
		return ""
	}
	return codeValue(head, teamLine)
}

// violates ends a job's start where its program is not the one that launchd pinned, and reports whether it did.
// A job that was loaded before its program was there is pinned by its first start.
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

// registrations count how often someone has loaded a job: macOS tells the user of each, and its database of
// background items grows.
var registrationsRecord = inFirmware("registrations")

// registered counts a job that someone has loaded.
func (v *visit) registered(label string) error {
	all := map[string]int{}
	if err := v.recall(registrationsRecord, &all); err != nil {
		return err
	}
	all[label]++
	return v.keep(registrationsRecord, all)
}

// generation is how often a job was loaded by hand, once at least.
func (v *visit) generation(label string) int {
	all := map[string]int{}
	if v.recall(registrationsRecord, &all) != nil {
		return 1 // a record that cannot be read counts as none
	}
	return max(1, all[label])
}

// OutdatePin lets launchd have pinned another program than the one that lies there, and say so at the next start.
func (m *Machine) OutdatePin(target string) error {
	return m.changeJob(target, func(j *job, _ time.Time) { j.Pin, j.Outdated = &pin{Hash: "other bytes"}, true })
}

// PinOutdated reports whether launchd says that its pin of a job's program needs an update.
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
		return false, fmt.Errorf("look at the job %s of the machine in %s: %w", target, m.dir, err)
	}
	return outdated, nil
}
