package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

const (
	unreachableName = "unreachable"
	renamedName     = "renamed-by-hand"
	silentName      = "silent"
	slowName        = "slow"
	diesName        = "dies-in-command"
	garbledName     = "garbled-output"
)

// trouble is how an incident comes about and ends.
type trouble struct {
	Incident
	// remember notes in the record what healing needs; it changes nothing.
	remember func(context.Context, *victim) error
	cause    func(context.Context, *victim) error
	// lasts reports whether anything of it still exists.
	lasts func(context.Context, *victim) (bool, error)
	// cure undoes what still exists.
	cure func(context.Context, *victim) error
}

// victim is a host with the incident in question.
type victim struct {
	world  *World
	server cloud.Server
	record *record
}

func troubles() []trouble {
	all := []trouble{
		{
			Incident: Incident{unreachableName, "the host does not answer: a dial fails at once with 'no route to host'"},
			remember: nothing, cause: nothing, lasts: always, cure: nothing,
		},
		{
			Incident: Incident{"wrong-host-key", "the host shows another SSH host key than before"},
			remember: nothing, cause: rotateHostKey, lasts: always, cure: restoreHostKey,
		},
		{
			Incident: Incident{"foreign-marker", "the host's marker says that it belongs to another configuration"},
			remember: rememberForeignMarker, cause: plantMarker, lasts: markerPlanted, cure: unplantMarker,
		},
		{
			Incident: Incident{"marker-missing", "the host's marker and its folder are gone"},
			remember: rememberMarker, cause: removeMarker, lasts: markerGone, cure: replaceMarker,
		},
		{
			Incident: Incident{renamedName, "someone renamed the server in the provider's console"},
			remember: rememberName, cause: renameByHand, lasts: stillRenamed, cure: renameBack,
		},
		{
			Incident: Incident{"sleep-enabled", "the Mac goes to sleep when idle"},
			remember: rememberSettings(sleepSettings), cause: spoil(sleepSettings), lasts: spoiled(sleepSettings), cure: mend(sleepSettings),
		},
		{
			Incident: Incident{"hostname-edited", "someone changed the Mac's own names"},
			remember: rememberSettings(nameSettings), cause: spoil(nameSettings), lasts: spoiled(nameSettings), cure: mend(nameSettings),
		},
	}
	return slices.Concat(all, wireTroubles(), sudoTroubles(), loginTroubles(), pfTroubles(), clusterTroubles(), drainTroubles(), capiTroubles(), kubeletTroubles(), pinTroubles(),
		bundleTroubles(), vmTroubles(), serverTroubles(), shellTroubles())
}

// wireTroubles are those that show in the conversation with a host, not in its settings.
func wireTroubles() []trouble {
	return []trouble{
		{
			Incident: Incident{slowName, "the host answers slowly, a few bytes at a time"},
			remember: nothing, cause: nothing, lasts: always, cure: nothing,
		},
		{
			Incident: Incident{silentName, "the host accepts connections and never says a word"},
			remember: nothing, cause: nothing, lasts: always, cure: nothing,
		},
		{
			Incident: Incident{diesName, "the connection breaks in the middle of every command's output"},
			remember: nothing, cause: nothing, lasts: always, cure: nothing,
		},
		{
			Incident: Incident{garbledName, "pmset, scutil and defaults print settings in an unexpected form"},
			remember: nothing, cause: nothing, lasts: always, cure: nothing,
		},
		{
			Incident: Incident{"login-noise", "the login shell's start-up file prints before and after every command"},
			remember: rememberStartup, cause: makeNoise, lasts: noisy, cure: quieten,
		},
		{
			Incident: Incident{"key-refused", "the fleet's key is no longer in the login user's authorized keys"},
			remember: rememberKeys, cause: dropKeys, lasts: keysDropped, cure: restoreKeys,
		},
	}
}

func troubleOf(incident string) (trouble, error) {
	known := map[string]trouble{}
	for _, t := range troubles() {
		known[t.Name] = t
	}
	if t, ok := known[incident]; ok {
		return t, nil
	}
	return trouble{}, unknown("incident", incident, known)
}

func nothing(context.Context, *victim) error { return nil }

func always(context.Context, *victim) (bool, error) { return true, nil }

func rotateHostKey(_ context.Context, v *victim) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	return machine.RotateHostKey()
}

func restoreHostKey(_ context.Context, v *victim) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	return machine.RestoreHostKey()
}

// handName is what the server is called after someone has renamed it.
func (v *victim) handName() string { return "renamed-by-hand-" + v.server.ID[:5] }

func rememberName(_ context.Context, v *victim) error {
	v.record.Name = v.server.Name
	return nil
}

func renameByHand(_ context.Context, v *victim) error {
	return v.world.cloud.Rename(v.server.ID, func(string) (string, bool) { return v.handName(), true })
}

func stillRenamed(_ context.Context, v *victim) (bool, error) {
	return v.server.Name == v.handName(), nil
}

func renameBack(_ context.Context, v *victim) error {
	return v.world.cloud.Rename(v.server.ID, func(present string) (string, bool) {
		return v.record.Name, present == v.handName()
	})
}

func (v *victim) machine() (*mac.Machine, error) {
	return v.world.macs.get(v.server)
}

// onMac is what is done to the Mac itself.
func onMac(do func(*mac.Machine) error) func(context.Context, *victim) error {
	return func(_ context.Context, v *victim) error {
		machine, err := v.machine()
		if err != nil {
			return err
		}
		return do(machine)
	}
}

// run runs a script on the Mac as root and gives what it printed.
func (v *victim) run(ctx context.Context, script string) (string, error) {
	machine, err := v.machine()
	if err != nil {
		return "", err
	}
	result, err := machine.Run(ctx, "root", script)
	if err != nil {
		return "", err
	}
	if result.Exit != 0 {
		return "", fmt.Errorf("%q exited with status %d: %s", script, result.Exit, bytes.TrimSpace(result.Stderr))
	}
	return strings.TrimSuffix(string(result.Stdout), "\n"), nil
}
