package mac

import "strings"

// sysadminctl says everything on its standard error, and its exit status tells nothing.
func sysadminctl(p *proc) int {
	args := p.args()
	if len(args) < 2 {
		return p.unmodelled(joined(args))
	}
	switch args[0] + " " + args[1] {
	case "-autologin status":
		return p.autoLoginStatus()
	case "-autologin off":
		return p.changeAutoLogin((*visit).unsetAutoLogin)
	case "-autologin set":
		return p.autoLoginSet(args[2:])
	case "-screenLock status":
		p.noteLog("screenLock is off")
		return 0
	}
	if args[0] == "-secureTokenStatus" && len(args) == 2 {
		state := "DISABLED"
		if who, ok := p.session.user(args[1]); ok && who.uid == loginUID {
			state = "ENABLED"
		}
		p.noteLog("Secure token is %s for user %s", state, args[1])
		return 0
	}
	return p.unmodelled(args[0] + " " + args[1]) // the rest may hold a password
}

func (p *proc) autoLoginStatus() int {
	name := ""
	err := p.visit(func(v *visit) error {
		settings, err := v.readPlist(loginwindowPlist)
		name, _ = settings[autoLoginUserKey].(string)
		return err
	})
	if err != nil || name == "" {
		p.noteLog("Automatic login is OFF.")
	} else {
		p.noteLog("Automatic login user: %s", name)
	}
	return 0
}

func (p *proc) autoLoginSet(args []string) int {
	if len(args) != 4 || args[0] != "-userName" || args[2] != "-password" {
		return p.unmodelled("-autologin set with other options than -userName and -password")
	}
	who, ok := p.session.user(args[1])
	if !ok || who.uid != loginUID {
		return p.unmodelled("-autologin set for " + args[1])
	}
	password := args[3]
	if password == "-" {
		line, err := p.line()
		if err != nil && line == "" {
			return p.unmodelled("-password - without any input")
		}
		password = strings.TrimSuffix(line, "\r")
	}
	return p.changeAutoLogin(func(v *visit) error {
		right, err := v.authenticate("sysadminctl", who, password)
		if err != nil || !right {
			p.noteLog("Authentication failed for user %s", who.name)
			return err
		}
		return v.setAutoLogin(password)
	})
}

// changeAutoLogin does what works within a session alone: over SSH to a Mac at the login window it
// fails exactly when it is needed.
func (p *proc) changeAutoLogin(change func(*visit) error) int {
	if p.user.uid != 0 {
		return p.unmodelled("-autologin as another user than root")
	}
	err := p.visit(func(v *visit) error {
		c, err := v.console()
		if err == nil && c.User == "" {
			p.noteLog("SACSetAutoLoginPassword error:22")
			return nil
		}
		if err == nil {
			err = change(v)
		}
		return err
	})
	if err != nil {
		return p.fail(exitFailed, "%s", why(err))
	}
	return 0
}
