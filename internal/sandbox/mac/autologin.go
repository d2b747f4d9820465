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
	comesUp       = 3 * time.Second // how long a session's domain is coming up

	sealsFailure = "after-a-failure" // loginwindow seals a password that did not let it in
	sealsAll     = "by-design"       // it moves a right one elsewhere and seals it too
)

// loginSwitches are the doubts about loginwindow and automatic login.
func loginSwitches() []Switch {
	return []Switch{
		{sealSwitch, "when loginwindow puts <sealed> into /etc/kcpassword", []string{sealsFailure, sealsAll}},
		{respawnSwitch, "what launchd does when loginwindow was killed", []string{"nothing", "starts-it"}},
		{comingSwitch, "how launchctl print ends for a session's domain in its first three seconds", []string{"0", "5", "36"}},
	}
}

// Where automatic login is asked for and forbidden.
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

// restartLoginwindow is what a boot and a kick do: the present session dies with everything in it,
// and loginwindow tries the automatic login.
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

// automaticLogin gives whom loginwindow logs in on its own, if anyone.
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
		password += "\x00" // nobody's: no password holds this byte
	}
	return v.tryLogin(who, password)
}

// autoLoginUser gives who should be logged in without anyone at the keys.
func (v *visit) autoLoginUser() (user, bool) {
	settings, err := v.readPlist(loginwindowPlist)
	if err != nil {
		return user{}, false // a damaged file is to cfprefsd a domain without keys
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

// tryLogin tries a password out of the file. One that does not fit is replaced by the mark.
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

// sealedLogin meets a sealed file: there is nothing to try unless the password was moved elsewhere.
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
