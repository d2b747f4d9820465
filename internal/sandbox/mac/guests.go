package mac

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
)

// guest is a process that runs by itself: a running virtual machine, a push, or a CI job. It outlives
// the process that started it, but not its user's session.
type guest struct {
	PID        int       `json:"pid"`
	VM         string    `json:"vm"`
	Home       string    `json:"home"` // TART_HOME
	UID        int       `json:"uid"`
	Started    time.Time `json:"started"`
	Args       []string  `json:"args"`
	Ref        string    `json:"ref,omitempty"`  // target of a push; "" = a running virtual machine
	Ends       time.Time `json:"ends,omitzero"`  // when a push finishes
	ResultRead bool      `json:"told,omitempty"` // whether the result of a finished push was read
	Failure    string    `json:"failure,omitempty"`
	CIJob      bool      `json:"ci_job,omitempty"` // it is neither, but a job of a CI agent
	Pod        *podOf    `json:"pod,omitempty"`    // whose virtual machine it is, if the cluster has the Pod
}

// podOf names a Pod.
type podOf struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// pushBroken is the result of a push whose virtual machine was deleted meanwhile.
const pushBroken = `The file "nvram.bin" doesn't exist`

func (g guest) runs() bool   { return g.Ref == "" && !g.CIJob }
func (g guest) pushes() bool { return g.Ref != "" && !g.ResultRead }

var guestsRecord = inMemory("guests")

// guests are tart's own processes, and the pushes that have ended since the last boot.
func (v *visit) guests() ([]guest, error) {
	var all []guest
	if err := v.recall(guestsRecord, &all); err != nil {
		return nil, fmt.Errorf("tart's processes: %w", err)
	}
	now := v.session.instant()
	for i, g := range all {
		if g.pushes() && now.Before(g.Ends) {
			v.session.machine.untilThen(g.Ends)
		}
		if g.pushes() && !now.Before(g.Ends) {
			// The disk is open all the time; nvram.bin is opened last, after the disk.
			if all[i].ResultRead = true; !v.exists(g.Home + "/vms/" + g.VM + "/nvram.bin") {
				all[i].Failure = pushBroken
			}
		}
	}
	return all, nil
}

// changeGuests lets f change tart's own processes.
func (v *visit) changeGuests(f func([]guest) []guest) error {
	all, err := v.guests()
	if err != nil {
		return err
	}
	before := running(all)
	all = f(all)
	if err := v.changeNetwork(before, running(all)); err != nil {
		return err
	}
	if len(all) == 0 {
		if data, err := v.session.machine.remembers(guestsRecord); data == nil {
			return err
		}
	}
	return v.keep(guestsRecord, all)
}

// running counts the running virtual machines.
func running(all []guest) (n int) {
	for _, g := range all {
		if g.runs() {
			n++
		}
	}
	return n
}

// endGuests ends the guests that match.
func (v *visit) endGuests(fits func(guest) bool) error {
	return v.changeGuests(func(all []guest) []guest { return slices.DeleteFunc(all, fits) })
}

// newPID returns a pid for a process that does not belong to a job.
func (v *visit) newPID() (pid int, err error) {
	err = v.changeLaunchd(func(m *manager, _ time.Time) error {
		pid = m.newPID()
		return nil
	})
	return pid, err
}

// errSession is Virtualization's error for a user without a GUI session.
var errSession = errors.New(`Error Domain=VZErrorDomain Code=-9 Description="The virtual machine encountered a security error." UserInfo={NSUnderlyingError=Failed to create new HostKey}`)

// startGuest starts a virtual machine as a separate process.
func (v *visit) startGuest(who user, home, name string, args []string, pod *podOf) (guest, error) {
	all, err := v.guests()
	if err != nil {
		return guest{}, err
	}
	var others []string
	for _, g := range all {
		switch {
		case g.runs() && g.VM == name && g.Home == home:
			return guest{}, tartError{2, fmt.Sprintf("VM %q is already running!", name)}
		case g.runs():
			others = append(others, g.VM)
		}
	}
	if at, err := v.console(); err != nil || at.User != who.name {
		return guest{}, errors.Join(errSession, err)
	}
	if len(others) >= agent.MaxVMs {
		return guest{}, tartError{1, agent.TooManyVMs + " (other running VMs: " + strings.Join(others, ", ") + ")"}
	}
	one := guest{VM: name, Home: home, UID: who.uid, Started: v.session.now(), Args: args, Pod: pod}
	return one, v.addGuest(&one)
}

func (v *visit) addGuest(one *guest) (err error) {
	if one.PID, err = v.newPID(); err != nil {
		return err
	}
	return v.changeGuests(func(all []guest) []guest { return append(all, *one) })
}
