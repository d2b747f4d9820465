package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// CodeMayNotRename is raised before anything is done to a server of the pool.
var CodeMayNotRename = plan.NewCode("may-not-rename", plan.NotDrift,
	"the provider does not let macfleet rename servers, so none can be claimed; no host of the pool was touched",
	"give the API key the right to change servers, and apply again")

// claiming is what a worker knows of the claim that its host is to be taken with.
type claiming struct {
	wanted   bool        // the host is of the pool, and one of the actions claims it
	checked  bool        // the right to rename the server is proven
	granted  bool        // this run has written, or may have written, what gives root there
	ours     *plan.Claim // as it stands on the host; nil: not taken
	lost     bool        // another run's claim stands there
	won      bool        // the server bears our name
	unsure   bool        // nobody knows whether it does
	gaveBack bool
}

// renameRight holds what is known of the right to rename: nil, or why there is none. Who
// tries a server takes it out, so that none is tried after the first that is refused.
type renameRight chan *plan.Trouble

func newRenameRight() renameRight {
	r := make(renameRight, 1)
	r <- nil
	return r
}

// asPlanned returns an error where the server has left the pool since the plan.
func (w *worker) asPlanned(ctx context.Context) error {
	s := w.host.Server
	now, err := w.engine.Servers.Get(ctx, s.Zone, s.ID)
	if err == nil && now.DeletionScheduled {
		return plan.CodeDeletionScheduled.Trouble("somebody has scheduled the deletion of server "+s.Name+" since it was planned",
			"plan again, which claims another one; or cancel the deletion in the provider's console")
	}
	if err == nil && (now.Name != s.Name || !now.Usable()) {
		err = fmt.Errorf("the server is not as it was planned: it is called %s, status %s; plan again", now.Name, now.Status)
	}
	return err
}

// mayClaim proves, before the first contact with a host that is to be claimed, that its
// server is still in the pool and may be renamed. Without that right each host of the pool
// that is tried would be left with passwordless sudo.
func (w *worker) mayClaim(ctx context.Context) error {
	if !w.wanted || w.checked {
		return nil
	}
	s, denied := w.host.Server, <-w.engine.renaming
	defer func() { w.engine.renaming <- denied }()
	if denied != nil {
		return denied
	}
	if err := w.asPlanned(ctx); err != nil {
		return err
	}
	err := w.engine.Servers.CheckRename(ctx, s.Zone, s.ID)
	if errors.Is(err, inventory.ErrDenied) {
		// Scaleway denies access to a server that is gone, too.
		if _, there, lerr := w.listed(ctx); lerr == nil && !there {
			return fmt.Errorf("server %s is gone from the inventory; plan again", s.Name)
		}
		denied = CodeMayNotRename.Trouble(err.Error())
		return denied
	}
	w.checked = err == nil
	return err
}

// listed looks for the host's server in the inventory.
func (w *worker) listed(ctx context.Context) (s inventory.Server, there bool, err error) {
	all, err := w.engine.Servers.List(ctx)
	i := slices.IndexFunc(all, func(s inventory.Server) bool { return s.ID == w.host.Server.ID })
	if err != nil || i < 0 {
		return s, false, err
	}
	return all[i], true, nil
}

// take gives the server its name, with which it is ours. An error says nothing about whether
// the name was changed, so the inventory is asked.
func (w *worker) take(ctx context.Context) error {
	s := w.host.Server
	err := w.engine.Servers.Rename(ctx, s.Zone, s.ID, s.Name, w.host.Name)
	if err == nil {
		w.won = true
		return nil
	}
	now, _, lerr := w.listed(ctx)
	w.unsure, w.won = lerr != nil, lerr == nil && now.Name == w.host.Name
	switch {
	case w.won:
		return nil
	case w.unsure:
		return fmt.Errorf("%w; and whether the server bears the new name cannot be read: %w", err, lerr)
	}
	return err
}

