package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// Tailnet is the control server of the hosts' tailnet.
type Tailnet interface {
	// Observe reads devices, keys and settings, each once. A server that cannot be read has a Trouble.
	Observe(context.Context) plan.TailnetSeen
	// Device reads one device; absent: there is none with the id.
	Device(ctx context.Context, id string) (inventory.Seen[inventory.Device], error)
	// MayJoin fails unless the credentials may make a key with the configured tags. It leaves no key.
	MayJoin(context.Context) error
	// Key makes a key with which one host joins once, within ten minutes, approved and not ephemeral.
	Key(ctx context.Context, host string) (AuthKey, error)
	// Revoke ends a key. Already used, expired or revoked: nothing to do.
	Revoke(ctx context.Context, id string) error
	// Change performs a change of a device.
	Change(context.Context, plan.DeviceChange) error
}

// AuthKey is a key with which a host joins a tailnet.
type AuthKey struct {
	ID      string // for Revoke; empty: it was made by hand, so macfleet does not revoke it
	Secret  secret.Value
	Expires time.Time // zero: unknown
}

// errNoTailnet reports a plan that needs a tailnet, in a run without one.
var errNoTailnet = errors.New("the configuration has no tailnet")

// tagCheck is the answer to whether the credentials may make keys with the configured tags. A run asks once.
type tagCheck struct {
	turn  sync.Mutex
	asked bool
	err   error
}

// mayJoin fails unless the run may make keys with the configured tags. It is checked before the first host is changed: a host
// that was claimed and cannot join would be half of a member.
func (e *Engine) mayJoin(ctx context.Context) error {
	if e.Tailnet == nil {
		return errNoTailnet
	}
	e.tags.turn.Lock()
	defer e.tags.turn.Unlock()
	if e.tags.asked {
		return e.tags.err
	}
	if err := e.checkLock(); err != nil {
		return err
	}
	err := e.Tailnet.MayJoin(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err = e.controlTrouble(err)
	}
	e.tags.asked, e.tags.err = true, err
	return err
}

// controlTrouble is an error of the control server with its code.
func (e *Engine) controlTrouble(err error) error {
	if inventory.ClassOf(err) == "" {
		return err
	}
	return plan.TailnetTrouble(err, false)
}

// revoking limits how long a key is revoked after the run was cancelled.
const revoking = 20 * time.Second

// tailnetKey returns the input of a script that joins the host. The id of its key is recorded before the host gets it.
func (w *worker) tailnetKey(ctx context.Context) (secret.Value, error) {
	if w.engine.Tailnet == nil {
		return secret.Value{}, errNoTailnet
	}
	k, err := w.engine.Tailnet.Key(ctx, w.host.Name)
	if err != nil {
		return secret.Value{}, w.engine.controlTrouble(err)
	}
	if w.key = k.ID; k.ID != "" {
		w.engine.emit(Event{Type: KeyMade, Host: w.host.Name, Text: k.ID})
	}
	value, err := w.engine.Input(InputFor{Kind: plan.TailnetKey, Host: w.host.Spec}, k.Secret)
	if err != nil {
		return secret.Value{}, w.keyUsed(ctx, err)
	}
	return value, nil
}

// keyUsed ends the key of a join that failed, also when the run was cancelled meanwhile: no daemon may join with it later. A
// key that was used is no more.
func (w *worker) keyUsed(ctx context.Context, failed error) error {
	id := w.key
	if w.key = ""; failed == nil || id == "" {
		return failed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revoking)
	defer cancel()
	if err := w.engine.Tailnet.Revoke(ctx, id); err != nil {
		return errors.Join(failed, fmt.Errorf("the key %s for the tailnet could not be revoked; it expires by itself within ten minutes: %w", id, err))
	}
	w.engine.emit(Event{Type: KeyRevoked, Host: w.host.Name, Text: id})
	return failed
}

// device reads one device; there is false if the tailnet has none with the id.
func (e *Engine) device(ctx context.Context, id string) (d inventory.Device, there bool, err error) {
	if e.Tailnet == nil {
		return d, false, errNoTailnet
	}
	seen, err := e.Tailnet.Device(ctx, id)
	if err == nil && seen.IsUnread() {
		err = errors.New(seen.Why())
	}
	if err != nil {
		return d, false, fmt.Errorf("read device %s of the tailnet: %w", id, err)
	}
	d, there = wire.Clean(e.Scrub, seen).Get()
	return d, there, nil
}

// atControl makes a change at the control server. The device must still be the planned one.
func (w *worker) atControl(ctx context.Context, to plan.DeviceChange) error {
	e := w.engine
	if e.Tailnet == nil {
		return errNoTailnet
	}
	if to.Verb != plan.RevokeKey {
		now, there, err := e.device(ctx, to.Device.ID)
		switch {
		case err != nil:
			return err
		case !there && to.Verb == plan.DeleteDevice:
			return nil // already deleted
		case !there:
			return fmt.Errorf("the tailnet has no device %s any more; plan again", to.Device.ID)
		case to.Verb == plan.DeleteDevice && now.Connected && !to.Device.Connected:
			return fmt.Errorf("device %s of the tailnet connected since the plan: another machine may use it; plan again", now.Name)
		}
	}
	if err := e.checkLock(); err != nil {
		return err
	}
	if err := e.Tailnet.Change(ctx, to); err != nil {
		return e.controlTrouble(err)
	}
	if to.Verb == plan.RevokeKey {
		w.revoked = append(w.revoked, to.Key)
		e.emit(Event{Type: KeyRevoked, Host: w.host.Name, Text: to.Key})
	}
	return nil
}

// viewDevices completes what the step of the tailnet reads: the devices that matter are read again, because the list is older
// than the changes.
func (w *worker) viewDevices(ctx context.Context, k plan.DeviceKeeper, v *plan.View) error {
	if v.Tailnet == nil || v.Tailnet.Trouble != nil || v.Tailnet.Unlisted || w.engine.Tailnet == nil {
		return nil
	}
	now := *v.Tailnet
	var ids []string
	for _, d := range now.Devices {
		ids = append(ids, d.ID)
	}
	if said, is := k.Device(v.Facts); is {
		ids = append(ids, said.ID)
	}
	slices.Sort(ids)
	now.Devices = nil
	for _, id := range slices.Compact(ids) {
		d, there, err := w.engine.device(ctx, id)
		if err != nil {
			return err
		}
		if there {
			now.Devices = append(now.Devices, d)
		}
	}
	keys, _ := now.Keys.Get()
	if !now.Keys.IsUnread() {
		now.Keys = inventory.Present(slices.DeleteFunc(slices.Clone(keys), func(k inventory.DeviceKey) bool { return slices.Contains(w.revoked, k.ID) }))
	}
	v.Tailnet, w.host.Tailnet = &now, &now
	return nil
}

// retireDevice deletes the device of a host that leaves.
func (w *worker) retireDevice(ctx context.Context, a plan.Action) error {
	for _, c := range a.Changes {
		if err := w.atControl(ctx, *c.Device); err != nil {
			return err
		}
	}
	return nil
}

// forgetDevice deletes the device of a host that is gone. It must still be disconnected.
func (e *Engine) forgetDevice(ctx context.Context, a plan.Action) error {
	w := &worker{engine: e, host: plan.Host{Name: a.Host}}
	return w.retireDevice(ctx, a)
}
