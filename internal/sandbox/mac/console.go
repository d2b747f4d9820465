package mac

import "time"

// console is the session at the screen: the login window, or a user's Aqua session.
type console struct {
	User  string    `json:"user"`  // "" = the login window
	Since time.Time `json:"since"` // when the session started
}

// console returns the session at the screen.
func (v *visit) console() (console, error) {
	var c console
	err := v.recall(inMemory("console"), &c)
	return c, err
}

func (v *visit) setConsole(c console) error { return v.keep(inMemory("console"), c) }

// consoleUser returns the owner of the screen: root if no user is logged in.
func (v *visit) consoleUser() (user, error) {
	c, err := v.console()
	if who, ok := v.session.user(c.User); ok {
		return who, err
	}
	return v.session.users()[0], err
}

// loginwindow is the process that shows the login window and runs the session.
type loginwindow struct {
	Gone bool `json:"gone"` // it has exited, and launchd did not restart it
}

// loginwindowAlive reports whether the process runs. After a boot it does.
func (v *visit) loginwindowAlive() (bool, error) {
	var w loginwindow
	err := v.recall(inMemory("loginwindow"), &w)
	return !w.Gone, err
}

func (v *visit) setLoginwindow(alive bool) error {
	return v.keep(inMemory("loginwindow"), loginwindow{Gone: !alive})
}

// logIn starts a user's session at the screen.
func (v *visit) logIn(who user) error {
	if err := v.setConsole(console{User: who.name, Since: v.session.now().UTC()}); err != nil {
		return err
	}
	return v.startAgents(who)
}

// logOut ends the session at the screen with all its processes.
func (v *visit) logOut() error {
	c, err := v.console()
	if err != nil || c.User == "" {
		return err
	}
	if who, ok := v.session.user(c.User); ok {
		if err := v.endGuests(func(g guest) bool { return g.UID == who.uid && !g.ResultRead }); err != nil {
			return err
		}
		if err := v.endSession(who.uid); err != nil {
			return err
		}
	}
	if err := v.setConsole(console{}); err != nil {
		return err
	}
	if held, err := v.session.machine.pending(); held == nil || err != nil {
		return err
	}
	// A kubelet reports to the cluster that it cannot start virtual machines any more.
	return v.changeLaunchd(func(*manager, time.Time) error { return nil })
}

// disk is what is known about the disk before it is mounted.
type disk struct {
	FileVault bool `json:"filevault"`
}

// fileVault reports whether the disk is encrypted, which prevents automatic login.
func (v *visit) fileVault() (bool, error) {
	var d disk
	err := v.recall(inFirmware("disk"), &d)
	return d.FileVault, err
}