// attempt performs an action. Where one fails before the server is ours, what the claim did
// to its host is undone.
func (w *worker) attempt(ctx context.Context, a plan.Action) error {
	err := w.perform(ctx, a)
	if err == nil {
		return nil
	}
	err = w.reopen(ctx, err)
	undone, uerr := w.giveBack(ctx)
	switch {
	case uerr != nil:
		return fmt.Errorf("%w; %w", err, uerr)
	case undone != "":
		return fmt.Errorf("%w; %s", err, undone)
	}
	return err
}

// stoppedShort undoes a claim that was stopped between two actions.
func (w *worker) stoppedShort(ctx context.Context, r *Result) {
	if _, err := w.giveBack(ctx); err != nil {
		r.Failures = append(r.Failures, Failure{Action: *actionOn(&w.host, plan.ClaimServer), Err: w.engine.scrubError(err)})
	}
}

// giveBack takes back what a claim that failed did to its host: the claim itself, and what
// gives root where this run wrote it. What another run's claim stands on is left to that. The
// error says what stayed on which host, and how it is removed.
func (w *worker) giveBack(ctx context.Context) (undone string, err error) {
	if !w.wanted || w.won || w.gaveBack || !w.granted && w.ours == nil {
		return "", nil
	}
	w.gaveBack = true
	if w.lost {
		return "", nil
	}
	err = w.mayGiveBack(ctx)
	if err == nil {
		undone, err = w.dropClaim(ctx)
	}
	if err != nil && w.mayGiveBack(ctx) == nil && w.conn == nil { // the connection broke: once more over a new one
		undone, err = w.dropClaim(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w. %s", w.stayed(), err, w.byHand())
	}
	return undone, nil
}

// mayGiveBack returns why nothing may be undone, or nil.
func (w *worker) mayGiveBack(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case w.unsure:
		return errors.New("the server may be ours by now; apply again when Scaleway answers, which goes on with it or takes it back")
	}
	return w.engine.may()
}

// dropClaim takes the claim back under which nobody else relies on what gives root. Where
// it was not taken yet, it is taken first.
func (w *worker) dropClaim(ctx context.Context) (undone string, err error) {
	defer func() {
		if err != nil && w.conn != nil {
			w.conn.Close(ctx)
			w.conn = nil
		}
	}()
	err = w.connect(ctx)
	switch {
	case err != nil && w.othersNow():
		return "", nil
	case err != nil:
		return "", err
	}
	if w.ours == nil {
		seen := w.conn.Observe(ctx, nil)
		if seen.Trouble != nil {
			return "", seen.Trouble
		}
		if !seen.Root {
			w.granted = false // what was to give root did not
			return "", nil
		}
		found, err := w.claimHost(ctx)
		if errors.Is(err, ErrClaimLost) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		w.ours = &found
	}
	task := DropClaim{Claim: *w.ours}
	if w.granted {
		task.Root, undone = plan.SudoersFile, plan.SudoersFile+" was removed from the host again"
	}
	_, err = w.conn.Do(ctx, task)
	return undone, err
}

// othersNow reports whether the host, as it was read last, is somebody else's: what gives
// root there is theirs now.
func (w *worker) othersNow() bool {
	claim, claimed := w.host.Seen.Claim.Get()
	_, marked := w.host.Seen.Marker.Get()
	return marked || claimed && !claim.Same(plan.ClaimOf(w.engine.Config.Owner, w.host.Name, w.host.Server.ID))
}

// stayed says what a claim that failed has left behind.
func (w *worker) stayed() string {
	s := w.host.Server
	if !w.granted {
		return fmt.Sprintf("/etc/macfleet/claim.json stayed on %s (%s)", s.Name, s.Address)
	}
	return fmt.Sprintf("%s stayed on %s (%s), with which %s becomes root there without a password", plan.SudoersFile, s.Name, s.Address, w.host.Spec.User)
}

// byHand says how that is removed.
func (w *worker) byHand() string {
	files := "/etc/macfleet/claim.json"
	if w.granted {
		files += " " + plan.SudoersFile
	}
	return fmt.Sprintf("To remove it by hand: ssh %s@%s sudo rm -f %s", w.host.Spec.User, w.host.Server.Address, files)
}
