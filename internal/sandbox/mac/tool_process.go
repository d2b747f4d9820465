package mac

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// watchdog is the only perl text that is modelled: it runs the questions of an exchange, each with a
// deadline.
//
//go:embed watchdog.pl
var watchdog string

// Exit statuses of the watchdog: its input ended early, a question was stopped, one could not be
// started.
const (
	watchdogCut     = 91
	watchdogExpired = 124
	watchdogFailed  = 126
)

// exchange is the watchdog's input.
type exchange struct {
	proc       *proc
	mark, user string
	limit      int
	seen       *snapshot
	questions  []asked
}

// asked is one question of an exchange.
type asked struct {
	id, as string
	input  *string
	argv   []string
}

func perl(p *proc) int {
	args := p.args()
	if len(args) < 3 || args[0] != "-e" || strings.TrimSpace(args[1]) != strings.TrimSpace(watchdog) || len(args[3:])%5 != 0 {
		return p.shellFail(exitNotFound, "perl: not modelled: a text other than the watchdog")
	}
	x, ok := readExchange(p, args[2], args[3:])
	if !ok {
		return watchdogCut
	}
	p.printf("\n%s host %d\n", x.mark, p.user.uid)
	for _, q := range x.questions {
		x.both("begin " + q.id)
		status := "needs-root"
		if p.user.uid == 0 || q.as == "user" && p.user.name == x.user {
			status = strconv.Itoa(x.ask(q))
		}
		x.both("end " + status)
	}
	p.printf("\n%s done\n", x.mark)
	return 0
}

// readExchange reads all of the input before it runs a question.
func readExchange(p *proc, prologue string, words []string) (exchange, bool) {
	in := bufio.NewReader(p.input())
	whole := true
	line := func() string {
		text, err := in.ReadString('\n')
		whole = whole && err == nil
		return strings.TrimSuffix(text, "\n")
	}
	value := func() string {
		n, err := strconv.Atoi(line())
		if err != nil || n < 0 || !whole {
			whole = false
			return ""
		}
		text := make([]byte, n)
		_, err = io.ReadFull(in, text)
		whole = whole && err == nil
		return string(text)
	}
	x := exchange{proc: p, mark: line(), user: line(), seen: &snapshot{}}
	x.limit, _ = strconv.Atoi(line())
	for q := range slices.Chunk(words, 5) {
		one := asked{id: q[0], as: q[1], argv: []string{"/bin/sh", "-c", prologue + q[4], "sh"}}
		count, _ := strconv.Atoi(q[2]) // macfleet wrote it
		for range count {
			one.argv = append(one.argv, value())
		}
		if q[3] == "1" {
			text := value()
			one.input = &text
		}
		x.questions = append(x.questions, one)
	}
	return x, whole
}

func (x exchange) both(text string) {
	text = "\n" + x.mark + " " + text + "\n"
	_, _ = io.WriteString(x.proc.stdout, text)
	_, _ = io.WriteString(x.proc.stderr, text)
}

// ask runs a question and kills its background processes.
func (x exchange) ask(q asked) (status int) {
	p := x.proc
	failed := func(format string, args ...any) int {
		_, _ = fmt.Fprintf(p.stderr, "watchdog: "+format+"\n", args...)
		return watchdogFailed
	}
	c := p.child(q.argv)
	c.stdin = nil
	if q.input != nil {
		file, err := spool(strings.NewReader(*q.input))
		if err != nil {
			return failed("pipe: %s", why(err))
		}
		if c.stdin = file; file != nil {
			defer file.Close() // it is only read
		}
	}
	if q.as == "user" && p.user.name != x.user {
		who, ok := p.session.user(x.user)
		if !ok {
			return failed("cannot become %s", x.user)
		}
		c.user = who
		c.env["HOME"], c.env["USER"], c.env["LOGNAME"], c.env["SHELL"] = who.home, who.name, who.name, who.shell
	}
	// alarm(3) counts whole seconds; 0 means no alarm.
	ctx, end := context.WithCancelCause(p.ctx)
	defer end(nil)
	if x.limit > 0 {
		d := time.Duration(x.limit) * time.Second
		late := func() { end(context.DeadlineExceeded) }
		defer time.AfterFunc(d, late).Stop()
		c.alarms = append(slices.Clip(p.alarms), alarm{p.session.instant().Add(d), late})
	}
	c.ctx = ctx
	found, err := c.look(c.argv[0])
	if err != nil {
		return failed("exec %s: %s", c.argv[0], why(err))
	}
	status = c.answered(q.input, x.seen, func(c *proc) int { return c.exec(found) })
	if p.ctx.Err() == nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		_, _ = fmt.Fprintf(p.stderr, "watchdog: stopped after %d s\n", x.limit)
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
		if !p.under.sleep(d, p.depth) {
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
