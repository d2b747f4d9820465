package mac

import (
	"errors"
	"fmt"
	"time"
)

// Screen is what a person in front of the machine sees.
type Screen struct {
	User        string // of the session, "" at the login window
	Loginwindow bool   // whether the process of the login window runs
	FileVault   bool   // whether the disk is encrypted
	Sealed      bool   // whether /etc/kcpassword holds the mark instead of a password
	AutoLogin   bool   // whether that file and the settings would log the login user in
}

// Screen returns what a person in front of the machine sees.
func (m *Machine) Screen() (Screen, error) {
	var s Screen
	err := m.asRoot(func(v *visit, p *proc) error {
		c, err := v.console()
		alive, failed := v.loginwindowAlive()
		encrypted, failed2 := v.fileVault()
		a, failed3 := v.account()
		if err := errors.Join(err, failed, failed2, failed3); err != nil {
			return err
		}
		s = Screen{User: c.User, Loginwindow: alive, FileVault: encrypted}
		data, err := v.read(p, kcpasswordFile)
		if err != nil {
			return nil // without the file, there is no automatic login
		}
		password, whole := openKcpassword(data)
		_, wanted := v.autoLoginUser()
		s.Sealed = whole && password == sealedMark
		s.AutoLogin = whole && wanted && password == a.Password
		return nil
	})
	if err != nil {
		return s, fmt.Errorf("read the screen of the machine in %s: %w", m.dir, err)
	}
	return s, nil
}

// SessionSince returns when the GUI session started, zero at the login window.
func (m *Machine) SessionSince() (time.Time, error) {
	var c console
	err := m.asRoot(func(v *visit, _ *proc) (err error) {
		c, err = v.console()
		return err
	})
	return c.Since, err
}

// atScreen does what a person in front of the machine does.
func (m *Machine) atScreen(what string, do func(*visit) error) error {
	if err := m.asRoot(func(v *visit, _ *proc) error { return do(v) }); err != nil {
		return fmt.Errorf("%s on the machine in %s: %w", what, m.dir, err)
	}
	return nil
}

// LogIn logs the login user in at the screen, as a person with the password does.
func (m *Machine) LogIn() error {
	return m.atScreen("log in", func(v *visit) error {
		return errors.Join(v.setLoginwindow(true), v.logOut(), v.logIn(v.session.loginUser()))
	})
}

// LogOut ends the GUI session and leaves the login window.
func (m *Machine) LogOut() error {
	return m.atScreen("log out", (*visit).logOut)
}

// StopLoginwindow ends the login window's process, and with it the session. Nothing starts it again.
func (m *Machine) StopLoginwindow() error {
	return m.atScreen("stop loginwindow", func(v *visit) error {
		return errors.Join(v.logOut(), v.setLoginwindow(false))
	})
}

// RestartLoginwindow ends the session and lets loginwindow try the automatic login.
func (m *Machine) RestartLoginwindow() error {
	s, err := m.session()
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.restartLoginwindow(&proc{session: s, user: s.users()[0], dir: "/", umask: 0o022}); err != nil {
		return fmt.Errorf("restart loginwindow on the machine in %s: %w", m.dir, err)
	}
	return nil
}

// SetFileVault encrypts or decrypts the disk. It takes effect at the next login.
func (m *Machine) SetFileVault(on bool) error {
	return m.atScreen("change FileVault", func(v *visit) error { return v.keep(inFirmware("disk"), disk{on}) })
}

// SetAutoLogin enables automatic login of the login user and writes the password where loginwindow
// reads it.
func (m *Machine) SetAutoLogin() error {
	return m.atScreen("set automatic login", func(v *visit) error {
		a, err := v.account()
		if err != nil {
			return err
		}
		return v.setAutoLogin(a.Password)
	})
}

// Seal writes the mark instead of the password, as loginwindow does.
func (m *Machine) Seal() error {
	return m.atScreen("seal /etc/kcpassword", func(v *visit) error { return v.writeKcpassword(sealedKcpassword()) })
}

// kcpasswordBlock is the block size to which macOS itself pads the file.
const kcpasswordBlock = 12

func (v *visit) setAutoLogin(password string) error {
	settings, err := v.readPlist(loginwindowPlist)
	if err != nil {
		return err
	}
	settings[autoLoginUserKey] = v.session.id.User
	return errors.Join(v.writePlist(loginwindowPlist, settings, owner{Mode: 0o644}),
		v.writeKcpassword(newKcpassword(password, kcpasswordBlock)))
}
