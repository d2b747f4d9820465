package mac

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// print shows a domain or a service. Apple does not guarantee the format, but many programs read it.
func (c launchctlCall) print() int {
	if len(c.args) != 1 {
		return c.usage("launchctl print <domain-target> | <service-target>")
	}
	d, label, ok := splitTarget(c.args[0])
	if !ok {
		return c.malformed(c.args[0])
	}
	bad := false
	err := c.visit(func(v *visit) error {
		bad = v.switched(badRequestSwitch) == "yes"
		there, err := v.inSession(d)
		if err != nil {
			return err
		}
		if !there {
			return noDomain(v.codeSwitched(noSessionSwitch))
		}
		if at, err := v.console(); err != nil {
			return err
		} else if code := v.codeSwitched(comingSwitch); code != 0 && d.kind == "gui" && v.session.before(at.Since.Add(comesUp)) {
			return launchCode(code)
		}
		m, _, err := v.launchd()
		if err != nil {
			return err
		}
		if label == "" {
			return c.printDomain(v, m, d)
		}
		j, err := v.service(m, d, label)
		if err == nil {
			c.printf("%s", j.page())
		}
		return err
	})
	if err == nil {
		return 0
	}
	return c.refusePrint(d, label, bad, err)
}

// noDomain is a missing domain, with launchctl's number for it.
type noDomain launchCode

// Error returns launchctl's text for the number.
func (n noDomain) Error() string { return launchCode(n).Error() }

func (c launchctlCall) refusePrint(d domain, label string, bad bool, err error) int {
	what := "domain"
	if label != "" {
		what = "service"
	}
	var none noDomain
	switch {
	case errors.As(err, &none) && none == 125:
		c.say("Could not print " + what + ": " + none.Error())
		return int(none)
	case errors.As(err, &none) && (none == 112 || label == ""):
		c.badRequest(bad)
		c.say("Could not find domain for " + d.words())
		return int(none)
	case errors.As(err, &none) || errors.Is(err, launchCode(113)):
		c.badRequest(bad)
		c.say(`Could not find service "` + label + `" in domain for ` + d.words())
		return 113
	}
	return c.refuse("Could not print "+what, err)
}

// badRequest is the first line in recent releases.
func (c launchctlCall) badRequest(shown bool) {
	if shown {
		c.say("Bad request.")
	}
}

func (c launchctlCall) printDomain(v *visit, m *manager, d domain) error {
	all, err := v.jobs(m, d.String())
	if err != nil {
		return err
	}
	active := 0
	for _, j := range all {
		if j.PID != 0 {
			active++
		}
	}
	kind, session, creator := "system", "", "launchd[1]"
	switch d.kind {
	case "user":
		kind, session = "user", "Background"
	case "gui":
		window, err := v.service(m, domain{kind: "system"}, loginwindowLabel)
		if err != nil {
			return err
		}
		kind, session, creator = "login", "Aqua", "loginwindow["+strconv.Itoa(window.PID)+"]"
	}
	c.printf("%s = {\n\ttype = %s\n\thandle = %d\n\tactive count = %d\n\tservice count = %d\n\tcreator = %s\n", d, kind, d.handle(), active, len(all), creator)
	if session != "" {
		c.printf("\tsession = %s\n", session)
	}
	c.printf("\n\tservices = {\n")
	for _, j := range all {
		c.printf("\t\t%8s %6s \t%s\n", j.pidOr("0"), statusOr(j), j.About.Label)
	}
	c.printf("\t}\n}\n")
	return nil
}

func statusOr(j *job) string {
	if j.Last == nil {
		return "-"
	}
	return strconv.Itoa(j.status())
}

// handle returns the number of a domain's security session.
func (d domain) handle() int {
	switch d.kind {
	case "gui":
		return 100_000 + d.uid
	case "user":
		return d.uid
	}
	return 0
}

