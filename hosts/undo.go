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
	target Target           // with the host key of conn, which every new connection must show
	paths  []string         // those that worked before the change
	late   time.Time        // from then on the host takes it back by itself
	until  time.Time        // until then it must answer again
	failed error            // why the change must not stay
	asked  bool             // the host was told to take it back
	have   map[string]*Conn // new connections, by path
}

// RunGuarded runs a change that may cut the line. The host is armed to take it
// back by itself, new connections over every path that worked before confirm it,
// and only then is it made to last. The connection is replaced by a new one.
//
// An error means that the change does not stand, or that nobody knows: an *Error
// with the code "rolled-back", "undo-armed", "cut-off", or of a connection; a
// *ScriptError where nothing was changed or only the last part is missing.
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
		g.failed = nil // nobody knows whether it did
	}
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
	g := &guarded{conn: c, step: step, change: ch, id: rand.Text()[:16], target: c.same(), have: make(map[string]*Conn)}
	// What cannot be sent must not be found out when the host is armed.
	_, _, err := c.client.send(c.fence(), []question{{id: "change", Command: g.wrapped()}}, g.undoLimit())
	return g, err
}

// same is the host of this connection, with its key pinned.
func (c *Conn) same() Target {
	t := c.target
	t.Trust = plan.Trust{Pin: &plan.Pin{Name: t.name(), ServerID: t.Server.ID, Key: keyText(c.key)}}
	return t
}

// wrapped is the change's own script, in one that keeps its answer on the host.
func (g *guarded) wrapped() plan.Command {
	command := g.change.Command
	wrapped := own("undo-change", plan.Root, append([]string{g.id, seconds(g.undoLimit()), g.conn.client.opts.Prologue + command.Script}, command.Args...)...)
	wrapped.Name = command.Name
	return wrapped
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
		case ctx.Err() != nil, errors.As(err, &e) && e.Code == codeKeyRefused:
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
	a, err := g.conn.own(ctx, "undo-arm", append(args, restore.Args...)...)
	if a.Exit != undoTaken {
		return err
	}
	left, step, _ := strings.Cut(strings.TrimSpace(a.Stdout), " ")
	n, _ := strconv.Atoi(left) // a number that cannot be read is as good as none
	return g.target.fails(plan.CodeUndoArmed, Undoing,
		fmt.Errorf("a change of %s is not confirmed yet; the host takes it back within %s", step, time.Duration(max(0, n))*time.Second))
}

// keep makes one of the new connections the one to go on with, that of the
// preferred path, and closes the others.
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

// become replaces the connection by another one to the same host.
func (c *Conn) become(other *Conn) {
	c.Close()
	target := c.target
	*c = *other
	c.target = target
}

func seconds(d time.Duration) string { return strconv.Itoa(max(1, int(d/time.Second))) }

var codeCutOff = plan.NewCode("cut-off", plan.Critical, "nobody knows whether a change stands: the host answers on no path",
	"reboot the Mac: what was not confirmed is taken back at the next boot, too")

// reach opens new connections over the paths that have none. The error says why
// one of them does not work.
func (g *guarded) reach(ctx context.Context) error {
	if !g.late.IsZero() && time.Now().After(g.late) {
		// The host may have refused the key because of the change.
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

// and joins two errors in one line.
func and(a, b error) error {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return fmt.Errorf("%w; %w", a, b)
}

// settle asks until it is known whether the change stands, as long as the host may take
// for it.
func (g *guarded) settle(ctx context.Context) error {
	o := g.conn.client.opts
	for {
		missing := g.reach(ctx)
		done, err := g.decide(ctx, missing)
		if done {
			return err
		}
		if e := new(Error); errors.As(err, &e) && e.refusesRun() {
			return err // what is not confirmed the host takes back by itself
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

// decide asks the host, which decides: a confirmation and the undo race on one mv
// there. missing says why a path has no new connection. An error without done means
// that a connection broke, or that nothing is decided yet.
func (g *guarded) decide(ctx context.Context, missing error) (done bool, err error) {
	path, conn := g.standing()
	switch {
	case g.change.Guard.Restore == nil && missing == nil: // nothing can take it back, and all paths work
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

// ask confirms the change where all paths work, has it taken back where it failed, and
// returns whether it is armed, undoing, undone or confirmed: by this run, whose answer
// may have been lost.
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

// standing returns a connection that stands, the preferred path's first.
func (g *guarded) standing() (string, *Conn) {
	for _, path := range g.paths {
		if conn := g.have[path]; conn != nil {
			return path, conn
		}
	}
	return "", nil
}

// confirm lets the change stand. It is false, without an error, where the change
// is not at its end, failed, or was taken back.
func (g *guarded) confirm(ctx context.Context, conn *Conn) (bool, error) {
	a, err := conn.own(ctx, "undo-confirm", g.id, string(g.step))
	switch a.Exit {
	case undoFailed:
		a.Exit, _ = strconv.Atoi(strings.TrimSpace(a.Stdout)) // the change's own
		g.failed = &ScriptError{Host: g.target.name(), Script: g.change.Command.Name, Answer: a}
		return false, nil
	case undoTaken, undoRunning:
		return false, nil
	}
	return err == nil, err
}

// persist makes the confirmed change outlive a boot.
func (g *guarded) persist(ctx context.Context) error {
	g.keep()
	_, failed := g.conn.Run(ctx, g.change.Guard.Persist, secret.Value{})
	if _, err := g.conn.own(ctx, "undo-drop", g.id); failed == nil {
		failed = err
	}
	if failed != nil {
		return fmt.Errorf("the change is confirmed and does not outlive a boot yet: %w", failed)
	}
	return nil
}

func (g *guarded) rolledBack(u plan.Undone) error {
	why := cmp.Or(u.Why, "the host does not say why")
	back, remedy := fmt.Errorf("%s was taken back: %s", g.step, why),
		"the host is as it was before: mend what the change does to its connections, then run macfleet plan"
	if u.Exit != 0 {
		back = fmt.Errorf("%s was to be taken back (%s), and that failed with exit %d", g.step, why, u.Exit)
		remedy = "look at the host before anything else: macfleet plan shows what differs"
	}
	if g.failed != nil {
		back = fmt.Errorf("%w: %w", back, g.failed)
	}
	return g.target.fails(plan.CodeRolledBack, Undoing, back, remedy)
}

// cutOff says that nobody knows how the change ended.
func (g *guarded) cutOff(err error) error {
	remedy := "reboot the Mac from the Scaleway console: what was not confirmed is taken back at the next boot, too"
	if g.change.Guard.Restore == nil {
		remedy = "reboot the Mac from the Scaleway console: the change was not made to outlive a boot"
	}
	return g.target.fails(codeCutOff, Undoing, fmt.Errorf("%s: nobody knows whether the change stands: %w", g.step, err), remedy)
}

// pause waits, or returns why ctx ended.
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
