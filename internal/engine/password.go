package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// Codes of missing passwords.
var (
	CodePasswordNotDisclosed = plan.NewCode("password-not-disclosed", plan.Warning, "the login password is needed, and the provider does not report it",
		"enter it once: macfleet apply --ask-password NAME")
	CodeSealedInGet = plan.NewCode("sealed-in-get", plan.Warning, "the login password is needed, and the provider reports <sealed> instead",
		"enter it once: macfleet apply --ask-password NAME")
)

// Passwords finds the login passwords of hosts, as late as possible.
type Passwords interface {
	// Find returns all known passwords of a host in the order to try them. If there is none,
	// the error is a *plan.Trouble.
	Find(ctx context.Context, server inventory.Server, host string) ([]Password, error)
}

// Password is a login password and a description of its source.
type Password struct {
	Value  secret.Value
	Source string
}

// password returns the first known password that the host has not refused, and the seal of an
// earlier try noted on the host, if any.
func (e *Engine) password(ctx context.Context, h plan.Host) (Password, secret.Seal, *plan.Trouble) {
	if e.Passwords == nil {
		return Password{}, "", plan.MissingPassword(h.Name, plan.CodeMissingSudoPassword, "no source of passwords is available")
	}
	known, err := e.Passwords.Find(ctx, h.Server, h.Name)
	var none *plan.Trouble
	switch {
	case errors.As(err, &none):
		return Password{}, "", plan.MissingPassword(h.Name, none.Code, none.Text)
	case err != nil:
		return Password{}, "", plan.MissingPassword(h.Name, plan.CodeMissingSudoPassword, "the lookup failed: "+err.Error())
	}
	var last plan.Refusal
	var from string
	for _, p := range known {
		i := slices.IndexFunc(h.Seen.Refusals, func(r plan.Refusal) bool { return secret.Seal(r.Seal).Matches(p.Value) })
		if i < 0 {
			return p, "", nil
		}
		if r := h.Seen.Refusals[i]; !r.Spent() {
			return p, secret.Seal(r.Seal), nil
		} else if r.At.After(last.At) {
			last, from = r, p.Source
		}
	}
	return Password{}, "", plan.WrongPassword(h.Name, from, last.At)
}

// findPasswords adds to the snapshot whether the passwords that a plan needs are known.
// more reports whether it added anything; again holds the servers whose role may change.
func (e *Engine) findPasswords(ctx context.Context, snap plan.Snapshot, p *plan.Plan) (again map[string]bool, more bool, err error) {
	wanted := p.PasswordsNeeded()
	found := each(wanted, e.Parallelism, func(h plan.Host) plan.Password {
		known, _, trouble := e.password(ctx, h)
		return plan.Password{Source: known.Source, Trouble: trouble}
	})
	if ctx.Err() != nil {
		return nil, false, context.Cause(ctx)
	}
	again = make(map[string]bool)
	enter := func(id string, w *plan.Password) {
		seen := snap.Hosts[id]
		seen.Password = w
		snap.Hosts[id] = wire.Clean(e.Scrub, seen)
		again[id] = w.Trouble != nil
	}
	for i, h := range wanted {
		enter(h.Server.ID, &found[i])
	}
	// A candidate without a password is replaced by another one.
	for id, t := range p.WithoutRoot() {
		enter(id, &plan.Password{Trouble: t})
	}
	return again, len(again) > 0, nil
}

// givePassword returns the host's login password once the host has accepted it. It is tried
// once per run, and a refusal is noted on the host so that no run tries it again: macOS locks
// an account after a few wrong passwords.
func (w *worker) givePassword(ctx context.Context) (secret.Value, error) {
	if !w.password.IsZero() {
		return w.password, nil
	}
	p, seal, trouble := w.engine.password(ctx, w.host)
	if trouble != nil {
		return secret.Value{}, trouble
	}
	now := w.engine.Now()
	said, err := w.tryPassword(ctx, p, seal, now)
	switch {
	case errors.Is(err, plan.ErrPasswordRefused):
		w.refused = p.Value
		return secret.Value{}, plan.WrongPassword(w.host.Name, p.Source, now)
	case errors.Is(err, plan.ErrAccountLocked):
		return secret.Value{}, plan.LockedAccount(w.host.Name, w.host.Spec.User)
	case errors.Is(err, plan.ErrPasswordRace), errors.Is(err, plan.ErrPasswordBusy):
		return secret.Value{}, fmt.Errorf("%w: nothing was tried; apply again when the other run has ended", err)
	case strings.Contains(said.Stderr, "policy plugin"): // sudo could not parse its rules
		return secret.Value{}, plan.BrokenSudo(w.host.Name, err.Error())
	case err != nil:
		return secret.Value{}, fmt.Errorf("verify the login password from %s: %w", p.Source, err)
	}
	w.password = p.Value
	return w.password, nil
}