// page formats a job for print.
func (j *job) page() string {
	var b strings.Builder
	line := func(key string, value any) { fmt.Fprintf(&b, "\t%s = %v\n", key, value) }
	gap := func() { b.WriteByte('\n') }
	running := j.PID != 0
	fmt.Fprintf(&b, "%s = {\n", j.target())
	line("active count", count(running))
	line("path", j.Path)
	line("type", map[bool]string{true: "LaunchDaemon", false: "LaunchAgent"}[j.Domain == "system"])
	line("state", j.state())
	gap()
	line("program", j.About.Program)
	j.lists(&b)
	gap()
	line("domain", j.Domain)
	if j.About.User != "" {
		line("username", j.About.User)
	}
	line("minimum runtime", int(j.About.Throttle.Seconds()))
	line("exit timeout", int(j.About.ExitWithin.Seconds()))
	if j.About.Interval > 0 {
		line("run interval", fmt.Sprintf("%d seconds", int(j.About.Interval.Seconds())))
	}
	line("runs", j.Runs)
	if running {
		line("pid", j.PID)
		line("immediate reason", "speculative")
	}
	line("forks", 0)
	line("execs", count(running))
	line(j.lastExit())
	gap()
	line("spawn type", "daemon (3)")
	line("jetsam priority", 40)
	if running || j.Last != nil {
		line("job state", map[bool]string{true: "running", false: "exited"}[running])
	}
	line("properties", strings.Join(j.properties(), " | "))
	b.WriteString("}\n")
	return b.String()
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// lists are the parts of the page with several lines.
func (j *job) lists(b *strings.Builder) {
	b.WriteString("\targuments = {\n")
	for _, arg := range j.About.Args {
		b.WriteString("\t\t" + arg + "\n")
	}
	b.WriteString("\t}\n\n")
	if j.About.Dir != "" {
		b.WriteString("\tworking directory = " + j.About.Dir + "\n\n")
	}
	for _, stream := range []struct{ name, path string }{{"stdout", j.About.Stdout}, {"stderr", j.About.Stderr}} {
		if stream.path != "" {
			b.WriteString("\t" + stream.name + " path = " + stream.path + "\n")
		}
	}
	b.WriteString("\tdefault environment = {\n\t\tPATH => " + defaultPath + "\n\t}\n\n\tenvironment = {\n")
	for _, name := range slices.Sorted(maps.Keys(j.About.Env)) {
		b.WriteString("\t\t" + name + " => " + j.About.Env[name] + "\n")
	}
	b.WriteString("\t\tXPC_SERVICE_NAME => " + j.About.Label + "\n\t}\n")
}

// lastExit is the line about the exit of the previous process.
func (j *job) lastExit() (key string, value any) {
	switch {
	case j.Last == nil:
		return "last exit code", "(never exited)"
	case j.Last.Reason != "":
		return "last exit reason", j.Last.Reason
	case j.Last.Signal != 0:
		name, ok := map[int]string{1: "Hangup", 2: "Interrupt", 6: "Abort trap", 9: "Killed", 11: "Segmentation fault", 15: "Terminated"}[j.Last.Signal]
		if !ok {
			name = "Unknown signal"
		}
		return "last terminating signal", fmt.Sprintf("%s: %d", name, j.Last.Signal)
	case j.Last.Code == exitConfig:
		return "last exit code", "78: EX_CONFIG"
	}
	return "last exit code", j.Last.Code
}

func (j *job) properties() []string {
	var all []string
	if j.About.Keep.set() {
		all = append(all, "keepalive")
	}
	if j.About.RunAtLoad {
		all = append(all, "runatload")
	}
	if j.About.Inferred {
		all = append(all, "inferred program")
	}
	if j.Outdated {
		all = append(all, "needs LWCR update")
	}
	return append(all, "managed LWCR", "has LWCR")
}

func (c launchctlCall) printDisabled() int {
	if len(c.args) != 1 {
		return c.usage("launchctl print-disabled <domain-target>")
	}
	d, label, ok := splitTarget(c.args[0])
	if !ok || label != "" {
		return c.malformed(c.args[0])
	}
	err := c.visit(func(v *visit) error {
		there, err := v.inSession(d)
		if err != nil {
			return err
		}
		if !there {
			return noDomain(v.codeSwitched(noSessionSwitch))
		}
		values, err := v.readPlist(d.overrides())
		if err != nil {
			return fmt.Errorf("%s: %w", d.overrides(), err)
		}
		words := map[bool]string{true: "disabled", false: "enabled"}
		if v.switched(overridesSwitch) == "booleans" {
			words = map[bool]string{true: "true", false: "false"}
		}
		c.printf("\n\tdisabled services = {\n")
		for _, name := range slices.Sorted(maps.Keys(values)) {
			c.printf("\t\t%q => %s\n", name, words[boolean(values[name])])
		}
		c.printf("\t}\n")
		return nil
	})
	if err != nil {
		return c.refusePrint(d, "", false, err)
	}
	return 0
}
