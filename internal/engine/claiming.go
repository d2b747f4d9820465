package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// claiming is the state of a worker's claim.
type claiming struct {
	wanted    bool        // one of the actions claims the host from the pool
	checked   bool        // macfleet may rename the server
	granted   bool        // this run wrote, or may have written, the sudoers file
	taken     *plan.Claim // the claim on the host; nil: not taken
	lost      bool        // another run's claim is on the host
	won       bool        // the server has its new name
	unsure    bool        // unknown whether it has
	undoTried bool
}

// ErrClaimLost reports that another run claimed the host first. The next run takes another
// server.
var ErrClaimLost = errors.New("another run claimed the host first")

// claim takes a server from the pool: first with a file on the host, which is atomic, then by
// renaming it. A server that left the pool since the plan is not touched.
func (w *worker) claim(ctx context.Context) error {
	if err := w.asPlanned(ctx); err != nil {
		return err
	}
	if err := w.mayJoinAll(ctx); err != nil {
		return err
	}
	ours, err := w.claimHost(ctx)
	if err != nil {
		return err
	}
	w.taken = &ours
	if err := w.engine.checkLock(); err != nil {
		return err
	}
	return w.completeClaim(ctx)
}

// claimHost creates the claim on the host, or finds the one of an earlier run of this configuration.
func (w *worker) claimHost(ctx context.Context) (plan.Claim, error) {
	if err := w.connect(ctx); err != nil {
		return plan.Claim{}, err
	}
	ours := plan.ClaimOf(w.engine.Config.Owner, w.host.Name, w.host.Server.ID)
	ours.Nonce = rand.Text()
	found := ours
	if _, err := w.conn.Do(ctx, TakeClaim{&found}); err != nil {
		return plan.Claim{}, err
	}
	if w.lost = !found.Same(ours); w.lost {
		owner := fleet.Owner{Name: found.Configuration, Environment: found.Environment}
		return plan.Claim{}, fmt.Errorf("%w as %s of %s; apply again to claim another server", ErrClaimLost, found.Name, owner)
	}
	w.claimed = true
	return found, nil
}

// asPlanned returns an error if the server left the pool since the plan.
func (w *worker) asPlanned(ctx context.Context) error {
	s := w.host.Server
	now, err := w.engine.Servers.Get(ctx, s.Zone, s.ID)
	if err == nil && now.DeletionScheduled {
		return plan.CodeDeletionScheduled.Trouble("the deletion of server "+s.Name+" was scheduled after the plan was made",
			"plan again to claim another server, or cancel the deletion in the provider's console")
	}
	if err == nil && (now.Name != s.Name || !now.Usable()) {
		err = fmt.Errorf("the server changed since the plan: name %s, status %s; plan again", now.Name, now.Status)
	}
	return err
}

// mayClaim checks, before the first connection to the host, that its server is still in the
// pool and may be renamed. Otherwise every pool host that is tried would be left with
// passwordless sudo.
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
	err := w.engine.checkRename(ctx, s)
	if t := (*plan.Trouble)(nil); errors.As(err, &t) {
		denied = t
	}
	w.checked = err == nil
	return err
}

// listed finds the host's server in the inventory.
func (w *worker) listed(ctx context.Context) (s inventory.Server, there bool, err error) {
	all, err := w.engine.Servers.List(ctx)
	i := slices.IndexFunc(all, func(s inventory.Server) bool { return s.ID == w.host.Server.ID })
	if err != nil || i < 0 {
		return s, false, err
	}
	return all[i], true, nil
}

// completeClaim renames the server, which completes the claim. After an error the name may have
// changed anyway, so it asks the inventory.
func (w *worker) completeClaim(ctx context.Context) error {
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
		return fmt.Errorf("%w; its current name cannot be read: %w", err, lerr)
	}
	return err
}

