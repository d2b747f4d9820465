package sandbox

import (
	"context"
	"errors"
	"io/fs"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// loginTroubles are the incidents of automatic login and of the GUI session.
func loginTroubles() []trouble {
	return []trouble{
		screenTrouble("sealed-kcpassword", "loginwindow sealed /etc/kcpassword after a wrong password, so there is no GUI session",
			func(s mac.Screen) bool { return s.Sealed && s.User == "" },
			(*mac.Machine).Seal, (*mac.Machine).LogOut),
		screenTrouble("sealed-with-session", "/etc/kcpassword is sealed, and the GUI session is up",
			func(s mac.Screen) bool { return s.Sealed && s.User != "" },
			(*mac.Machine).Seal, ensureSession),
		rotatedTrouble("stale-kcpassword", "someone changed the Mac's password, also at the provider; /etc/kcpassword has the old one, and the GUI session is up",
			ensureSession),
		rotatedTrouble("stale-kcpassword-no-session", "someone changed the Mac's password, also at the provider; /etc/kcpassword has the old one, and there is no GUI session",
			(*mac.Machine).LogOut),
		screenTrouble("dead-loginwindow", "loginwindow exited and does not restart, so there can be no GUI session",
			func(s mac.Screen) bool { return !s.Loginwindow },
			(*mac.Machine).StopLoginwindow),
		screenTrouble("no-gui-session", "there is no GUI session, although automatic login is set up",
			func(s mac.Screen) bool { return s.Loginwindow && s.User == "" },
			ensureSession, (*mac.Machine).LogOut),
		{
			Incident: Incident{"filevault-on", "someone turned FileVault on, so automatic login does not work after the next start"},
			remember: nothing, cause: setFileVault(true), lasts: fileVaultOn, cure: setFileVault(false),
		},
	}
}

// screenTrouble is an incident of the GUI session. Automatic login is set up first, so that nothing
// else is wrong.
func screenTrouble(name, summary string, seen func(mac.Screen) bool, steps ...func(*mac.Machine) error) trouble {
	lasts := func(_ context.Context, v *victim) (bool, error) {
		screen, err := v.screen()
		return err == nil && seen(screen), err
	}
	return trouble{
		Incident: Incident{name, summary},
		remember: rememberScreen,
		cause: onMac(func(machine *mac.Machine) error {
			screen, err := machine.Screen()
			if err == nil && !screen.AutoLogin {
				err = machine.SetAutoLogin()
			}
			for _, step := range steps {
				if err == nil {
					err = step(machine)
				}
			}
			return err
		}),
		lasts: lasts,
		cure: func(ctx context.Context, v *victim) error {
			still, err := lasts(ctx, v)
			if err != nil || !still {
				return err
			}
			return restoreScreen(ctx, v)
		},
	}
}

// rotatedTrouble is an incident after a password change that did not reach /etc/kcpassword. The
// provider reports the new password. last adds further effects.
func rotatedTrouble(name, summary string, last func(*mac.Machine) error) trouble {
	return trouble{
		Incident: Incident{name, summary},
		remember: rememberRotation,
		cause: func(_ context.Context, v *victim) error {
			machine, err := v.machine()
			if err != nil {
				return err
			}
			screen, err := machine.Screen()
			if err == nil && !screen.AutoLogin {
				err = machine.SetAutoLogin()
			}
			if err == nil {
				err = errors.Join(machine.SetPassword(v.handPassword()), last(machine))
			}
			if err != nil {
				return err
			}
			return v.reportPasswords(func(p cloud.Passwords) cloud.Passwords { return cloud.Passwords{Sudo: v.handPassword(), VNC: p.VNC} })
		},
		lasts: rotatedStill,
		cure: func(ctx context.Context, v *victim) error {
			still, err := rotatedStill(ctx, v)
			if err != nil || !still {
				return err
			}
			machine, err := v.machine()
			if err == nil {
				err = machine.SetPassword(v.record.Settings[passwordBefore])
			}
			before, failed := v.reportedBefore()
			if err = errors.Join(err, failed); err != nil {
				return err
			}
			return errors.Join(v.reportPasswords(func(cloud.Passwords) cloud.Passwords { return before }), restoreScreen(ctx, v))
		},
	}
}

// reportPasswords changes what the provider reports of the Mac's passwords.
func (v *victim) reportPasswords(change func(cloud.Passwords) cloud.Passwords) error {
	return v.world.cloud.Disclose(v.server.ID, func(present cloud.Passwords) (cloud.Passwords, bool) { return change(present), true })
}

func rememberRotation(ctx context.Context, v *victim) error {
	if err := rememberScreen(ctx, v); err != nil {
		return err
	}
	machine, err := v.machine()
	if err != nil {
		return err
	}
	v.record.Reported = &cloud.Passwords{Sudo: v.server.SudoPassword, VNC: v.server.VncURL}
	v.record.Settings[passwordBefore], err = machine.Password()
	return err
}

// rotatedStill reports whether the password is still the changed one.
func rotatedStill(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	password, err := machine.Password()
	return password == v.handPassword(), err
}

func (v *victim) screen() (mac.Screen, error) {
	machine, err := v.machine()
	if err != nil {
		return mac.Screen{}, err
	}
	return machine.Screen()
}

func ensureSession(machine *mac.Machine) error {
	screen, err := machine.Screen()
	if err != nil || screen.User != "" {
		return err
	}
	return machine.LogIn()
}

const (
	kcpasswordFile = "/etc/kcpassword"
	autoLoginKey   = "/Library/Preferences/com.apple.loginwindow autoLoginUser"
)

// The values in the record for the GUI session before.
const (
	userBefore    = "autoLoginUser"
	sessionBefore = "session"
	windowBefore  = "loginwindow"

	passwordBefore = "password"
)

func rememberScreen(ctx context.Context, v *victim) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	screen, err := machine.Screen()
	if err != nil {
		return err
	}
	data, err := machine.ReadFile(kcpasswordFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	v.record.File, v.record.HadFile = data, err == nil
	user, err := v.run(ctx, "defaults read "+autoLoginKey+" 2>/dev/null || true")
	v.record.Settings = map[string]string{userBefore: user, sessionBefore: screen.User}
	if screen.Loginwindow {
		v.record.Settings[windowBefore] = "alive"
	}
	return err
}

// restoreScreen restores the former state, the session last.
func restoreScreen(ctx context.Context, v *victim) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	if v.record.HadFile {
		err = machine.WriteFile(kcpasswordFile, v.record.File, 0, 0, 0o600)
	} else {
		err = machine.Remove(kcpasswordFile)
	}
	if err != nil {
		return err
	}
	script := "defaults delete " + autoLoginKey + " 2>/dev/null || true"
	if user := v.record.Settings[userBefore]; user != "" {
		script = "defaults write " + autoLoginKey + " -string " + quote(user)
	}
	if _, err := v.run(ctx, script); err != nil {
		return err
	}
	switch {
	case v.record.Settings[windowBefore] == "":
		return machine.StopLoginwindow()
	case v.record.Settings[sessionBefore] == "":
		// A login there starts the process first.
		return errors.Join(machine.LogIn(), machine.LogOut())
	}
	return ensureSession(machine)
}

func setFileVault(on bool) func(context.Context, *victim) error {
	return onMac(func(machine *mac.Machine) error { return machine.SetFileVault(on) })
}

func fileVaultOn(_ context.Context, v *victim) (bool, error) {
	screen, err := v.screen()
	return screen.FileVault, err
}
