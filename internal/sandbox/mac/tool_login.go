package mac

import (
	"io"
	"strings"
	"time"
)

// who lists sessions with a terminal or the screen; a command over SSH has neither.
func who(p *proc) int {
	if len(p.args()) > 0 {
		return p.unmodelled(joined(p.args()))
	}
	return p.atConsole(func(c console) {
		p.printf("%-16s %-12s %s \n", c.User, "console", c.Since.Local().Format("Jan _2 15:04"))
	})
}

// atConsole calls show with the GUI session, if there is one.
func (p *proc) atConsole(show func(console)) int {
	var c console
	err := p.visit(func(v *visit) (err error) {
		c, err = v.console()
		return err
	})
	if err != nil {
		return p.fail(exitFailed, "%s", why(err))
	}
	if c.User != "" {
		show(c)
	}
	return 0
}

func killall(p *proc) int {
	args := p.args()
	if len(args) > 1 {
		switch args[0] {
		case "-HUP", "-1", "-TERM", "-15", "-KILL", "-9":
			args = args[1:]
		}
	}
	if len(args) != 1 || args[0] != "loginwindow" {
		return p.unmodelled(joined(p.args()))
	}
	alive, again := false, false
	err := p.visit(func(v *visit) (err error) {
		if alive, err = v.loginwindowAlive(); err != nil || !alive || p.user.uid != 0 {
			return err
		}
		// Its session ends with it, and launchd does not restart it.
		if err := v.logOut(); err != nil {
			return err
		}
		if again = v.switched(respawnSwitch) == "starts-it"; again {
			return v.changeLaunchd(func(m *manager, _ time.Time) error {
				m.Login = m.newPID()
				return nil
			})
		}
		return v.setLoginwindow(false)
	})
	if err == nil && again {
		err = p.session.restartLoginwindow(p)
	}
	switch {
	case err != nil:
		return p.fail(exitFailed, "%s", why(err))
	case !alive:
		_, _ = io.WriteString(p.stderr, "No matching processes were found\n")
		return exitFailed
	case p.user.uid != 0:
		_, _ = io.WriteString(p.stderr, "No matching processes belonging to you were found\n")
		return exitFailed
	}
	return 0
}

func fdesetup(p *proc) int {
	if joined(p.args()) != "status" {
		return p.unmodelled(joined(p.args()))
	}
	state := "Off"
	err := p.visit(func(v *visit) error {
		on, err := v.fileVault()
		if on {
			state = "On"
		}
		return err
	})
	if err != nil {
		return p.fail(exitFailed, "%s", why(err))
	}
	p.printf("FileVault is %s.\n", state)
	return 0
}

// dynamicStore answers scutil's commands on its standard input.
func (p *proc) dynamicStore() int {
	text, err := io.ReadAll(p.input())
	if err != nil {
		return p.fail(exitFailed, "%s", why(err))
	}
	for line := range strings.Lines(string(text)) {
		switch words := strings.Fields(line); {
		case len(words) == 0 || words[0] == "open" || words[0] == "close":
		case words[0] == "quit" || words[0] == "exit":
			return 0
		case len(words) == 2 && words[0] == "show" && words[1] == "State:/Users/ConsoleUser":
			if status := p.showConsoleUser(); status != 0 {
				return status
			}
		default:
			return p.unmodelled(joined(words))
		}
	}
	return 0
}

// showConsoleUser prints the user at the screen. The login window has its own name there.
func (p *proc) showConsoleUser() int {
	var owner user
	alive := false
	err := p.visit(func(v *visit) (err error) {
		if owner, err = v.consoleUser(); err == nil {
			alive, err = v.loginwindowAlive()
		}
		return err
	})
	switch {
	case err != nil:
		return p.fail(exitFailed, "%s", why(err))
	case !alive:
		p.printf("  No such key\n")
		return 0
	}
	name, done := owner.name, "TRUE"
	if owner.uid == 0 {
		name, done = "loginwindow", "FALSE"
	}
	p.printf(`<dictionary> {
  GID : %d
  Name : %s
  SessionInfo : <array> {
    0 : <dictionary> {
      kCGSSessionOnConsoleKey : TRUE
      kCGSSessionUserIDKey : %d
      kCGSSessionUserNameKey : %s
      kCGSessionLoginDoneKey : %s
    }
  }
  UID : %d
}
`, owner.groups[0], name, owner.uid, owner.name, done, owner.uid)
	return 0
}
