package mac

import "time"

// console is the session at the screen: loginwindow's alone (nobody's), or a user's Aqua session.
type console struct {
	User  string    `json:"user"`  // "" = the login window
	Since time.Time `json:"since"` // when the session started
}

// console gives who is logged in at the screen.
func (v *visit) console() (console, error) {
	var c console
	err := v.recall(inMemory("console"), &c)
	return c, err
}

func (v *visit) setConsole(c console) error { return v.keep(inMemory("console"), c) }

// consoleUser is who owns the screen: root where nobody is logged in.
func (v *visit) consoleUser() (user, error) {
	c, err := v.console()
	if who, ok := v.session.user(c.User); ok {
		return who, err
	}
	return v.session.users()[0], err
}

// loginwindow is the process that shows the login window and carries the session.
type loginwindow struct {
	Gone bool `json:"gone"` // it has exited, and launchd did not start it again
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

// logIn begins a user's session at the screen.
func (v *visit) logIn(who user) error {
	if err := v.setConsole(console{User: who.name, Since: v.session.now().UTC()}); err != nil {
		return err
	}
	return v.startAgents(who)
}

// logOut ends the session at the screen with everything in it.
func (v *visit) logOut() error {
	c, err := v.console()
	if err != nil || c.User == "" {
		return err
	}
	if who, ok := v.session.user(c.User); ok {
		if err := v.endGuests(func(g guest) bool { return g.UID == who.uid && !g.Told }); err != nil {
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
	// A kubelet tells the cluster that it can start no virtual machine any more.
	return v.changeLaunchd(func(*manager, time.Time) error { return nil })
}

// disk is what is known of the disk before it is mounted.
type disk struct {
	FileVault bool `json:"filevault"`
}

// fileVault reports whether the disk is encrypted, which rules automatic login out.
func (v *visit) fileVault() (bool, error) {
	var d disk
	err := v.recall(inFirmware("disk"), &d)
	return d.FileVault, err
}
