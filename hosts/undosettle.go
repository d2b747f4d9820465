package hosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/plan"
)

var codeCutOff = plan.NewCode("cut-off", plan.Critical, "nobody knows whether a change stands: the host answers on no path",
	"reboot the Mac: what was not confirmed is taken back at the next boot, too")

// reach opens new connections over the paths that have none. The error says why
// one of them does not work.
func (g *guarded) reach(ctx context.Context, have map[string]*Conn) error {
	if !g.late.IsZero() && time.Now().After(g.late) {
		// The host may have refused the key because of the change.
		g.conn.client.turns.forgive(ctx, g.target.id())
		g.late = time.Time{}
	}
	var failed error
	for _, path := range g.missing(have) {
		conn, err := g.conn.client.along(ctx, g.target, path)
		if err != nil {
			failed = and(failed, fmt.Errorf("no new connection over %s: %w", path, err))
			continue
		}
		have[path] = conn
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

// reachAll asks until every path that worked before works again, as long as the
// host may take for it.
func (g *guarded) reachAll(ctx context.Context) (map[string]*Conn, error) {
	have := make(map[string]*Conn)
	for {
		err := g.reach(ctx, have)
		if err == nil {
			return have, nil
		}
		if perr := g.pause(ctx); perr != nil {
			closeAll(have)
			return nil, g.cutOff(and(err, perr))
		}
	}
}

// settle asks until it is known whether the change stands. The host decides: a
// confirmation and the undo race on one mv there.
func (g *guarded) settle(ctx context.Context) error {
	have := make(map[string]*Conn)
	for {
		missing := g.reach(ctx, have)
		done, err := g.decide(ctx, have, missing)
		if done {
			return err
		}
		if e := new(Error); errors.As(err, &e) && e.refusesRun() {
			closeAll(have)
			return err // what is not confirmed the host takes back by itself
		}
		if missing == nil {
			missing = err
		}
		if perr := g.pause(ctx); perr != nil {
			closeAll(have)
			return g.cutOff(and(missing, perr))
		}
	}
}

// decide confirms the change where all paths work, has it taken back where it
// failed, and looks whether it was. An error without done means that a connection
// broke, or that nothing is decided yet.
func (g *guarded) decide(ctx context.Context, have map[string]*Conn, missing error) (done bool, err error) {
	path, conn := g.standing(have)
	if conn == nil {
		return false, missing
	}
	if g.failed == nil && missing == nil {
		confirmed, err := g.confirm(ctx, conn)
		switch {
		case err != nil:
			g.drop(have, path)
			return false, err
		case confirmed:
			return true, g.persist(ctx, have)
		}
	}
	if g.failed != nil && !g.asked {
		if _, err := conn.checked(ctx, own("undo-now", plan.Root, g.id, "the change failed")); err != nil {
			g.drop(have, path)
			return false, err
		}
		g.asked = true
	}
	state, undone, err := g.state(ctx, conn)
	switch {
	case err != nil:
		g.drop(have, path)
		return false, err
	case state == "confirmed": // by this run, whose answer was lost
		return true, g.persist(ctx, have)
	case state != "undone":
		return false, fmt.Errorf("the change is %s on the host", state)
	}
	g.keep(have)
	if g.failed == nil {
		g.failed = missing
	}
	return true, g.rolledBack(undone)
}

// standing returns a connection that stands, the preferred path's first.
func (g *guarded) standing(have map[string]*Conn) (string, *Conn) {
	for _, path := range g.paths {
		if conn := have[path]; conn != nil {
			return path, conn
		}
	}
	return "", nil
}

func (g *guarded) drop(have map[string]*Conn, path string) {
	have[path].Close()
	delete(have, path)
}

// confirm lets the change stand. It is false, without an error, where the change
// is not at its end, failed, or was taken back.
func (g *guarded) confirm(ctx context.Context, conn *Conn) (bool, error) {
	command := own("undo-confirm", plan.Root, g.id, string(g.step))
	a, err := conn.Run(ctx, command)
	switch {
	case err != nil:
		return false, err
	case a.Exit == undoFailed:
		a.Exit, _ = strconv.Atoi(strings.TrimSpace(a.Stdout)) // the change's own
		g.failed = &ScriptError{Host: g.target.name(), Script: g.change.Command.Name, Answer: a}
	case a.Exit == 0:
		return true, nil
	case a.Exit != undoTaken && a.Exit != undoRunning:
		return false, &ScriptError{Host: g.target.name(), Script: command.Name, Answer: a}
	}
	return false, nil
}

// state asks whether the change is armed, undoing, undone or confirmed.
func (g *guarded) state(ctx context.Context, conn *Conn) (string, plan.Undone, error) {
	a, err := conn.checked(ctx, own("undo-state", plan.Root, g.id))
	state, rest, _ := strings.Cut(a.Stdout, "\n")
	undone, _ := parseUndone(rest)
	return state, undone, err
}

// persist makes the confirmed change outlive a boot.
func (g *guarded) persist(ctx context.Context, have map[string]*Conn) error {
	g.keep(have)
	_, failed := g.conn.checked(ctx, g.change.Guard.Persist)
	if _, err := g.conn.checked(ctx, own("undo-drop", plan.Root, g.id)); failed == nil {
		failed = err
	}
	if failed != nil {
		return fmt.Errorf("the change is confirmed and does not outlive a boot yet: %w", failed)
	}
	return nil
}

func (g *guarded) rolledBack(u plan.Undone) error {
	back := &RolledBackError{Host: g.target.name(), Step: g.step, Why: u.Why, Exit: u.Exit, Err: g.failed}
	if back.Why == "" {
		back.Why = "the host does not say why"
	}
	remedy := "the host is as it was before: mend what the change does to its connections, then run macfleet plan"
	if back.Exit != 0 {
		remedy = "look at the host before anything else: macfleet plan shows what differs"
	}
	return &Error{Host: back.Host, Code: plan.CodeRolledBack, Phase: Undoing, Err: back, Remedy: remedy}
}

// cutOff says that nobody knows how the change ended.
func (g *guarded) cutOff(err error) error {
	remedy := "reboot the Mac from the Scaleway console: what was not confirmed is taken back at the next boot, too"
	if g.change.Guard.Restore == nil {
		remedy = "reboot the Mac from the Scaleway console: the change was not made to outlive a boot"
	}
	return &Error{Host: g.target.name(), Code: codeCutOff, Phase: Undoing, Remedy: remedy,
		Err: fmt.Errorf("%s: nobody knows whether the change stands: %w", g.step, err)}
}

// pause waits for the next look at the host. It returns an error when there is
// none: the host had all the time it needs, or ctx ended.
func (g *guarded) pause(ctx context.Context) error {
	o := g.conn.client.opts
	if time.Now().After(g.until) {
		return fmt.Errorf("no answer within %s", o.Deadlines.Undo+o.Deadlines.Return)
	}
	return pause(ctx, o.Poll)
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
