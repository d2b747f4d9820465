package sandbox

import (
	"context"

	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// pinTroubles are incidents in which launchd's pin of a job's program does not match the program.
func pinTroubles() []trouble {
	return []trouble{{
		Incident: Incident{"kubelet-pin-outdated", "the kubelet's job was loaded with a different program than the present one, and was kickstarted since"},
		remember: needKubelet, cause: pinOther, lasts: pinOutdated, cure: onMac(loadPinned),
	}}
}

func pinOther(ctx context.Context, v *victim) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	if err := machine.OutdatePin(kubeletJob); err != nil {
		return err
	}
	return settled(ctx, machine, machine.RestartJob(kubeletJob))
}

func pinOutdated(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	return machine.PinOutdated(kubeletJob)
}

func loadPinned(m *mac.Machine) error {
	outdated, err := m.PinOutdated(kubeletJob)
	if err != nil || !outdated {
		return err
	}
	return m.LoadJob(kubeletPlist)
}