// tryPassword lets the host try a password, and waits while another run is trying one there. A
// killed run keeps the host busy for its script's time limit. Asking again is harmless,
// because a busy host tries nothing.
func (w *worker) tryPassword(ctx context.Context, p Password, seal secret.Seal, now time.Time) (plan.Answer, error) {
	e := w.engine
	giveUp := e.Now().Add(passwordBusy)
	for {
		said, err := w.conn.Do(ctx, TryPassword{p.Value, seal, w.host.Seen.Refusals, now})
		if !errors.Is(err, plan.ErrPasswordBusy) || e.Now().After(giveUp) {
			return said, err
		}
		select {
		case <-ctx.Done():
			return said, err
		case <-e.Stop.Done():
			return said, err
		case <-time.After(cmp.Or(e.Ready.Every, DefaultEvery)):
		}
		if err := e.checkLock(); err != nil {
			return said, err
		}
	}
}

// input returns the standard input of a step's script, made from the host's password, its kubelet's token, or what a service admits it with.
func (w *worker) input(ctx context.Context, step plan.Step, kind plan.InputKind) (value secret.Value, err error) {
	join, known := w.host.Join.Get()
	switch {
	case kind == plan.Admission:
		return w.admission(ctx, step)
	case kind == plan.AutoLoginCheck:
		return w.passwordIfKnown(ctx, kind)
	case kind.NeedsPassword():
		value, err = w.givePassword(ctx)
	case w.engine.Cluster == nil:
		err = errNoCluster
	case !known:
		err = fmt.Errorf("the cluster's address for hosts is unknown: %s", w.host.Join.Why())
	default:
		value, err = w.engine.Cluster.Token(ctx, w.host.Name)
	}
	if err != nil {
		return secret.Value{}, err
	}
	return w.engine.Input(InputFor{Kind: kind, Host: w.host.Spec, Join: join}, value)
}

// passwordIfKnown returns the input of a script for which the password is optional: the password, if one is known
// and the host accepts it, or else those that the host has refused, so that none is tried twice.
func (w *worker) passwordIfKnown(ctx context.Context, kind plan.InputKind) (secret.Value, error) {
	in := InputFor{Kind: kind, Host: w.host.Spec}
	value, err := w.givePassword(ctx)
	var none *plan.Trouble
	switch {
	case err == nil:
		return w.engine.Input(in, value)
	case errors.Is(err, plan.ErrPasswordUnchecked):
	case !errors.As(err, &none) || none.Code == plan.CodeSudoLocked || none.Code == plan.CodeSudoersBroken:
		return secret.Value{}, err
	}
	in.Refused = true
	lines := "\n"
	for _, p := range w.refusedPasswords(ctx) {
		if line, err := w.engine.Input(in, p); err == nil { // skip passwords that cannot be encoded
			lines += line.Reveal()
		}
	}
	return secret.New(lines)
}

// refusedPasswords returns the known passwords that the host has refused, in this run or earlier.
func (w *worker) refusedPasswords(ctx context.Context) []secret.Value {
	var out []secret.Value
	if w.engine.Passwords == nil {
		return nil
	}
	known, err := w.engine.Passwords.Find(ctx, w.host.Server, w.host.Name)
	if err != nil {
		return nil // no password is known
	}
	for _, p := range known {
		is := !w.refused.IsZero() && p.Value.Reveal() == w.refused.Reveal()
		if is || slices.ContainsFunc(w.host.Seen.Refusals, func(r plan.Refusal) bool { return r.Refused && secret.Seal(r.Seal).Matches(p.Value) }) {
			out = append(out, p.Value)
		}
	}
	return out
}
