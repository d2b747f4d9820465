package hosts

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

var codeJobRunning = plan.NewCode("job-running", plan.NotDrift, "a change is still running under launchd after an hour",
	"run macfleet apply again; it waits for the running job")

// noSession is the exit code of a job's scripts if the login user has no Aqua session.
const noSession = 69

// sessionMissing is the prefix of those scripts' message.
const sessionMissing = "no gui session of "

// noSession returns the error for a script that needs the login user's Aqua session.
func (c *Conn) noSession(said string) *Error {
	return c.target.fails(plan.CodeNoGUISession, Talking, errors.New(lastLine(said)),
		"let the step auto_login create the session, or log in over VNC as "+c.client.opts.User)
}

// detached is a change that runs under launchd.
type detached struct {
	conn  *Conn
	job   job
	until time.Time
}

// RunDetached runs a change under launchd, so that it continues if the connection or this
// program ends, and waits for its end. It first waits for a job that an earlier run left; if
// that does the same, its answer is used. A broken connection is replaced.
//
// The error is a *ScriptError as of Run, or an *Error of the connection or with the code
// "no-gui-session" or "job-running".
func (c *Conn) RunDetached(ctx context.Context, step plan.StepID, ch plan.Change) (plan.Answer, error) {
	if ch.Input != plan.NoInput {
		return plan.Answer{}, fmt.Errorf("%s on %s: a detached change must not have input, as it would be written to a file", step, c.target.name())
	}
	d := detached{conn: c, job: c.client.job(string(step), ch.Command), until: time.Now().Add(c.client.opts.Deadlines.Job)}
	drop := d.job.script("job-drop", plan.Root)
	for {
		mine, err := d.start(ctx)
		if err != nil {
			return plan.Answer{}, err
		}
		a, err := d.wait(ctx)
		if err != nil && a.Exit == 0 { // not the job's own exit code
			return a, err
		}
		if _, derr := d.run(ctx, drop, drop); derr != nil || mine {
			return a, cmp.Or(derr, err)
		}
	}
}

// run runs a script that must succeed. If the connection breaks, it runs again over a new one.
func (d *detached) run(ctx context.Context, first, again plan.Command) (plan.Answer, error) {
	for command := first; ; command = again {
		a, err := d.conn.Run(ctx, command, secret.Value{})
		var e *Error
		if !errors.As(err, &e) || e.refusesRun() || ctx.Err() != nil {
			return a, err
		}
		for err != nil {
			if time.Now().After(d.until) || pause(ctx, d.conn.client.opts.Poll) != nil {
				return a, e
			}
			var next *Conn
			if next, err = d.conn.client.Connect(ctx, d.conn.same()); err == nil {
				d.conn.become(next)
			} else if errors.As(err, &e) && e.final {
				return a, e
			}
		}
	}
}

// start starts the job, or finds a running one, and reports whether that does the same. After a
// lost answer, the job may have ended already.
func (d *detached) start(ctx context.Context) (mine bool, err error) {
	start := func(may string) plan.Command {
		return d.job.script("job-start", plan.Root, append([]string{may}, d.job.started()...)...)
	}
	a, err := d.run(ctx, start("fresh"), start("resume"))
	if a.Exit == noSession {
		return false, d.conn.noSession(a.Stderr)
	}
	return strings.TrimSpace(a.Stdout) == d.job.digest, err
}

// wait polls until the job has ended.
func (d *detached) wait(ctx context.Context) (plan.Answer, error) {
	reader := plan.Login // root must not follow links in a user's folder
	if d.job.command.As == plan.Root {
		reader = plan.Root
	}
	look := d.job.script("job-look", reader)
	for {
		a, err := d.run(ctx, look, look)
		if err != nil {
			return plan.Answer{}, err
		}
		state, rest, _ := strings.Cut(a.Stdout, "\n")
		state, code, _ := strings.Cut(state, " ")
		switch state {
		case "ended":
			exit, err := strconv.Atoi(code)
			if err != nil {
				return plan.Answer{}, fmt.Errorf("%s on %s: %q in place of an exit code", d.job.command.Name, d.conn.target.name(), code)
			}
			a = plan.Answer{Exit: exit, Stdout: rest, Stderr: a.Stderr}
			return a, d.conn.checked(d.job.command, a)
		case "running":
		default:
			return plan.Answer{}, fmt.Errorf("%s on %s has no result: the Mac was restarted, or someone killed the job", d.job.command.Name, d.conn.target.name())
		}
		if time.Now().After(d.until) {
			return plan.Answer{}, d.conn.target.fails(codeJobRunning, Talking,
				fmt.Errorf("%s is still running after %s", d.job.command.Name, d.conn.client.opts.Deadlines.Job))
		}
		if err := pause(ctx, d.conn.client.opts.Poll); err != nil {
			return plan.Answer{}, fmt.Errorf("%s on %s continues under launchd: %w", d.job.command.Name, d.conn.target.name(), err)
		}
	}
}

// job is a script with its data, run by launchd.
type job struct {
	name     string // of its folder and its label
	user     string // the login user
	digest   string // of what it does
	prologue string
	command  plan.Command
}

func (c *Client) job(name string, command plan.Command) job {
	sum := sha256.New()
	for _, part := range append([]string{string(command.As), command.Script}, command.Args...) {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return job{name: plain(name), user: c.opts.User, digest: hex.EncodeToString(sum.Sum(nil)),
		prologue: c.opts.Prologue, command: command}
}

// script returns one of the scripts that manage a job.
func (j job) script(name string, as plan.User, args ...string) plan.Command {
	c := own(name, as, append([]string{j.name, string(j.command.As), j.user}, args...)...)
	c.Script = file("scripts/job.sh") + c.Script
	return c
}

// started returns the arguments of start_job.
func (j job) started() []string {
	return append([]string{j.digest, j.prologue + j.command.Script, j.prologue + file("scripts/job-run.sh"), j.plist()}, j.command.Args...)
}

// plist returns the job's property list. Name and user need no XML escaping.
func (j job) plist() string {
	user := ""
	if j.command.As == plan.Login {
		user = "\t<key>UserName</key>\n\t<string>" + j.user + "</string>\n"
	}
	return strings.NewReplacer("NAME", j.name, "USER\n", user).Replace(file("plists/job.plist"))
}

// plain returns a name with safe characters only.
func plain(name string) string {
	return regexp.MustCompile(`[^\w-]`).ReplaceAllString(name, "-")
}

// sessions wraps each probe for the login user's Aqua session in a script for root that runs it
// as a job there, because SSH commands run in another session with other permissions.
func (c *Client) sessions(questions []question, limit time.Duration) ([]question, error) {
	out := slices.Clone(questions)
	for i, q := range out {
		if q.As != plan.Gui {
			continue
		}
		if !q.input.IsZero() {
			return nil, fmt.Errorf("%s must not have input in a GUI session, as it would be written to a file", q.Name)
		}
		j := c.job("gui-"+q.id, q.Command)
		least := max(1, int(limit/time.Second)-3) // the rest is for starting and removing the job
		out[i].Command = j.script("job-gui", plan.Root, append([]string{strconv.Itoa(least)}, j.started()...)...)
		out[i].Name = q.Name
	}
	return out, nil
}
