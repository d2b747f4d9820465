package hosts

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// maxOutput is the maximum output of a host per exchange and stream, to protect this machine's
// memory.
const maxOutput = 4 << 20

// Exec is what an exchange sends to a host.
type Exec struct {
	Line  string // the exec string, without any values
	Stdin string
}

// Exec returns what Observe sends for these probes, so that another program can run the same
// ones. Its mark is new each time. The error is about the probes: a script that is too long, an
// argument with a NUL byte.
func (c *Client) Exec(probes []plan.Probe) (Exec, error) {
	_, sent, err := c.send("", c.observation(probes), c.opts.Deadlines.Question)
	return sent, err
}

// send returns what an exchange sends after a fence, and the mark that frames its answer.
func (c *Client) send(fence string, questions []question, each time.Duration) (mark string, sent Exec, err error) {
	mark = rand.Text()
	if questions, err = c.sessions(questions, each); err != nil {
		return "", Exec{}, err
	}
	if sent.Line, err = commandLine(fence, c.opts.Prologue, questions); err != nil {
		return "", Exec{}, err
	}
	if sent.Stdin, err = data(mark, c.opts.User, max(1, int(each/time.Second)), questions); err != nil {
		return "", Exec{}, err
	}
	return mark, sent, nil
}

// observation returns the questions of a full observation.
func (c *Client) observation(probes []plan.Probe) []question {
	return slices.Concat(identity(), c.rotating(), questionsOf(probes))
}

func questionsOf(probes []plan.Probe) (out []question) {
	for _, p := range probes {
		out = append(out, question{id: p.ID, Command: p.Command})
	}
	return out
}

// Observe runs all probes in one exec, the identity probes first. It changes nothing. It always
// returns an observation: what could not be read is unread, and a lost connection is the
// Trouble.
func (c *Conn) Observe(ctx context.Context, probes []plan.Probe) plan.HostSeen {
	seen := plan.HostSeen{Key: keyText(c.key), Fingerprint: ssh.FingerprintSHA256(c.key), Pinned: c.target.Trust.Pin != nil, Path: c.path}
	r, lost := c.exchange(ctx, c.client.observation(probes), c.client.opts.Deadlines.Question, 0)
	if lost != nil {
		seen.Trouble = lost.Trouble()
		return seen
	}
	seen.Root, seen.Facts = r.root, r.facts
	identify(&seen)
	c.enterKeys(&seen)
	c.marker = ""
	if a, ok := seen.Facts.Get("host.marker").Get(); ok && a.Exit == 0 {
		c.marker = asCompared(a.Stdout)
	}
	return seen
}

// Probe runs some probes. It changes nothing. root says whether passwordless sudo works. The
// error is an *Error of the connection.
func (c *Conn) Probe(ctx context.Context, probes []plan.Probe) (facts plan.Facts, root bool, err error) {
	r, lost := c.exchange(ctx, questionsOf(probes), c.client.opts.Deadlines.Question, 0)
	if lost != nil {
		return nil, false, lost
	}
	return r.facts, r.root, nil
}

// Run runs one change's script. A secret is sent on standard input as data, never in a script or
// on a command line. If the script fails, the error is a *ScriptError, along with the answer;
// an *Error means that the connection broke. After any other error it did not complete.
func (c *Conn) Run(ctx context.Context, command plan.Command, input secret.Value) (plan.Answer, error) {
	return c.change(ctx, command, input, c.client.opts.Deadlines.Change)
}

// change is Run with a time limit.
func (c *Conn) change(ctx context.Context, command plan.Command, input secret.Value, limit time.Duration) (plan.Answer, error) {
	q := question{id: "change", Command: command, input: input}
	r, lost := c.exchange(ctx, []question{q}, limit, limit)
	if lost != nil {
		return plan.Answer{}, lost
	}
	return c.answer(r, q)
}

// answer returns the answer to a question, or an error if there is none or the script failed.
func (c *Conn) answer(r reply, q question) (plan.Answer, error) {
	seen := r.facts.Get(q.id)
	a, ok := seen.Get()
	switch {
	case !ok && q.As == plan.Gui && strings.HasPrefix(seen.Why(), sessionMissing):
		return a, c.noSession(seen.Why())
	case !ok:
		return a, fmt.Errorf("%s on %s: %s", q.Name, c.target.name(), seen.Why())
	}
	return a, c.checked(q.Command, a)
}

// own runs one of this package's own scripts as root.
func (c *Conn) own(ctx context.Context, name string, args ...string) (plan.Answer, error) {
	return c.Run(ctx, own(name, plan.Root, args...), secret.Value{})
}

// checked returns an error if a script failed.
func (c *Conn) checked(command plan.Command, a plan.Answer) error {
	if a.Exit == 0 {
		return nil
	}
	return &ScriptError{Host: c.target.name(), Script: command.Name, Answer: a}
}

// exchange runs all questions in one exec and parses the output. more is the additional time
// limit of changes.
func (c *Conn) exchange(ctx context.Context, questions []question, each, more time.Duration) (reply, *Error) {
	mark, sent, err := c.client.send(c.fence(), questions, each)
	if err != nil {
		return reply{}, c.lost(err)
	}
	return c.converse(ctx, conversation{mark, sent.Line, strings.NewReader(c.pass(mark) + sent.Stdin), questions, more})
}

