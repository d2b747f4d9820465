package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// SSHKeys is what Servers may also be: a provider that installs SSH keys on servers.
type SSHKeys interface {
	// Keys returns the SSH keys of the project. The error wraps inventory.ErrDenied if the credentials lack
	// the permission.
	Keys(context.Context) ([]inventory.SSHKey, error)
	// RegisterKey adds a public key, "type base64", to the project under a name. A registered key is not changed.
	RegisterKey(ctx context.Context, name, publicKey string) (inventory.SSHKey, error)
}

// keyCheck holds one check of the project's SSH keys in a run, whose result later hosts use. A worker takes it out while
// it asks the provider.
type keyCheck chan keyResult

type keyResult struct {
	done bool
	err  error
}

func newKeyCheck() keyCheck {
	k := make(keyCheck, 1)
	k <- keyResult{}
	return k
}

// Keyring reads the SSH keys of the provider's project. What could not be read is marked in the result; nil: the
// provider has no keys.
func (e *Engine) Keyring(ctx context.Context) *plan.Keyring {
	provider, has := e.Servers.(SSHKeys)
	if !has {
		return nil
	}
	ring := &plan.Keyring{Ours: e.FleetKeys, Project: e.Config.ProjectID}
	keys, err := provider.Keys(ctx)
	if err != nil {
		ring.Registered = inventory.Unread[[]inventory.SSHKey](e.scrubError(err).Error())
	} else {
		ring.Registered = inventory.Present(keys)
	}
	return ring
}

// readKeys adds the project's SSH keys to the snapshot if a plan depends on them.
func (e *Engine) readKeys(ctx context.Context, snap *plan.Snapshot, p *plan.Plan) (read bool, err error) {
	if snap.Keyring != nil || !p.NeedsKeyring() {
		return false, nil
	}
	snap.Keyring = e.Keyring(ctx)
	return snap.Keyring != nil, context.Cause(ctx)
}

// registerKey registers the fleet's keys that the plan showed.
func (e *Engine) registerKey(ctx context.Context, a plan.Action) error {
	provider, has := e.Servers.(SSHKeys)
	if !has {
		return errors.New("the provider has no SSH keys")
	}
	for _, f := range a.Fields {
		i := slices.IndexFunc(e.FleetKeys, func(k plan.FleetKey) bool { return f.After == k.Fingerprint })
		if i < 0 {
			return errors.New("the fleet's SSH key is not the one of the plan; plan again")
		}
		if _, err := provider.RegisterKey(ctx, keyName(e.Config.Owner), e.FleetKeys[i].Public); err != nil {
			return err
		}
	}
	return nil
}

// rotateKey adds the new key to the host, or removes the previous one from it. Both verify the new key by a login.
func (w *worker) rotateKey(ctx context.Context, a plan.Action) error {
	if err := w.connect(ctx); err != nil {
		return err
	}
	var task Task = AuthorizeKey{Comment: keyName(w.engine.Config.Owner)}
	if a.Kind == plan.RetireKey {
		task = RetireKey{}
	}
	if err := w.engine.checkLock(); err != nil {
		return err
	}
	_, err := w.conn.Do(ctx, task)
	return err
}

// keyName is what the fleet's key is called in the project and on hosts.
func keyName(o fleet.Owner) string { return "macfleet " + o.String() }

// checkKey returns an error unless the project has the fleet's key: a server that is installed without it would lock
// macfleet out. The keys are read once in a run.
func (e *Engine) checkKey(ctx context.Context) error {
	result := <-e.keys
	defer func() { e.keys <- result }()
	if result.done {
		return result.err
	}
	ring := e.Keyring(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	switch {
	case ring == nil: // nothing is known of its keys
	case ring.Trouble() != nil:
		result.err = ring.Trouble()
	case ring.Missing():
		result.err = fmt.Errorf("the project does not have the fleet's SSH key %s, so nothing is installed; plan again", ring.Ours[0].Fingerprint)
	}
	result.done = true
	return result.err
}
