package sandbox

import (
	"context"
	"errors"
	"io/fs"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// loginTroubles are the incidents of automatic login and of the session at the screen.
func loginTroubles() []trouble {
	return []trouble{
		screenTrouble("sealed-kcpassword", "loginwindow sealed /etc/kcpassword after a wrong password: no user is logged in at the screen",
			func(s mac.Screen) bool { return s.Sealed && s.User == "" },
			(*mac.Machine).Seal, (*mac.Machine).LogOut),
		screenTrouble("sealed-with-session", "/etc/kcpassword is sealed, and the session at the screen is fine",
			func(s mac.Screen) bool { return s.Sealed && s.User != "" },
			(*mac.Machine).Seal, ensureSession),
		rotatedTrouble("stale-kcpassword", "the Mac's password was changed, also at the provider; /etc/kcpassword holds the old one, and the session is up",
			ensureSession),
		rotatedTrouble("stale-kcpassword-no-session", "the Mac's password was changed, also at the provider; /etc/kcpassword holds the old one, and no user is logged in",
			(*mac.Machine).LogOut),
		screenTrouble("dead-loginwindow", "loginwindow has exited and does not come back: no user can log in at the screen",
			func(s mac.Screen) bool { return !s.Loginwindow },
			(*mac.Machine).StopLoginwindow),
		screenTrouble("no-gui-session", "no user is logged in at the screen, though automatic login is set up",
			func(s mac.Screen) bool { return s.Loginwindow && s.User == "" },
			ensureSession, (*mac.Machine).LogOut),
		{
			Incident: Incident{"filevault-on", "the disk is encrypted: no automatic login after the next start"},
			remember: nothing, cause: setFileVault(true), lasts: fileVaultOn, cure: setFileVault(false),
		},
	}
}

// screenTrouble is an incident that a person in front of the Mac would see. Automatic login is set
// up first, so that nothing else is wrong.
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

// rotatedTrouble is an incident after a change of the password that did not reach /etc/kcpassword. The provider reports the new one. last is what else happens.
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
			return v.tell(func(p cloud.Passwords) cloud.Passwords { return cloud.Passwords{Sudo: v.handPassword(), VNC: p.VNC} })
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
			before, failed := v.told()
			if err = errors.Join(err, failed); err != nil {
				return err
			}
			return errors.Join(v.tell(func(cloud.Passwords) cloud.Passwords { return before }), restoreScreen(ctx, v))
		},
	}
}

// tell changes what the provider reports of the Mac's passwords.
func (v *victim) tell(change func(cloud.Passwords) cloud.Passwords) error {
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
	v.record.Told = &cloud.Passwords{Sudo: v.server.SudoPassword, VNC: v.server.VncURL}
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

// How the record spells what was at the screen.
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

// restoreScreen puts back what was before, the session last.
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
		// A user who logs in there brings the process back first.
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