// attempt performs an action. If it fails before the claim is complete, the claim is undone.
func (w *worker) attempt(ctx context.Context, a plan.Action) error {
	err := w.perform(ctx, a)
	if err == nil {
		return nil
	}
	err = w.uncordonUnchanged(ctx, err)
	undone, uerr := w.undoClaim(ctx)
	switch {
	case uerr != nil:
		return fmt.Errorf("%w; %w", err, uerr)
	case undone != "":
		return fmt.Errorf("%w; %s", err, undone)
	}
	return err
}

// undoStoppedClaim undoes a claim if the run stopped between two of its actions.
func (w *worker) undoStoppedClaim(ctx context.Context, r *Result) {
	if _, err := w.undoClaim(ctx); err != nil {
		r.Failures = append(r.Failures, Failure{Action: *actionOn(&w.host, plan.ClaimServer), Err: w.engine.scrubError(err)})
	}
}

// undoClaim undoes a failed claim on its host: the claim file, and the sudoers file if this
// run wrote it and no other claim relies on it. The error says what was left where, and how
// to remove it.
func (w *worker) undoClaim(ctx context.Context) (undone string, err error) {
	if !w.wanted || w.won || w.undoTried || !w.granted && w.taken == nil {
		return "", nil
	}
	w.undoTried = true
	if w.lost {
		return "", nil
	}
	err = w.mayUndoClaim(ctx)
	if err == nil {
		undone, err = w.dropClaim(ctx)
	}
	if err != nil && w.mayUndoClaim(ctx) == nil && w.conn == nil { // the connection broke: retry on a new one
		undone, err = w.dropClaim(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w. %s", w.leftBehind(), err, w.removal())
	}
	return undone, nil
}

// mayUndoClaim returns why the claim must not be undone, or nil.
func (w *worker) mayUndoClaim(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case w.unsure:
		return errors.New("the claim may be complete; apply again when Scaleway answers: it then finishes or undoes the claim")
	}
	return w.engine.checkLock()
}

// dropClaim removes the claim together with the sudoers file. It takes the claim first if
// necessary, so that no other run can rely on that file.
func (w *worker) dropClaim(ctx context.Context) (undone string, err error) {
	defer func() {
		if err != nil && w.conn != nil {
			w.conn.Close(ctx)
			w.conn = nil
		}
	}()
	err = w.connect(ctx)
	switch {
	case err != nil && w.belongsToOthers():
		return "", nil
	case err != nil:
		return "", err
	}
	if w.taken == nil {
		seen := w.conn.Observe(ctx, nil)
		if seen.Trouble != nil {
			return "", seen.Trouble
		}
		if !seen.Root {
			w.granted = false // the sudoers file was not written
			return "", nil
		}
		found, err := w.claimHost(ctx)
		if errors.Is(err, ErrClaimLost) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		w.taken = &found
	}
	task := DropClaim{Claim: *w.taken}
	if w.granted {
		task.Root, undone = plan.SudoersFile, plan.SudoersFile+" was removed from the host"
	}
	_, err = w.conn.Do(ctx, task)
	return undone, err
}

// belongsToOthers reports whether the host, as last read, belongs to someone else, and so does its
// sudoers file.
func (w *worker) belongsToOthers() bool {
	claim, claimed := w.host.Seen.Claim.Get()
	_, marked := w.host.Seen.Marker.Get()
	return marked || claimed && !claim.Same(plan.ClaimOf(w.engine.Config.Owner, w.host.Name, w.host.Server.ID))
}

// leftBehind says what a failed claim left behind.
func (w *worker) leftBehind() string {
	s := w.host.Server
	if !w.granted {
		return fmt.Sprintf("/etc/macfleet/claim.json was left on %s (%s)", s.Name, s.Address)
	}
	return fmt.Sprintf("%s was left on %s (%s): it gives %s passwordless sudo", plan.SudoersFile, s.Name, s.Address, w.host.Spec.User)
}

// removal returns the command that removes it.
func (w *worker) removal() string {
	files := "/etc/macfleet/claim.json"
	if w.granted {
		files += " " + plan.SudoersFile
	}
	return fmt.Sprintf("To remove it: ssh %s@%s sudo rm -f %s", w.host.Spec.User, w.host.Server.Address, files)
}
