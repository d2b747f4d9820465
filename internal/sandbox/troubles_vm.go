package sandbox

import (
	"context"
	"slices"

	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// What the incidents of virtual machines leave on a host.
const (
	orphanVM   = "macfleet-sandbox-orphan"
	pushedVM   = "macfleet-sandbox-image"
	pushedTo   = "registry.acme.dev/images/sandbox:latest"
	nearlyFull = 20 << 20 // bytes
)

// vmTroubles are the incidents of virtual machines and of the machine below them.
func vmTroubles() []trouble {
	return []trouble{
		{
			Incident: Incident{"orphan-vm", "a virtual machine on the host belongs to no Pod"},
			remember: nothing, cause: onMac(addOrphan), lasts: vmThere(orphanVM), cure: onMac(removeOrphan),
		},
		{
			Incident: Incident{"push-in-progress", "tart is pushing an image that was built on the host"},
			remember: nothing, cause: onMac(startPush), lasts: pushRuns, cure: onMac(endPush),
		},
		{
			Incident: Incident{"job-running", "a job of a GitHub runner runs on the host, outside any virtual machine"},
			remember: nothing, cause: onMac((*mac.Machine).StartCIJob), lasts: jobRuns, cure: onMac((*mac.Machine).EndCIJobs),
		},
		{
			Incident: Incident{"disk-full", "only 20 MB are free on the host's disk"},
			remember: nothing, cause: onMac(fillDisk), lasts: diskFull, cure: emptyDisk,
		},
		{
			Incident: Incident{"swapped-host", "another machine with the same files answers at the host's address"},
			remember: rememberSerial, cause: changeSerial, lasts: serialChanged, cure: restoreSerial,
		},
	}
}

func addOrphan(m *mac.Machine) error { return m.AddVM(orphanVM) }

func removeOrphan(m *mac.Machine) error { return m.RemoveVM(orphanVM) }

func vmThere(name string) func(context.Context, *victim) (bool, error) {
	return func(_ context.Context, v *victim) (bool, error) {
		machine, err := v.machine()
		if err != nil {
			return false, err
		}
		all, err := machine.VMs()
		return slices.ContainsFunc(all, func(one mac.VM) bool { return one.Name == name }), err
	}
}

func startPush(m *mac.Machine) error { return m.StartPush(pushedVM, pushedTo) }

func pushRuns(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	all, err := machine.Pushes()
	return slices.ContainsFunc(all, func(one mac.Push) bool { return one.Ref == pushedTo && !one.Ended }), err
}

func endPush(m *mac.Machine) error {
	if err := m.EndPushes(pushedTo); err != nil {
		return err
	}
	return m.RemoveVM(pushedVM)
}

func jobRuns(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	return machine.HasCIJob()
}

func fillDisk(m *mac.Machine) error { return m.SetFree(nearlyFull) }

func diskFull(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	free, err := machine.Free()
	return free <= 2*nearlyFull, err
}

func emptyDisk(ctx context.Context, v *victim) error {
	full, err := diskFull(ctx, v)
	if err != nil || !full {
		return err
	}
	return onMac((*mac.Machine).EmptyDisk)(ctx, v)
}

func rememberSerial(_ context.Context, v *victim) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	serial, err := machine.Serial()
	v.record.Settings = map[string]string{"serial": serial}
	return err
}

// otherSerial is the serial number of the machine that replaced it.
func (v *victim) otherSerial() string {
	return "H" + letters("swapped "+v.server.ID, "ABCDEFGHJKLMNPQRSTUVWXYZ0123456789", 9)
}

func changeSerial(_ context.Context, v *victim) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	return machine.SetSerial(v.otherSerial())
}

func serialChanged(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	serial, err := machine.Serial()
	return serial == v.otherSerial(), err
}

func restoreSerial(ctx context.Context, v *victim) error {
	changed, err := serialChanged(ctx, v)
	if err != nil || !changed {
		return err
	}
	machine, err := v.machine()
	if err != nil {
		return err
	}
	return machine.SetSerial(v.record.Settings["serial"])
}
