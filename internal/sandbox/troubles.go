package sandbox

import (
	"bytes"
	"cmp"
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
	pooledIncident  = "renamed-to-pool"
	silentName      = "silent"
	slowName        = "slow"
	diesName        = "dies-in-command"
	garbledName     = "garbled-output"
)

// trouble is how an incident is caused and cured.
type trouble struct {
	Incident
	place string // Account, Cluster or GitHubAccount, if it affects no host that is named
	// remember records what the cure needs; it changes nothing.
	remember func(context.Context, *victim) error
	cause    func(context.Context, *victim) error
	// lasts reports whether the incident still has an effect.
	lasts func(context.Context, *victim) (bool, error)
	// cure reverts what is left of it.
	cure func(context.Context, *victim) error
}

// victim is a host and an incident on it.
type victim struct {
	world  *World
	server cloud.Server
	record *record
}

func troubles() []trouble {
	all := []trouble{
		{
			Incident: Incident{unreachableName, "the host does not answer: connections fail at once with 'no route to host'"},
			remember: nothing, cause: nothing, lasts: always, cure: nothing,
		},
		{
			Incident: Incident{"wrong-host-key", "the host's SSH host key changed"},
			remember: nothing, cause: rotateHostKey, lasts: always, cure: restoreHostKey,
		},
		{
			Incident: Incident{"foreign-marker", "the host's marker names another configuration as its owner"},
			remember: rememberForeignMarker, cause: plantMarker, lasts: markerPlanted, cure: unplantMarker,
		},
		{
			Incident: Incident{"marker-missing", "the host's marker and its folder were deleted"},
			remember: rememberMarker, cause: removeMarker, lasts: markerGone, cure: replaceMarker,
		},
		{
			Incident: Incident{renamedName, "someone renamed the server in the provider's console"},
			remember: rememberName, cause: rename(byHandName), lasts: hasName(byHandName), cure: renameBack(byHandName),
		},
		{
			Incident: Incident{pooledIncident, "someone gave the server a name of the pool in the provider's console"},
			remember: rememberName, cause: rename(pooledName), lasts: hasName(pooledName), cure: renameBack(pooledName),
		},
		{
			Incident: Incident{"sleep-enabled", "the Mac is set to sleep when idle"},
			remember: rememberSettings(sleepSettings), cause: breakSettings(sleepSettings), lasts: settingsBroken(sleepSettings), cure: restoreSettings(sleepSettings),
		},
		{
			Incident: Incident{"hostname-edited", "someone changed the Mac's host and computer names"},
			remember: rememberSettings(nameSettings), cause: breakSettings(nameSettings), lasts: settingsBroken(nameSettings), cure: restoreSettings(nameSettings),
		},
	}
	return slices.Concat(all, wireTroubles(), sudoTroubles(), loginTroubles(), pfTroubles(), clusterTroubles(), drainTroubles(), capiTroubles(), controllerTroubles(), kubeletTroubles(), pinTroubles(),
		bundleTroubles(), vmTroubles(), serverTroubles(), shellTroubles(), systemTroubles(), toolTroubles())
}

// wireTroubles affect the connection to a host, not its settings.
func wireTroubles() []trouble {
	return []trouble{
		{
			Incident: Incident{slowName, "the host answers a few bytes at a time"},
			remember: nothing, cause: nothing, lasts: always, cure: nothing,
		},
		{
			Incident: Incident{silentName, "the host accepts connections but sends nothing"},
			remember: nothing, cause: nothing, lasts: always, cure: nothing,
		},
		{
			Incident: Incident{diesName, "the connection breaks during every command's output"},
			remember: nothing, cause: nothing, lasts: always, cure: nothing,
		},
		{
			Incident: Incident{garbledName, "pmset, scutil and defaults print settings in an unexpected form"},
			remember: nothing, cause: nothing, lasts: always, cure: nothing,
		},
		{
			Incident: Incident{"login-noise", "the login shell's start-up file prints text before and after every command"},
			remember: rememberStartup, cause: makeNoise, lasts: noisy, cure: quieten,
		},
		{
			Incident: Incident{"key-not-installed", "someone removed the fleet's key from the login user's authorized keys"},
			remember: rememberKeys, cause: dropKeys, lasts: keysDropped, cure: restoreKeys,
		},
		{
			Incident: Incident{"key-half-rotated", "the host accepts only the sandbox's second key, as if a rotation of the fleet's key had not reached it"},
			remember: rememberKeys, cause: swapKeys, lasts: keysDropped, cure: unswapKeys,
		},
		{
			Incident: Incident{"address-banned", "fail2ban on the host bans this machine's address: connections time out, and the host runs"},
			remember: nothing, cause: onMac(func(m *mac.Machine) error { return m.SetBanned(true) }), lasts: banned,
			cure: onMac(func(m *mac.Machine) error { return m.SetBanned(false) }),
		},
	}
}

func troubleOf(incident string) (trouble, error) {
	known := map[string]trouble{}
	for _, t := range slices.Concat(troubles(), accountTroubles(), kubeconfigTroubles(), runnerTroubles(), gitHubTroubles(), tailnetTroubles(), controlTroubles()) {
		known[t.Name] = t
	}
	if t, ok := known[cmp.Or(otherNames()[incident], incident)]; ok {
		return t, nil
	}
	return trouble{}, unknown("incident", incident, known, "macfleet sandbox inject --help lists them")
}

// otherNames are further names of incidents.
func otherNames() map[string]string {
	return map[string]string{"key-refused": "key-not-installed", "swapped-serial": "swapped-host", "other-controller": ownedName}
}

func banned(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	return machine.Banned()
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

// byHandName is the server's name after someone has renamed it.
func byHandName(v *victim) string { return "renamed-by-hand-" + v.server.ID[:5] }

func pooledName(v *victim) string { return v.world.settings.PoolPrefix + v.server.ID[:5] }

func rememberName(_ context.Context, v *victim) error {
	v.record.Name = v.server.Name
	return nil
}

func rename(to func(*victim) string) func(context.Context, *victim) error {
	return func(_ context.Context, v *victim) error {
		return v.world.cloud.Rename(v.server.ID, func(string) (string, bool) { return to(v), true })
	}
}

func hasName(to func(*victim) string) func(context.Context, *victim) (bool, error) {
	return func(_ context.Context, v *victim) (bool, error) { return v.server.Name == to(v), nil }
}

func renameBack(from func(*victim) string) func(context.Context, *victim) error {
	return func(_ context.Context, v *victim) error {
		return v.world.cloud.Rename(v.server.ID, func(present string) (string, bool) { return v.record.Name, present == from(v) })
	}
}

func (v *victim) machine() (*mac.Machine, error) {
	return v.world.macs.get(v.server)
}

// onMac adapts a function of the Mac.
func onMac(do func(*mac.Machine) error) func(context.Context, *victim) error {
	return func(_ context.Context, v *victim) error {
		machine, err := v.machine()
		if err != nil {
			return err
		}
		return do(machine)
	}
}

// run runs a script on the Mac as root and returns its output.
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
