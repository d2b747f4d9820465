package mac

import (
	"fmt"
	"strings"
	"sync"
)

// lineCut makes rules that differ from the present ones cut the machine's connections, as a mistake in
// a rule does to anyone who loads it remotely.
type lineCut struct {
	Armed  bool   `json:"armed"`
	Rules  string `json:"rules"`            // at the time of ArmCut
	Reboot bool   `json:"reboot,omitempty"` // the machine restarts once when the connections are cut
}

func cutPlace(reboot bool) place {
	if reboot {
		return inFirmware("cut-line-and-reboot")
	}
	return inFirmware("cut-line")
}

// ArmCut makes any other rules than the present ones cut the machine's connections as soon as they
// block something; with reboot the machine also restarts then. DisarmCut ends that.
func (m *Machine) ArmCut(reboot bool) error {
	return m.asRoot(func(v *visit, _ *proc) error {
		live, err := v.filter()
		if err != nil {
			return err
		}
		return v.keep(cutPlace(reboot), lineCut{true, live.ownRules(), reboot})
	})
}

// DisarmCut lets connections through again.
func (m *Machine) DisarmCut(reboot bool) error {
	return m.asRoot(func(v *visit, _ *proc) error { return v.keep(cutPlace(reboot), lineCut{}) })
}

// CutArmed reports whether ArmCut is in effect.
func (m *Machine) CutArmed(reboot bool) (bool, error) {
	var c lineCut
	err := m.asRoot(func(v *visit, _ *proc) error { return v.recall(cutPlace(reboot), &c) })
	return c.Armed, err
}

// ownRules returns the evaluated rules of anchors that are not the system's, with their tables.
func (f *filter) ownRules() string {
	var b strings.Builder
	for _, anchor := range f.evaluated() {
		if anchor == "com.apple" || strings.HasPrefix(anchor, "com.apple/") || strings.HasPrefix(anchor, "com.apple.") {
			continue
		}
		r := f.ruleset(anchor)
		fmt.Fprintf(&b, "%s\n", anchor)
		for _, one := range r.of(filterRule) {
			fmt.Fprintf(&b, "%s\n", one.Text)
			for _, name := range one.Tables {
				fmt.Fprintf(&b, "<%s> %v\n", name, r.Tables[name])
			}
		}
	}
	return b.String()
}

// cuts reports whether the present rules cut connections.
func (v *visit) cuts(c lineCut) (bool, error) {
	if !c.Armed {
		return false, nil
	}
	live, err := v.filter()
	if err != nil || !live.Enabled {
		return false, err
	}
	rules := live.ownRules()
	return rules != c.Rules && strings.Contains("\n"+rules, "\nblock "), nil
}

// cutOff reports whether the loaded rules block the machine's SSH port.
func (v *visit) cutOff() (bool, error) {
	for _, reboot := range []bool{false, true} {
		var c lineCut
		if err := v.recall(cutPlace(reboot), &c); err != nil {
			return false, err
		}
		if off, err := v.cuts(c); off || err != nil {
			return off, err
		}
	}
	return false, nil
}

// rebootWanted reports, once for each ArmCut, that connections are cut and the machine must restart.
// Whatever lets time pass on the machine calls it.
func (v *visit) rebootWanted() (bool, error) {
	var c lineCut
	if err := v.recall(cutPlace(true), &c); err != nil || !c.Reboot {
		return false, err
	}
	off, err := v.cuts(c)
	if err != nil || !off {
		return false, err
	}
	c.Reboot = false
	return true, v.keep(cutPlace(true), c)
}

// mayBeCut is a fast check whether ArmCut was ever called, for every connection and every command.
func (m *Machine) mayBeCut() bool {
	return m.has(cutPlace(false)) || m.has(cutPlace(true))
}

// has reports whether there is a record at a place.
func (m *Machine) has(at place) bool {
	data, err := m.remembers(at)
	return data != nil || err != nil
}

// Reachable reports whether the machine's SSH port would answer.
func (m *Machine) Reachable() (bool, error) {
	if !m.mayBeCut() {
		return true, nil
	}
	var off bool
	err := m.asRoot(func(v *visit, _ *proc) (err error) {
		off, err = v.cutOff()
		return err
	})
	return !off, err
}

// lines are the machine's open connections.
type lines struct {
	mu   sync.Mutex
	open map[*link]func()
}

// add records a connection with the function that breaks it, and returns the one that forgets it.
func (l *lines) add(one *link, sever func()) (forget func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[*link]func(){}
	}
	l.open[one] = sever
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, one)
	}
}

// sever breaks all of them.
func (l *lines) sever() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, sever := range l.open {
		sever()
	}
}

// severIfCut breaks the open connections if the rules now cut them.
func (s *session) severIfCut() error {
	if !s.machine.mayBeCut() {
		return nil
	}
	var off bool
	err := s.visit(func(v *visit) (err error) {
		if off, err = v.cutOff(); err != nil || !off {
			return err
		}
		wanted, err := v.rebootWanted()
		if wanted && err == nil {
			err = v.shutDown()
		}
		return err
	})
	if off {
		s.machine.lines.sever()
	}
	return err
}
