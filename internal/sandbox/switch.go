package sandbox

import (
	"slices"

	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// Switch is a doubt about how Macs behave, and how one Mac of the world is set to.
type Switch struct {
	Name, Summary string
	Values        []string // what it can be set to; the first is what a new Mac does
	Value         string   // what it is set to
}

// Switches gives the switches that a Mac has, as they stand on a new one.
func Switches() []Switch {
	var all []Switch
	for _, s := range mac.Switches() {
		all = append(all, Switch{s.Name, s.Summary, s.Values, s.Values[0]})
	}
	return all
}

// Switches gives the switches of a host that are named, or all, with their present values.
func (w *World) Switches(host string, names ...string) ([]Switch, error) {
	for _, name := range names {
		if err := knownSwitch(name); err != nil {
			return nil, err
		}
	}
	machine, err := w.Mac(host)
	if err != nil {
		return nil, err
	}
	values, err := machine.Switched()
	if err != nil {
		return nil, err
	}
	var wanted []Switch
	for i, s := range Switches() {
		if s.Value = values[i]; len(names) == 0 || slices.Contains(names, s.Name) {
			wanted = append(wanted, s)
		}
	}
	return wanted, nil
}

// SetSwitch makes a host behave in one of the ways that a switch offers.
func (w *World) SetSwitch(host, name, value string) error {
	if err := knownSwitch(name); err != nil {
		return err
	}
	machine, err := w.Mac(host)
	if err != nil {
		return err
	}
	return machine.SetSwitch(name, value)
}

func knownSwitch(name string) error {
	known := map[string]bool{}
	for _, s := range Switches() {
		known[s.Name] = true
	}
	if !known[name] {
		return unknown("switch", name, known)
	}
	return nil
}

// Mac gives the simulated Mac of a server, by its name or id.
func (w *World) Mac(host string) (*mac.Machine, error) {
	server, err := w.find(host)
	if err != nil {
		return nil, err
	}
	return w.macs.get(server)
}
