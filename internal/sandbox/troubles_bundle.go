package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// What the incident removes from Tart's bundle, what it edits there, and the mark of the edit.
const (
	tartProfile = "/usr/local/lib/tart.app/Contents/embedded.provisionprofile"
	tartInfo    = "/usr/local/lib/tart.app/Contents/Info.plist"
	tornMark    = "<!-- edited by hand -->\n"
)

// bundleTroubles are the incidents of Tart's bundle. They need a complete one.
func bundleTroubles() []trouble {
	return []trouble{{
		Incident: Incident{"tart-bundle-torn", "Tart's bundle has no provisioning profile and an edited Info.plist; its program is unchanged"},
		remember: rememberBundle, cause: tearBundle, lasts: bundleTorn, cure: restoreBundle,
	}}
}

func rememberBundle(_ context.Context, v *victim) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	v.record.Settings = map[string]string{}
	for _, name := range []string{tartProfile, tartInfo} {
		data, err := machine.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the host has no complete bundle of Tart (no %s); fix: apply a fleet with tart to it first", name)
		}
		if err != nil {
			return err
		}
		v.record.Settings[name] = string(data)
	}
	return nil
}

func tearBundle(_ context.Context, v *victim) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	info := v.record.Settings[tartInfo] + tornMark
	return errors.Join(machine.Remove(tartProfile), machine.WriteFile(tartInfo, []byte(info), 0, 0, 0o644))
}

// bundleTorn reports whether the bundle is still the torn one: one that was installed since has no
// mark.
func bundleTorn(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	info, err := machine.ReadFile(tartInfo)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // the bundle was removed
	}
	return bytes.HasSuffix(info, []byte(tornMark)), err
}

func restoreBundle(ctx context.Context, v *victim) error {
	torn, err := bundleTorn(ctx, v)
	if err != nil || !torn {
		return err
	}
	machine, err := v.machine()
	if err != nil {
		return err
	}
	for _, name := range []string{tartProfile, tartInfo} {
		err = errors.Join(err, machine.WriteFile(name, []byte(v.record.Settings[name]), 0, 0, 0o644))
	}
	return err
}
