package mac

import "time"

// console is the session at the screen: loginwindow's alone (nobody's), or a user's Aqua session.
type console struct {
	User  string    `json:"user"`  // "" = the login window
	Since time.Time `json:"since"` // when the session began
}

// console gives who is logged in at the screen.
func (v *visit) console() (console, error) {
	var c console
	err := v.recall(inMemory("console"), &c)
	return c, err
}

func (v *visit) setConsole(c console) error { return v.keep(inMemory("console"), c) }

// loginSwitches are the doubts about loginwindow and automatic login.
func loginSwitches() []Switch { return nil }

// restartLoginwindow is what a boot and a kick do: the present session dies with everything in it,
// and loginwindow tries the automatic login.
func (s *session) restartLoginwindow(p *proc) error { return nil }

// loginwindowAlive reports whether the process lives that lets people in at the screen.
func (v *visit) loginwindowAlive() (bool, error) { return true, nil }