// conversation is one exec with a framed answer.
type conversation struct {
	mark      string
	line      string
	stdin     io.Reader
	questions []question    // their frames are expected
	more      time.Duration // time limit beyond Deadlines.Exchange
}

// converse runs one exec, parses the output, and logs which scripts ran, how many bytes were
// exchanged and how they ended, never their content.
func (c *Conn) converse(ctx context.Context, t conversation) (reply, *Error) {
	const scriptsNamed = 3
	began := time.Now()
	r, err := c.talk(ctx, t)
	var names, failed []string
	received := 0
	for _, q := range t.questions {
		name := cmp.Or(q.Name, q.id)
		names = append(names, name)
		a, _ := r.facts.Get(q.id).Get()
		if received += len(a.Stdout) + len(a.Stderr); a.Exit != 0 {
			failed = append(failed, fmt.Sprintf("%s:%d", name, a.Exit))
		}
	}
	if more := len(names) - scriptsNamed; more > 0 {
		names = append(names[:scriptsNamed], fmt.Sprintf("%d more", more))
	}
	log := c.client.opts.Log.With("host", c.target.name(), "scripts", strings.Join(names, ","), "sent", len(t.line),
		"ms", time.Since(began).Milliseconds(), "received", received, "not_zero", strings.Join(failed, ","))
	if err != nil {
		log.Warn("exec", "error", err)
		return r, c.lost(err)
	}
	log.Debug("exec")
	return r, nil
}

// talk runs one exec and parses the output.
func (c *Conn) talk(ctx context.Context, t conversation) (reply, error) {
	limit := c.client.opts.Deadlines.Exchange + t.more
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the command timed out after %s", limit))
	defer cancel()
	// A channel cannot be cancelled: closing the connection unblocks every call on it.
	release := context.AfterFunc(ctx, func() { _ = c.ssh.Close() })
	defer release()
	stdout, stderr := &limited{end: c.ssh.Close}, &limited{end: c.ssh.Close}
	began := time.Now()
	err := c.exec(t.line, t.stdin, stdout, stderr)
	c.client.spend(c.target, Talking, began)
	err = c.why(ctx, err)
	if stdout.over || stderr.over {
		return reply{}, fmt.Errorf("the host printed more than %d bytes", maxOutput)
	}
	out, errs := stdout.buffer.String(), stderr.buffer.String()
	r, perr := parse(t.mark, out, errs, t.questions)
	if refused := c.passed(t.mark, out); refused != nil {
		return reply{}, refused
	}
	switch {
	case perr != nil && err == nil:
		return reply{}, fmt.Errorf("%w: output %q", perr, head(out+errs))
	case !r.whole && err == nil:
		return reply{}, errors.New("the answer was truncated")
	case err != nil:
		return reply{}, err
	}
	return r, nil
}

// why returns the cause of an error that only says that the connection is gone.
func (c *Conn) why(ctx context.Context, err error) error {
	if missing := (*ssh.ExitMissingError)(nil); errors.As(err, &missing) {
		err = c.ending()
	}
	switch {
	case err == nil:
		return nil
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	}
	if lost := c.through.lost(ctx, c.target); lost != nil {
		return lost
	}
	return c.wire.why(err)
}

// exec runs a command line. Any exit code is accepted: the frames have the result.
func (c *Conn) exec(line string, stdin io.Reader, stdout, stderr *limited) error {
	session, err := c.session()
	if err != nil {
		return err
	}
	defer session.Close() // already closed unless Run failed
	c.client.stats.execs.Add(1)
	session.Stdin, session.Stdout, session.Stderr = stdin, stdout, stderr
	if err = session.Start(line); err != nil && strings.HasPrefix(err.Error(), "ssh: command ") { // the message contains the whole script
		return errors.New("the host refused to run a command: check restrictions in its sshd_config and authorized_keys")
	} else if err != nil {
		return err
	}
	err = session.Wait()
	var exit *ssh.ExitError
	// If a command ends without reading all of its stdin, the library reports the closed channel
	// instead of the exit status.
	if errors.As(err, &exit) || err == io.EOF {
		return nil
	}
	return err
}

// lost returns the error for a lost connection.
func (c *Conn) lost(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known // refused by the fence, or a lost jump host
	}
	return c.target.fails(codeConnectionLost, Talking, err)
}

// head returns the beginning of a text for a message.
func head(text string) string {
	if len(text) > 200 {
		return text[:200] + "…"
	}
	return text
}

// limited is a buffer that stops at maxOutput. The buffer is not embedded, because io.Copy would
// use its ReadFrom and bypass the limit.
type limited struct {
	buffer bytes.Buffer
	over   bool
	end    func() error // closes the connection
}

// Write appends p. At the limit it fails and closes the connection, so that the host does not
// block until the deadline.
func (l *limited) Write(p []byte) (int, error) {
	if l.buffer.Len()+len(p) > maxOutput {
		l.over = true
		_ = l.end() // it may be closed already
		return 0, errors.New("too much output")
	}
	return l.buffer.Write(p)
}
