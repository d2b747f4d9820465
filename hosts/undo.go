package hosts

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// The exit codes of the scripts undo-arm and undo-confirm.
const (
	undoTaken   = 3 // another change is pending; this one was not armed
	undoRunning = 5 // the change is still running
	undoFailed  = 6 // the change failed
)

// guarded is a change that is not confirmed yet.
type guarded struct {
	conn   *Conn // the connection from before the change
	step   plan.StepID
	change plan.Change
	id     string
	target Target           // with conn's host key, which new connections must show
	paths  []string         // the paths that worked before the change
	late   time.Time        // when the host undoes the change by itself
	until  time.Time        // when the host must answer again at the latest
	failed error            // why the change must be undone
	asked  bool             // the undo was requested from the host
	have   map[string]*Conn // new connections, by path
}

// RunGuarded runs a change that may cut the connection. The host undoes it by itself unless new
// connections over every path that worked before confirm it; only then is it made permanent.
// The connection is replaced by a new one.
//
// An error means that the change was undone, or that its state is unknown: an *Error with the
// code "rolled-back", "undo-armed" or "cut-off", or of the connection; a *ScriptError if
// nothing was changed or only the last part failed.
func (c *Conn) RunGuarded(ctx context.Context, step plan.StepID, ch plan.Change) error {
	g, err := c.guard(step, ch)
	if err != nil {
		return fmt.Errorf("%s on %s: %w", step, c.target.name(), err)
	}
	defer g.closeAll()
	if err := g.survey(ctx); err != nil {
		return err
	}
	d := c.client.opts.Deadlines
	g.late = time.Now().Add(d.Undo)
	g.until = g.late.Add(d.Return)
	if ch.Guard.Restore == nil {
		var failed *ScriptError
		if _, g.failed = c.Run(ctx, ch.Command, secret.Value{}); errors.As(g.failed, &failed) {
			return g.failed
		}
		return g.settle(ctx)
	}
	if err := g.arm(ctx); err != nil {
		return err
	}
	_, g.failed = c.change(ctx, g.wrapped(), secret.Value{}, g.undoLimit())
	if lost := (*Error)(nil); errors.As(g.failed, &lost) {
		g.failed = nil // unknown whether it failed
	}
	return g.settle(ctx)
}

func (c *Conn) guard(step plan.StepID, ch plan.Change) (*guarded, error) {
	switch {
	case ch.Guard == nil:
		return nil, errors.New("the change has no undo")
	case ch.Command.As != plan.Root, ch.Guard.Restore != nil && ch.Guard.Restore.As != plan.Root:
		return nil, errors.New("only changes by root can have an undo")
	case ch.Input != plan.NoInput:
		return nil, errors.New("a change with an undo must not have input")
	}
	g := &guarded{conn: c, step: step, change: ch, id: rand.Text()[:16], target: c.same(), have: make(map[string]*Conn)}
	// Check that the scripts can be sent before the host is armed.
	_, _, err := c.client.send(c.fence(), []question{{id: "change", Command: g.wrapped()}}, g.undoLimit())
	return g, err
}

// same returns the target of this connection with its host key pinned.
func (c *Conn) same() Target {
	t := c.target
	t.offer = anyKey
	t.Trust = plan.Trust{Pin: &plan.Pin{Name: t.name(), ServerID: t.Server.ID, Key: keyText(c.key)}}
	return t
}

// wrapped returns the change's script, wrapped to keep its answer on the host.
func (g *guarded) wrapped() plan.Command {
	command := g.change.Command
	wrapped := own("undo-change", plan.Root, append([]string{g.id, seconds(g.undoLimit()), g.conn.client.opts.Prologue + command.Script}, command.Args...)...)
	wrapped.Name = command.Name
	return wrapped
}

// survey finds the paths that work before the change.
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
		case ctx.Err() != nil, errors.As(err, &e) && e.Code == codeKeyNotInstalled:
			// This path could not confirm later: the host bans repeated login failures.
			return err
		}
	}
	return nil
}

