package mac

import (
	"errors"
	"io"
	"path"
	"strconv"
	"time"
)

// launchctlCall is a call of launchctl for a domain or a service.
type launchctlCall struct {
	*proc
	args []string
}

func launchctl(p *proc) int {
	if len(p.args()) == 0 {
		return p.usage("launchctl <subcommand> ...")
	}
	c := launchctlCall{p, p.argv[2:]}
	switch p.argv[1] {
	case "bootstrap":
		return c.bootstrap()
	case "bootout":
		return c.bootout()
	case "kickstart":
		return c.kickstart()
	case "kill":
		return c.kill()
	case "print":
		return c.print()
	case "print-disabled":
		return c.printDisabled()
	case "enable", "disable":
		return c.enable(p.argv[1] == "disable")
	case "list":
		return c.list()
	case "error":
		return c.explain()
	case "load", "unload":
		return c.legacy(p.argv[1] == "load")
	}
	return p.unmodelled(p.argv[1])
}

// say prints a message to the standard error without the tool's name, as launchctl does.
func (c launchctlCall) say(text string) { _, _ = io.WriteString(c.stderr, text+"\n") }

// refuse ends the tool with launchd's number, or with a fault of the simulation itself.
func (c launchctlCall) refuse(what string, err error) int {
	var code launchCode
	if !errors.As(err, &code) {
		return c.fail(exitUnmodelled, "%s", err)
	}
	c.say(what + ": " + code.Error())
	return int(code)
}

// malformed is launchctl's message for an invalid argument.
func (c launchctlCall) malformed(name string) int {
	c.say("Unrecognized target specifier, did you mean\n\tsystem/" + name)
	return exitUnmodelled
}

// enter finds the domain and checks that it exists and is writable.
func (c launchctlCall) enter(v *visit, d domain) error {
	there, err := v.inSession(d)
	switch {
	case err != nil:
		return err
	case !d.writable(c.user):
		return launchCode(1)
	case !there:
		return launchCode(v.codeSwitched(noSessionSwitch))
	}
	return nil
}

// change lets f change the jobs of a domain; the changes are also kept after a launchCode.
func (c launchctlCall) change(d domain, f func(*visit, *manager, time.Time) error) error {
	var refused error
	err := c.visit(func(v *visit) error {
		if refused = c.enter(v, d); refused != nil {
			return nil
		}
		return v.changeLaunchd(func(m *manager, now time.Time) error {
			refused = f(v, m, now)
			return nil
		})
	})
	if err != nil {
		return err
	}
	return refused
}

// due starts what the call made due. In a job's own call, the caller of the job does that.
func (c launchctlCall) due() error {
	if c.under != nil {
		return nil
	}
	return c.session.runDue(c.ctx)
}

func (c launchctlCall) bootstrap() int {
	if len(c.args) != 2 {
		return c.usage("launchctl bootstrap <domain-target> [service-path, service-path2, ...]")
	}
	d, label, ok := splitTarget(c.args[0])
	if !ok || label != "" {
		return c.malformed(c.args[0])
	}
	lacking := ""
	err := c.change(d, func(v *visit, m *manager, now time.Time) error {
		file := c.absolute(c.args[1])
		if n, err := v.find(c.user, "/", file, true); err == nil && v.tooFresh(m, n) {
			return launchCode(5)
		}
		j, err := v.load(m, now, d, file)
		if j != nil && j.About.Lacking != "" {
			lacking = j.About.Lacking
			delete(m.Jobs, j.target())
		}
		if err == nil && j != nil {
			err = v.registered(j.About.Label)
		}
		return err
	})
	if lacking != "" {
		return c.fail(exitUnmodelled, "not modelled: %s", lacking)
	}
	if err == nil {
		err = c.due()
	}
	if err == nil {
		return 0
	}
	if errors.Is(err, launchCode(1)) {
		err = launchCode(5) // launchd gives no reason
	}
	status := c.refuse("Bootstrap failed", err)
	if status == 5 && c.user.uid != 0 {
		c.say("Try re-running the command as root for richer errors.")
	}
	return status
}

func (c launchctlCall) absolute(name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(c.dir, name)
}

// bootout removes a job by its label, or by a domain and the file it was loaded from; for a job that
// is not loaded, the two have different results.
func (c launchctlCall) bootout() int {
	if len(c.args) == 0 || len(c.args) > 2 {
		return c.usage("launchctl bootout <domain-target | service-target> [service-path, service-path2, ...]")
	}
	d, label, ok := splitTarget(c.args[0])
	switch {
	case !ok || label != "" && len(c.args) > 1:
		return c.malformed(c.args[0])
	case label == "" && len(c.args) == 1:
		return c.unmodelled("bootout of a whole domain")
	}
	err := c.change(d, func(v *visit, m *manager, now time.Time) error {
		if label != "" {
			return v.unload(m, now, d, label)
		}
		return v.unloadFile(m, now, d, c.absolute(c.args[1]))
	})
	c.endItself(d, label)
	if err != nil {
		return c.refuse("Boot-out failed", err)
	}
	return 0
}

