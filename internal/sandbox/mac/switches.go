package mac

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Switch is an uncertain behaviour of Macs: reports differ, so the machine can be set to behave in
// each way.
type Switch struct {
	Name, Summary string
	Values        []string // the first is the default
}

// takes reports whether a switch can have a value. A value in capitals stands for any other word.
func (s Switch) takes(value string) bool {
	last := s.Values[len(s.Values)-1]
	free := last != strings.ToLower(last) && last == strings.ToUpper(last)
	return slices.Contains(s.Values, value) || free && value != "" && !strings.ContainsAny(value, " \t\n")
}

// Switches returns all switches.
func Switches() []Switch {
	return slices.Concat(loginSwitches(), sudoSwitches(), banSwitches(), launchdSwitches(), pfSwitches(), vmnetSwitches(), pinSwitches(), btmSwitches(), appSwitches(), kubeletSwitches(), metricsSwitches(), downloadSwitches(), systemSwitches(), localNetworkSwitches())
}

// switchesByName are the Switches, created once: most commands read one.
var switchesByName = sync.OnceValue(func() map[string]Switch {
	all := map[string]Switch{}
	for _, s := range Switches() {
		all[s.Name] = s
	}
	return all
})

func switchOf(name string) (Switch, error) {
	known, ok := switchesByName()[name]
	if !ok {
		return Switch{}, fmt.Errorf("there is no switch %q", name)
	}
	return known, nil
}

// SetSwitch sets a switch of the machine.
func (m *Machine) SetSwitch(name, value string) error {
	known, err := switchOf(name)
	if err != nil {
		return err
	}
	if !known.takes(value) {
		return fmt.Errorf("switch %s: %q is none of %q", name, value, known.Values)
	}
	return m.asRoot(func(v *visit, _ *proc) error {
		set := map[string]string{}
		if err := v.recall(inFirmware("switches"), &set); err != nil {
			return err
		}
		set[name], v.switches = value, nil
		return v.keep(inFirmware("switches"), set)
	})
}

// switched returns a switch's present value. The name is a constant of this package.
func (v *visit) switched(name string) string {
	known, err := switchOf(name)
	if err != nil {
		panic(err)
	}
	if v.switches == nil {
		v.switches = map[string]string{}
		// An unreadable record is empty.
		if set, err := decoded[map[string]string](v.session.machine, inFirmware("switches"), json.Unmarshal); err == nil && set != nil {
			v.switches = *set
		}
	}
	if value, ok := v.switches[name]; ok {
		return value
	}
	return known.Values[0]
}

// Switched returns the present value of every switch, in the order of Switches.
func (m *Machine) Switched() ([]string, error) {
	var values []string
	err := m.asRoot(func(v *visit, _ *proc) error {
		for _, s := range Switches() {
			values = append(values, v.switched(s.Name))
		}
		return nil
	})
	return values, err
}
