package mac

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// callersDomain is the domain of the old commands: root's is the system's, and a user's is the
// background one, even if the user has a GUI session.
func (c launchctlCall) callersDomain() domain {
	switch {
	case c.user.uid == 0:
		return domain{kind: "system"}
	case c.under != nil && strings.HasPrefix(c.under.target, "gui/"):
		return domain{"gui", c.user.uid}
	}
	return domain{"user", c.user.uid}
}

func (c launchctlCall) list() int {
	d := c.callersDomain()
	if len(c.args) > 1 {
		return c.usage("launchctl list [service-name]")
	}
	err := c.visit(func(v *visit) error {
		m, _, err := v.launchd()
		if err != nil {
			return err
		}
		if len(c.args) == 1 {
			j, err := v.service(m, d, c.args[0])
			if err == nil {
				c.printf("%s", j.dictionary(d))
			}
			return err
		}
		all, err := v.jobs(m, d.String())
		if err != nil {
			return err
		}
		c.printf("PID\tStatus\tLabel\n")
		for _, j := range all {
			c.printf("%s\t%d\t%s\n", j.pidOr("-"), j.status(), j.About.Label)
		}
		return nil
	})
	if errors.Is(err, launchCode(113)) {
		c.say(`Could not find service "` + c.args[0] + `" in domain for ` + d.words())
		return 113
	}
	if err != nil {
		return c.refuse("Could not list services", err)
	}
	return 0
}

// pidOr returns the pid of the job's process, or a text if there is none.
func (j *job) pidOr(none string) string {
	if j.PID == 0 {
		return none
	}
	return strconv.Itoa(j.PID)
}

// status returns how the job's last process ended; a signal counts as a negative number.
func (j *job) status() int {
	switch {
	case j.Last == nil:
		return 0
	case j.Last.Signal != 0:
		return -j.Last.Signal
	}
	return j.Last.Code
}

// dictionary formats a single job for list.
func (j *job) dictionary(d domain) string {
	session := map[string]string{"system": "System", "gui": "Aqua", "user": "Background"}[d.kind]
	wait := 0 // as in wait(2)
	if j.Last != nil {
		wait = j.Last.Code<<8 | j.Last.Signal
	}
	var b strings.Builder
	line := func(key, value string) { b.WriteString("\t\"" + key + "\" = " + value + ";\n") }
	b.WriteString("{\n")
	line("LimitLoadToSessionType", strconv.Quote(session))
	line("Label", strconv.Quote(j.About.Label))
	line("OnDemand", strconv.FormatBool(!j.About.Keep.set()))
	line("LastExitStatus", strconv.Itoa(wait))
	if j.PID != 0 {
		line("PID", strconv.Itoa(j.PID))
	}
	line("Program", strconv.Quote(j.About.Program))
	b.WriteString("\t\"ProgramArguments\" = (\n")
	for _, arg := range j.About.Args {
		b.WriteString("\t\t" + strconv.Quote(arg) + ";\n")
	}
	b.WriteString("\t);\n};\n")
	return b.String()
}

// legacy is load and unload, which exit with 0 even on a failure.
func (c launchctlCall) legacy(load bool) int {
	o, files, status, ok := c.child(append([]string{"launchctl"}, c.args...)).options("wF")
	if !ok {
		return status
	}
	if len(files) == 0 {
		return c.usage("launchctl load | unload [-wF] <service-path, service-path2, ...>")
	}
	for _, file := range files {
		if failed := c.legacyFile(load, o.has('w'), file); failed != 0 {
			status = failed
		}
	}
	if err := c.due(); err != nil {
		return c.refuse("Load failed", err)
	}
	return status
}

func (c launchctlCall) legacyFile(load, override bool, file string) (status int) {
	d, name, quiet := c.callersDomain(), c.absolute(file), true
	err := c.change(d, func(v *visit, m *manager, now time.Time) error {
		quiet = v.switched(legacySwitch) == "0"
		about, n, err := v.describeFile(v.session.users()[0], name)
		switch {
		case err != nil:
			return launchCode(5)
		case !trusted(n, d):
			return launchCode(122)
		case override:
			if err := v.override(d, about.Label, !load); err != nil {
				return err
			}
		}
		if !load {
			return v.unloadFile(m, now, d, name)
		}
		off, err := v.disabled(d, about)
		if err == nil && off {
			return launchCode(119)
		}
		_, err = v.load(m, now, d, name)
		return err
	})
	if err == nil {
		return 0
	}
	verb, better := "Load", "bootstrap"
	if !load {
		verb, better = "Unload", "bootout"
	}
	code := c.refuse(verb+" failed", err)
	c.say("Try running `launchctl " + better + "` as root for richer errors.")
	if quiet && code != exitUnmodelled {
		return 0
	}
	return code
}