// endItself ends a job that booted out or replaced itself: it does not live to see the result.
func (c launchctlCall) endItself(d domain, label string) {
	if c.under != nil && c.under.target == d.String()+"/"+label {
		c.under.stop()
	}
}

// unloadFile boots out the job of a file.
func (v *visit) unloadFile(m *manager, now time.Time, d domain, name string) error {
	label, ok := stockPath(name)
	if !ok {
		for _, j := range m.Jobs {
			if j.Path == name && j.Domain == d.String() {
				label = j.About.Label
			}
		}
	}
	if about, _, err := v.describeFile(v.session.users()[0], name); err == nil && label == "" {
		label = about.Label
	}
	err := v.unload(m, now, d, label)
	if errors.Is(err, launchCode(3)) {
		return launchCode(5)
	}
	return err
}

func (c launchctlCall) kickstart() int {
	o, operands, status, ok := c.child(append([]string{"launchctl"}, c.args...)).options("kp")
	if !ok {
		return status
	}
	if len(operands) != 1 {
		return c.usage("launchctl kickstart [-k] [-p] <service-target>")
	}
	d, label, ok := splitTarget(operands[0])
	if !ok || label == "" {
		return c.malformed(operands[0])
	}
	loginwindow := false
	err := c.change(d, func(v *visit, m *manager, now time.Time) error {
		err := v.kick(m, now, d, label, o.has('k'))
		if loginwindow = err == nil && d.kind == "system" && label == loginwindowLabel; loginwindow {
			alive, failed := v.loginwindowAlive()
			if loginwindow = failed == nil && (o.has('k') || !alive); loginwindow {
				m.Login = m.newPID()
			}
			return failed
		}
		return err
	})
	if err == nil && o.has('k') {
		c.endItself(d, label)
	}
	if err == nil && loginwindow {
		err = c.session.restartLoginwindow(c.proc)
	}
	if err == nil {
		err = c.due()
	}
	switch {
	case errors.Is(err, launchCode(113)):
		c.say(`Could not find service "` + label + `" in domain for ` + d.words())
		return 113
	case err != nil:
		return c.refuse(`Could not kickstart service "`+label+`"`, err)
	case o.has('p'):
		return c.showPID(d, label)
	}
	return 0
}

// kill sends a signal to the process of a job. Only SIGTERM to GitHub's runner is modelled, whose runsvc.sh then ends its listener;
// launchd does not count the time.
func (c launchctlCall) kill() int {
	if len(c.args) != 2 {
		return c.usage("launchctl kill <signal-number|signal-name> <service-target>")
	}
	d, label, ok := splitTarget(c.args[1])
	if !ok || label == "" {
		return c.malformed(c.args[1])
	}
	other := c.args[0] != "SIGTERM"
	err := c.change(d, func(v *visit, m *manager, now time.Time) error {
		j, ok := m.Jobs[d.String()+"/"+label]
		switch {
		case !ok:
			return launchCode(113)
		case j.PID == 0:
			return launchCode(3)
		case j.Runner == nil || other:
			other = true
			return nil
		}
		j.Ends, j.Exit = now.Add(stopsIdle), ending{}
		j.plan(false, now)
		return nil
	})
	switch {
	case err != nil:
		return c.refuse(`Could not signal service "`+label+`"`, err)
	case other:
		return c.unmodelled("kill " + c.args[0] + " " + label)
	}
	return 0
}

func (c launchctlCall) showPID(d domain, label string) int {
	err := c.visit(func(v *visit) error {
		m, _, err := v.launchd()
		if err != nil {
			return err
		}
		j, err := v.service(m, d, label)
		if err == nil {
			c.printf("%d\n", j.PID)
		}
		return err
	})
	if err != nil {
		return c.refuse(`Could not kickstart service "`+label+`"`, err)
	}
	return 0
}

// enable is enable and disable: their effect outlives restarts and the job's file.
func (c launchctlCall) enable(off bool) int {
	verb := map[bool]string{false: "enable", true: "disable"}[off]
	if len(c.args) != 1 {
		return c.usage("launchctl " + verb + " <service-target>")
	}
	d, label, ok := splitTarget(c.args[0])
	if !ok || label == "" {
		return c.malformed(c.args[0])
	}
	err := c.visit(func(v *visit) error {
		if !d.writable(c.user) {
			return launchCode(1)
		}
		return v.override(d, label, off)
	})
	if err != nil {
		return c.refuse("Could not "+verb+" service", err)
	}
	return 0
}

func (c launchctlCall) explain() int {
	if len(c.args) != 1 {
		return c.usage("launchctl error [posix|mach|bootstrap] <code>")
	}
	code, err := strconv.ParseInt(c.args[0], 0, 32)
	if err != nil {
		return c.unmodelled("error " + c.args[0])
	}
	c.printf("%s\n", launchCode(code).Error())
	return 0
}