// undoLimit is the time limit of the change itself; the rest is for the confirmation.
func (g *guarded) undoLimit() time.Duration {
	d := g.conn.client.opts.Deadlines
	return max(time.Second, min(d.Change, d.Undo/2)).Truncate(time.Second)
}

// arm makes the host undo the change unless it is confirmed.
func (g *guarded) arm(ctx context.Context) error {
	o := g.conn.client.opts
	restore := g.change.Guard.Restore
	args := []string{g.id, string(g.step), seconds(o.Deadlines.Undo), o.Prologue + restore.Script,
		o.Prologue + file("scripts/undo-run.sh"), file("plists/undo.plist")}
	a, err := g.conn.own(ctx, "undo-arm", append(args, restore.Args...)...)
	if a.Exit != undoTaken {
		return err
	}
	left, step, _ := strings.Cut(strings.TrimSpace(a.Stdout), " ")
	n, _ := strconv.Atoi(left) // 0 if malformed
	return g.target.fails(plan.CodeUndoArmed, Undoing,
		fmt.Errorf("a change of %s is not confirmed yet; the host undoes it within %s", step, time.Duration(max(0, n))*time.Second))
}

// keep continues with the new connection over the preferred path, and closes the others.
func (g *guarded) keep() {
	if path, conn := g.standing(); conn != nil {
		delete(g.have, path)
		g.conn.become(conn)
	}
	g.closeAll()
}

func (g *guarded) closeAll() {
	for path, conn := range g.have {
		conn.Close()
		delete(g.have, path)
	}
}

// become replaces the connection with another one to the same host.
func (c *Conn) become(other *Conn) {
	c.Close()
	target := c.target
	*c = *other
	c.target = target
}

func seconds(d time.Duration) string { return strconv.Itoa(max(1, int(d/time.Second))) }

var codeCutOff = plan.NewCode("cut-off", plan.Critical, "unknown whether a change is active: the host is unreachable on all paths",
	"macfleet reboot NAME: an unconfirmed change is also undone at boot")

// reach opens new connections over the paths that lack one. The error says why one failed.
func (g *guarded) reach(ctx context.Context) error {
	if !g.late.IsZero() && time.Now().After(g.late) {
		// The change may have caused the refusal of the key.
		g.conn.client.turns.forgive(ctx, g.target.id())
		g.late = time.Time{}
	}
	var failed error
	for _, path := range g.paths {
		if g.have[path] != nil {
			continue
		}
		conn, err := g.conn.client.along(ctx, g.target, path)
		if err != nil {
			failed = and(failed, fmt.Errorf("no new connection over %s: %w", path, err))
			continue
		}
		g.have[path] = conn
	}
	return failed
}

// and joins two errors on one line.
func and(a, b error) error {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return fmt.Errorf("%w; %w", a, b)
}

// settle polls until it is known whether the change is active, within the host's time limit.
func (g *guarded) settle(ctx context.Context) error {
	o := g.conn.client.opts
	for {
		missing := g.reach(ctx)
		done, err := g.decide(ctx, missing)
		if done {
			return err
		}
		if e := new(Error); errors.As(err, &e) && e.refusesRun() {
			return err // the host undoes an unconfirmed change by itself
		}
		over := fmt.Errorf("no answer within %s", o.Deadlines.Undo+o.Deadlines.Return)
		if time.Now().Before(g.until) {
			over = pause(ctx, o.Poll)
		}
		if over != nil {
			return g.cutOff(and(cmp.Or(missing, err), over))
		}
	}
}

