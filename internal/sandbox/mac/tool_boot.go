package mac

import (
	"fmt"
	"path"
	"strings"
	"time"
)

func shutdown(p *proc) int {
	switch {
	case p.user.uid != 0:
		return p.fail(exitFailed, "NOT super-user")
	case strings.Join(p.args(), " ") != "-r now" && strings.Join(p.args(), " ") != "-r +0":
		return p.unmodelled(strings.Join(p.args(), " "))
	}
	p.printf("Shutdown NOW!\n")
	return p.goDown()
}

func reboot(p *proc) int {
	switch {
	case p.user.uid != 0:
		return p.fail(exitFailed, "Operation not permitted")
	case len(p.args()) > 0:
		return p.unmodelled(strings.Join(p.args(), " "))
	}
	return p.goDown()
}

// goDown restarts the machine. All processes end, the one that requested it included.
func (p *proc) goDown() int {
	// It takes a second at least: what was written in the second of the boot may be older or newer than it.
	if err := p.visit(func(v *visit) error { return v.haltFor(time.Second) }); err != nil {
		return p.fail(exitFailed, "%s", err)
	}
	p.session.machine.power.cut()
	<-p.ctx.Done()
	return exitTerminated
}

func uptime(p *proc) int {
	if len(p.args()) > 0 {
		return p.usage("uptime")
	}
	now := p.shown()
	users := 0
	err := p.visit(func(v *visit) error {
		at, err := v.console()
		users = count(at.User != "")
		return err
	})
	if err != nil {
		return p.fail(exitFailed, "%s", err)
	}
	plural := "s"
	if users == 1 {
		plural = ""
	}
	p.printf("%s  up %s, %d user%s, load averages: 1.21 1.32 1.40\n", now.Local().Format("15:04"), upFor(now.Sub(p.session.booted())), users, plural)
	return 0
}

// upFor formats how long a machine has run as uptime does.
func upFor(d time.Duration) string {
	minutes := max(0, int(d.Minutes()))
	days, hours := minutes/1440, minutes/60%24
	minutes %= 60
	var parts []string
	if days > 0 {
		parts = append(parts, fmt.Sprintf("%d day%s", days, map[bool]string{true: "s"}[days > 1]))
	}
	switch {
	case hours > 0 && minutes > 0:
		parts = append(parts, fmt.Sprintf("%d:%02d", hours, minutes))
	case hours > 0:
		parts = append(parts, fmt.Sprintf("%d hr%s", hours, map[bool]string{true: "s"}[hours > 1]))
	case minutes > 0:
		parts = append(parts, fmt.Sprintf("%d min%s", minutes, map[bool]string{true: "s"}[minutes > 1]))
	case days == 0:
		parts = append(parts, fmt.Sprintf("%d secs", max(0, int(d.Seconds()))))
	}
	return strings.Join(parts, ", ")
}

// sfltool prints the background items' database: a record for each job of /Library.
func sfltool(p *proc) int {
	switch args := strings.Join(p.args(), " "); {
	case args == "resetbtm" && p.user.uid != 0:
		return p.fail(exitFailed, "resetbtm requires root")
	case args == "resetbtm":
		if err := p.visit((*visit).resetItems); err != nil {
			return p.fail(exitFailed, "%s", why(err))
		}
		p.printf("Database reset.\n")
		return 0
	case args != "dumpbtm":
		return p.unmodelled(args)
	}
	err := p.visit(func(v *visit) error {
		if v.brokenItems() {
			return fmt.Errorf("backgroundtaskmanagementd does not answer")
		}
		p.printf("========================\n Records for UID -2 : FFFFEEEE-DDDD-CCCC-BBBB-AAAAFFFFFFFE\n========================\n\n Items:\n\n")
		n := 0
		for _, folder := range []string{"/Library/LaunchDaemons", "/Library/LaunchAgents"} {
			entries, err := v.entries(folder)
			if err != nil {
				return err
			}
			for _, entry := range entries {
				name := entry.Name()
				about, _, err := v.describeFile(v.session.users()[0], folder+"/"+name)
				if path.Ext(name) != ".plist" || err != nil {
					continue
				}
				off, err := v.disallowed(about.Label)
				if err != nil {
					return err
				}
				n++
				p.printf("%s", record(n, folder+"/"+name, about, off, v.generation(about.Label)))
			}
		}
		return nil
	})
	if err != nil {
		return p.fail(exitFailed, "%s", why(err))
	}
	return 0
}

func record(n int, file string, about description, off bool, generation int) string {
	disposition := "[enabled, allowed, notified] (0xb)"
	if off {
		disposition = "[enabled, disallowed, notified] (0x9)"
	}
	kind, number := "daemon", "0x10010"
	if strings.Contains(file, "Agents") {
		kind, number = "agent", "0x10008"
	}
	return fmt.Sprintf(` #%d:
                 UUID: 00000000-0000-4000-8000-%012d
                 Name: %s
       Developer Name: (null)
                 Type: legacy %s (%s)
          Disposition: %s
           Identifier: %s
                  URL: file://%s
      Executable Path: %s
           Generation: %d
    Parent Identifier: Unknown Developer

`, n, n, path.Base(about.Program), kind, number, disposition, about.Label, file, about.Program, generation)
}
