package hosts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/plan"
)

var codeUndoArmed = plan.NewCode("undo-armed", plan.NotDrift, "another change is not confirmed yet, or a run that died left one",
	"run macfleet plan in a minute: what is not confirmed by then is as it was before")

// RolledBackError says that a change was made and that the host took it back. It
// comes inside an *Error with the code "rolled-back".
type RolledBackError struct {
	Host string
	Step plan.StepID
	Why  string // in the host's words: no confirmation in time, a restart, or what failed
	Exit int    // of the script that restored what was there before; 0: it did
	Err  error  // what kept the change from being confirmed; nil: nobody knows
}

// Error says what was taken back, and why.
func (e *RolledBackError) Error() string {
	text := fmt.Sprintf("%s was taken back: %s", e.Step, e.Why)
	if e.Exit != 0 {
		text = fmt.Sprintf("%s was to be taken back (%s), and that failed with exit %d", e.Step, e.Why, e.Exit)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns what kept the change from being confirmed.
func (e *RolledBackError) Unwrap() error { return e.Err }

// BusyError says that another change waits for its confirmation on the host, or
// that a run which died left one. It comes inside an *Error with the code
// "undo-armed".
type BusyError struct {
	Step plan.StepID   // of the other change
	Left time.Duration // until the host takes it back by itself
}

// Error names the other change and its end.
func (e *BusyError) Error() string {
	return fmt.Sprintf("a change of %s is not confirmed yet; the host takes it back within %s", e.Step, e.Left)
}

// The exit codes of the scripts that arm and confirm.
const (
	undoTaken   = 3 // another change is armed; this one was taken back
	undoRunning = 5 // the change has not ended
	undoFailed  = 6 // the change ended with an error
)

// guarded is one change on its way to a confirmation.
type guarded struct {
	conn   *Conn // the one that stood before the change
	step   plan.StepID
	change plan.Change
	id     string
	target Target    // with the host key of conn, which every new connection must show
	paths  []string  // those that worked before the change
	late   time.Time // from then on the host takes it back by itself
	until  time.Time // until then it must answer again
	failed error     // why the change must not stay
	asked  bool      // the host was told to take it back
}

// RunGuarded runs a change that may cut the line. The host is armed to take it
// back by itself, new connections over every path that worked before confirm it,
// and only then is it made to last. The connection is replaced by a new one.
//
// An error means that the change does not stand, or that nobody knows: an *Error
// with the code "rolled-back" (and a *RolledBackError inside), "undo-armed" (a
// *BusyError), "cut-off", or of a connection; a *ScriptError where nothing was
// changed or only the last part is missing.
func (c *Conn) RunGuarded(ctx context.Context, step plan.StepID, ch plan.Change) error {
	g, err := c.guard(step, ch)
	if err != nil {
		return fmt.Errorf("%s on %s: %w", step, c.target.name(), err)
	}
	if err := g.survey(ctx); err != nil {
		return err
	}
	d := c.client.opts.Deadlines
	g.late = time.Now().Add(d.Undo)
	g.until = g.late.Add(d.Return)
	if ch.Guard.Restore == nil {
		return g.unarmed(ctx)
	}
	if err := g.arm(ctx); err != nil {
		return err
	}
	g.failed = g.run(ctx)
	return g.settle(ctx)
}

func (c *Conn) guard(step plan.StepID, ch plan.Change) (*guarded, error) {
	switch {
	case ch.Guard == nil:
		return nil, errors.New("the change has no guard")
	case ch.Command.As != plan.Root, ch.Guard.Restore != nil && ch.Guard.Restore.As != plan.Root:
		return nil, errors.New("only root's changes can be guarded")
	case ch.Input != plan.NoInput:
		return nil, errors.New("a guarded change reads no input")
	}
	g := &guarded{conn: c, step: step, change: ch, id: newMark()[:16], target: c.same()}
	// What cannot be sent must not be found out when the host is armed.
	_, _, err := c.client.send(c.fence(), []question{g.wrapped()}, g.undoLimit())
	return g, err
}

// same is the host of this connection, with its key pinned.
func (c *Conn) same() Target {
	t := c.target
	t.Pin = &plan.Pin{Name: t.name(), ServerID: t.Server.ID, Key: keyText(c.key)}
	return t
}

// wrapped is the change's own script, in one that keeps its answer on the host.
func (g *guarded) wrapped() question {
	command := g.change.Command
	wrapped := own("undo-change", plan.Root, append([]string{g.id, seconds(g.undoLimit()), g.conn.client.opts.Prologue + command.Script}, command.Args...)...)
	wrapped.Name = command.Name
	return question{id: "change", Command: wrapped}
}

// survey notes the paths that work before the change. The one in use does.
func (g *guarded) survey(ctx context.Context) error {
	for _, path := range g.conn.client.opts.Via {
		if path == g.conn.via {
			g.paths = append(g.paths, path)
			continue
		}
		conn, err := g.conn.client.along(ctx, g.target, path)
		var e *Error
		switch {
		case err == nil:
			conn.Close()
			g.paths = append(g.paths, path)
		case ctx.Err() != nil, errors.As(err, &e) && e.Code == CodeKeyRefused:
			// Nobody could confirm over that path later: the host bans who asks again.
			return err
		}
	}
	return nil
}

// undoLimit is how long the change itself may take: what is left after it is for
// the confirmation.
func (g *guarded) undoLimit() time.Duration {
	d := g.conn.client.opts.Deadlines
	return max(time.Second, min(d.Change, d.Undo/2)).Truncate(time.Second)
}

// arm makes the host take the change back unless it is confirmed.
func (g *guarded) arm(ctx context.Context) error {
	o := g.conn.client.opts
	restore := g.change.Guard.Restore
	args := []string{g.id, string(g.step), seconds(o.Deadlines.Undo), o.Prologue + restore.Script,
		o.Prologue + file("scripts/undo-run.sh"), file("plists/undo.plist")}
	command := own("undo-arm", plan.Root, append(args, restore.Args...)...)
	a, err := g.conn.Run(ctx, command)
	switch {
	case err != nil:
		return err
	case a.Exit == undoTaken:
		return g.busy(a.Stdout)
	case a.Exit != 0:
		return &ScriptError{Host: g.target.name(), Script: command.Name, Answer: a}
	}
	return nil
}

func (g *guarded) busy(text string) error {
	left, step, _ := strings.Cut(strings.TrimSpace(text), " ")
	n, _ := strconv.Atoi(left) // a number that cannot be read is as good as none
	busy := &BusyError{Step: plan.StepID(step), Left: time.Duration(max(0, n)) * time.Second}
	return &Error{Host: g.target.name(), Code: codeUndoArmed, Phase: Undoing, Err: busy,
		Remedy: "run macfleet plan in a minute: what is not confirmed by then is as it was before"}
}

// run runs the change's own script and returns why it must be taken back: nil
// also where its connection broke, because nobody knows then.
func (g *guarded) run(ctx context.Context) error {
	limit, command := g.undoLimit(), g.change.Command
	r, err := g.conn.exchange(ctx, []question{g.wrapped()}, limit, limit+g.conn.client.opts.Deadlines.Exchange)
	if err != nil {
		return nil
	}
	seen := r.facts.Get("change")
	a, ok := seen.Get()
	switch {
	case !ok:
		return fmt.Errorf("%s: %s", command.Name, seen.Why())
	case a.Exit != 0:
		return &ScriptError{Host: g.target.name(), Script: command.Name, Answer: a}
	}
	return nil
}

// unarmed runs a change that nothing can take back: new connections must answer
// all the same before it is made to last.
func (g *guarded) unarmed(ctx context.Context) error {
	_, failed := g.conn.checked(ctx, g.change.Command)
	var e *ScriptError
	if errors.As(failed, &e) {
		return failed
	}
	have, err := g.reachAll(ctx)
	if err != nil {
		return err
	}
	g.keep(have)
	if failed != nil {
		return failed
	}
	_, err = g.conn.checked(ctx, g.change.Guard.Persist)
	return err
}

// checked runs a script that must end with exit 0.
func (c *Conn) checked(ctx context.Context, command plan.Command) (plan.Answer, error) {
	a, err := c.Run(ctx, command)
	if err == nil && a.Exit != 0 {
		err = &ScriptError{Host: c.target.name(), Script: command.Name, Answer: a}
	}
	return a, err
}

// keep makes one of the new connections the one to go on with, that of the
// preferred path, and closes the others.
func (g *guarded) keep(have map[string]*Conn) {
	for _, path := range g.conn.client.opts.Via {
		if conn := have[path]; conn != nil {
			delete(have, path)
			g.conn.become(conn)
			break
		}
	}
	closeAll(have)
}

func closeAll(all map[string]*Conn) {
	for _, conn := range all {
		conn.Close()
	}
}

// become replaces the connection by another one to the same host.
func (c *Conn) become(other *Conn) {
	c.Close()
	target := c.target
	*c = *other
	c.target = target
}

func seconds(d time.Duration) string { return strconv.Itoa(max(1, int(d/time.Second))) }

// missing are the paths without a connection.
func (g *guarded) missing(have map[string]*Conn) []string {
	return slices.DeleteFunc(slices.Clone(g.paths), func(path string) bool { return have[path] != nil })
}