// decide asks the host, where confirmation and undo race on one atomic mv. missing says why a
// path has no new connection. An error without done means that a connection broke, or that
// nothing is decided yet.
func (g *guarded) decide(ctx context.Context, missing error) (done bool, err error) {
	path, conn := g.standing()
	switch {
	case g.change.Guard.Restore == nil && missing == nil: // there is no undo, and all paths work
		g.keep()
		if g.failed == nil {
			_, g.failed = g.conn.Run(ctx, g.change.Guard.Persist, secret.Value{})
		}
		return true, g.failed
	case g.change.Guard.Restore == nil, conn == nil:
		return false, missing
	}
	state, undone, err := g.ask(ctx, conn, missing)
	if err != nil {
		conn.Close()
		delete(g.have, path)
		return false, err
	}
	switch state {
	case "confirmed":
		return true, g.persist(ctx)
	case "undone":
		g.keep()
		g.failed = cmp.Or(g.failed, missing)
		return true, g.rolledBack(undone)
	}
	return false, fmt.Errorf("the change is %s on the host", state)
}

// ask confirms the change if all paths work, requests the undo if it failed, and returns its
// state: armed, undoing, undone or confirmed (possibly earlier, with a lost answer).
func (g *guarded) ask(ctx context.Context, conn *Conn, missing error) (state string, undone plan.Undone, err error) {
	if g.failed == nil && missing == nil {
		if confirmed, err := g.confirm(ctx, conn); confirmed || err != nil {
			return "confirmed", plan.Undone{}, err
		}
	}
	if g.failed != nil && !g.asked {
		if _, err := conn.own(ctx, "undo-now", g.id, "the change failed"); err != nil {
			return "", plan.Undone{}, err
		}
		g.asked = true
	}
	a, err := conn.own(ctx, "undo-state", g.id)
	state, rest, _ := strings.Cut(a.Stdout, "\n")
	undone, _ = parseUndone(rest)
	return state, undone, err
}

// standing returns an open connection, preferably over the preferred path.
func (g *guarded) standing() (string, *Conn) {
	for _, path := range g.paths {
		if conn := g.have[path]; conn != nil {
			return path, conn
		}
	}
	return "", nil
}

// confirm confirms the change. It returns false without an error if the change is still
// running, failed, or was undone.
func (g *guarded) confirm(ctx context.Context, conn *Conn) (bool, error) {
	a, err := conn.own(ctx, "undo-confirm", g.id, string(g.step))
	switch a.Exit {
	case undoFailed:
		a.Exit, _ = strconv.Atoi(strings.TrimSpace(a.Stdout)) // the change's own exit code
		g.failed = &ScriptError{Host: g.target.name(), Script: g.change.Command.Name, Answer: a}
		return false, nil
	case undoTaken, undoRunning:
		return false, nil
	}
	return err == nil, err
}

// persist makes the confirmed change survive a reboot.
func (g *guarded) persist(ctx context.Context) error {
	g.keep()
	_, failed := g.conn.Run(ctx, g.change.Guard.Persist, secret.Value{})
	if _, err := g.conn.own(ctx, "undo-drop", g.id); failed == nil {
		failed = err
	}
	if failed != nil {
		return fmt.Errorf("the change is active, but does not survive a reboot yet: %w", failed)
	}
	return nil
}

func (g *guarded) rolledBack(u plan.Undone) error {
	why := cmp.Or(u.Why, "no reason given")
	back, remedy := fmt.Errorf("%s was undone: %s", g.step, why),
		"the host is unchanged; fix what the change does to its connections, then run macfleet plan"
	if u.Exit != 0 {
		back = fmt.Errorf("the undo of %s (%s) failed with exit code %d", g.step, why, u.Exit)
		remedy = "check the host first: macfleet plan shows the differences"
	}
	if g.failed != nil {
		back = fmt.Errorf("%w: %w", back, g.failed)
	}
	return g.target.fails(plan.CodeRolledBack, Undoing, back, remedy)
}

// cutOff returns the error for a change whose state is unknown.
func (g *guarded) cutOff(err error) error {
	reboot := "macfleet reboot " + g.target.name()
	remedy := reboot + ": an unconfirmed change is also undone at boot"
	if g.change.Guard.Restore == nil {
		remedy = reboot + ": the change does not survive a reboot"
	}
	return g.target.fails(codeCutOff, Undoing, fmt.Errorf("%s: unknown whether the change is active: %w", g.step, err), remedy)
}

// pause waits, or returns the cause of ctx's end.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
