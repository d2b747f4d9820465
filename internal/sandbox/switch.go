package sandbox

import (
	"slices"

	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// Switch is a behaviour that varies between real Macs, and its value on one Mac of the world.
type Switch struct {
	Name, Summary string
	Values        []string // the possible values; the first is a new Mac's
	Value         string   // the current value
}

// Switches returns the switches of a new Mac.
func Switches() []Switch {
	var all []Switch
	for _, s := range mac.Switches() {
		all = append(all, Switch{s.Name, s.Summary, s.Values, s.Values[0]})
	}
	return all
}

// Switches returns the named switches of a host, or all of them, with their values.
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

// SetSwitch sets a switch of a host.
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
		return unknown("switch", name, known, "macfleet sandbox switch HOST lists them")
	}
	return nil
}

// Mac returns the simulated Mac of a server, by its name or id.
func (w *World) Mac(host string) (*mac.Machine, error) {
	server, err := w.find(host)
	if err != nil {
		return nil, err
	}
	return w.macs.get(server)
}
