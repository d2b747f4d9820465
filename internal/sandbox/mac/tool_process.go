package mac

import (
	"context"
	_ "embed"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// watchdog is the one perl text that is modelled: it runs a command with a deadline.
//
//go:embed watchdog.pl
var watchdog string

// watchdogExpired is the exit status of the watchdog when time was up.
const watchdogExpired = 124

func perl(p *proc) int {
	args := p.args()
	if len(args) < 4 || args[0] != "-e" || strings.TrimSpace(args[1]) != strings.TrimSpace(watchdog) {
		return p.shellFail(exitNotFound, "perl: not modelled: another text than the watchdog")
	}
	// alarm(3) counts whole seconds; none is no alarm.
	limit, _ := strconv.Atoi(args[2])
	c := p.child(args[3:])
	// What the command leaves in the background is killed with it.
	ctx, end := context.WithCancelCause(p.ctx)
	defer end(nil)
	if limit > 0 {
		d := time.Duration(limit) * time.Second
		late := func() { end(context.DeadlineExceeded) }
		defer time.AfterFunc(d, late).Stop()
		c.alarms = append(slices.Clip(p.alarms), alarm{p.session.now().Add(d), late})
	}
	c.ctx = ctx
	found, err := c.look(c.argv[0])
	if err != nil {
		reason := why(err)
		if errors.Is(err, errNotFound) {
			reason = "No such file or directory"
		}
		_, _ = p.stderr.Write([]byte("watchdog: exec " + c.argv[0] + ": " + reason + "\n"))
		return exitNotFound
	}
	status := c.exec(found)
	if p.ctx.Err() == nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		_, _ = p.stderr.Write([]byte("watchdog: stopped after " + args[2] + " s\n"))
		return watchdogExpired
	}
	return status
}

func sleep(p *proc) int {
	if len(p.args()) != 1 {
		return p.usage("sleep number[unit] ...")
	}
	seconds, err := strconv.ParseFloat(p.argv[1], 64)
	if err != nil || seconds < 0 || seconds > 1e9 {
		return p.fail(exitFailed, "invalid time interval: %s", p.argv[1])
	}
	d := time.Duration(seconds * float64(time.Second))
	if p.under != nil {
		if !p.under.sleep(d) {
			return exitTerminated
		}
		return 0
	}
	if d <= longestNap {
		return p.nap(d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return 0
	case <-p.ctx.Done():
		return exitTerminated
	}
}

func env(p *proc) int {
	c := p.child(p.args())
	for len(c.argv) > 0 && strings.HasPrefix(c.argv[0], "-") {
		switch c.argv[0] {
		case "-i", "-":
			clear(c.env)
		case "-u":
			if len(c.argv) < 2 {
				return p.usage("env [-i] [-u name] [name=value ...] [utility [argument ...]]")
			}
			delete(c.env, c.argv[1])
			c.argv = c.argv[1:]
		default:
			return p.unmodelled(c.argv[0])
		}
		c.argv = c.argv[1:]
	}
	for len(c.argv) > 0 {
		name, value, ok := strings.Cut(c.argv[0], "=")
		if !ok {
			break
		}
		c.env[name], c.argv = value, c.argv[1:]
	}
	if len(c.argv) == 0 {
		var lines []string
		for name, value := range c.env {
			lines = append(lines, name+"="+value+"\n")
		}
		slices.Sort(lines)
		p.printf("%s", strings.Join(lines, ""))
		return 0
	}
	found, err := c.look(c.argv[0])
	if errors.Is(err, errNotFound) || missing(err) {
		return p.fail(exitNotFound, "%s: No such file or directory", c.argv[0])
	} else if err != nil {
		return p.fail(exitNoExec, "%s: %s", c.argv[0], why(err))
	}
	return c.exec(found)
}

func basename(p *proc) int {
	if len(p.args()) < 1 || len(p.args()) > 2 {
		return p.usage("basename string [suffix]")
	}
	base := path.Base(p.argv[1])
	if len(p.argv) == 3 && base != p.argv[2] {
		base = strings.TrimSuffix(base, p.argv[2])
	}
	p.printf("%s\n", base)
	return 0
}

func dirname(p *proc) int {
	if len(p.args()) != 1 {
		return p.usage("dirname string [...]")
	}
	name := strings.TrimRight(p.argv[1], "/")
	if name == "" && p.argv[1] != "" {
		name = "/"
	}
	p.printf("%s\n", path.Dir(name))
	return 0
}
