package mac

import (
	"errors"
	"io/fs"
	"syscall"
	"time"
)

const (
	sealSwitch    = "sealed-kcpassword"
	respawnSwitch = "loginwindow-after-kill"
	comingSwitch  = "launchctl-session-coming-up"
	comesUp       = 3 * time.Second // how long the domain of a session takes to appear

	sealsFailure = "after-a-failure" // loginwindow seals a password that failed
	sealsAll     = "by-design"       // it moves a correct one elsewhere and seals it too
)

// loginSwitches are the uncertain behaviours of loginwindow and automatic login.
func loginSwitches() []Switch {
	return []Switch{
		{sealSwitch, "when loginwindow writes <sealed> into /etc/kcpassword", []string{sealsFailure, sealsAll}},
		{respawnSwitch, "what launchd does after loginwindow was killed", []string{"nothing", "starts-it"}},
		{comingSwitch, "exit code of launchctl print for a session's domain in its first three seconds", []string{"0", "5", "36"}},
	}
}

// The settings that enable and disable automatic login.
const (
	loginwindowPlist    = "/Library/Preferences/com.apple.loginwindow.plist"
	managedLoginwindow  = "/Library/Managed Preferences/com.apple.loginwindow.plist"
	autoLoginUserKey    = "autoLoginUser"
	disableAutoLoginKey = "com.apple.login.mcx.DisableAutoLoginClient"
)

// keptSecret is a password that loginwindow has moved out of /etc/kcpassword.
type keptSecret struct {
	User     string `json:"user"`
	Password string `json:"password"`
}

// restartLoginwindow does what a boot and a kickstart do: it ends the session with all its processes,
// and loginwindow tries automatic login.
func (s *session) restartLoginwindow(_ *proc) error {
	return s.visit(func(v *visit) error {
		if err := errors.Join(v.logOut(), v.setLoginwindow(true)); err != nil {
			return err
		}
		who, ok, err := v.automaticLogin()
		if err != nil || !ok {
			return err
		}
		return v.logIn(who)
	})
}

// automaticLogin returns the user that loginwindow logs in by itself, if any.
func (v *visit) automaticLogin() (who user, ok bool, err error) {
	if encrypted, err := v.fileVault(); err != nil || encrypted {
		return user{}, false, err
	}
	who, ok = v.autoLoginUser()
	if !ok {
		return user{}, false, nil
	}
	root := &proc{session: v.session, user: v.session.users()[0], dir: "/"}
	data, err := v.read(root, kcpasswordFile)
	if missing(err) || errors.Is(err, syscall.EISDIR) {
		return user{}, false, nil
	}
	if err != nil {
		return user{}, false, err
	}
	password, whole := openKcpassword(data)
	if whole && password == sealedMark {
		return v.sealedLogin(who)
	}
	if !whole {
		password += "\x00" // a wrong one: no password contains this byte
	}
	return v.tryLogin(who, password)
}

// autoLoginUser returns the user of automatic login.
func (v *visit) autoLoginUser() (user, bool) {
	settings, err := v.readPlist(loginwindowPlist)
	if err != nil {
		return user{}, false // cfprefsd treats a damaged file as a domain without keys
	}
	managed, err := v.readPlist(managedLoginwindow)
	if err != nil {
		managed = nil
	}
	if settings[disableAutoLoginKey] == true || managed[disableAutoLoginKey] == true {
		return user{}, false
	}
	name, _ := settings[autoLoginUserKey].(string)
	who, ok := v.session.user(name)
	return who, ok && who.uid == loginUID
}

// tryLogin tries a password from the file. A wrong one is replaced by the mark.
func (v *visit) tryLogin(who user, password string) (user, bool, error) {
	ok, err := v.authenticate("loginwindow", who, password)
	if err != nil {
		return user{}, false, err
	}
	kept := keptSecret{}
	if ok {
		if v.switched(sealSwitch) != sealsAll {
			return who, true, nil
		}
		kept = keptSecret{who.name, password}
	}
	return who, ok, errors.Join(v.keep(inFirmware("autologin"), kept), v.writeKcpassword(sealedKcpassword()))
}

// sealedLogin handles a sealed file: it has no password unless loginwindow has moved one elsewhere.
func (v *visit) sealedLogin(who user) (user, bool, error) {
	var kept keptSecret
	if err := v.recall(inFirmware("autologin"), &kept); err != nil {
		return user{}, false, err
	}
	if v.switched(sealSwitch) != sealsAll || kept.User != who.name {
		return user{}, false, nil
	}
	return v.tryLogin(who, kept.Password)
}

func (v *visit) writeKcpassword(data []byte) error {
	n, err := v.resolve(v.session.users()[0], "/", kcpasswordFile, true)
	if err != nil {
		return err
	}
	return v.replace(n, data, owner{Mode: fs.FileMode(0o600)})
}
