package app

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/scaleway"
)

// AccountOptions are the flags of doctor account.
type AccountOptions struct {
	JSON bool
}

// DoctorAccount checks the provider's account: the API key, its rights, and the project's servers and SSH keys. It
// contacts no host and changes nothing.
func DoctorAccount(ctx context.Context, env *Env, o AccountOptions) error {
	return env.with(ctx, need{readOnly: true, accountOnly: true}, func(looking context.Context, s *session) error {
		client, err := s.servers()
		if err != nil {
			return err
		}
		seen := s.account(looking, client)
		if looking.Err() != nil {
			return context.Cause(looking)
		}
		account := doctor.ExamineAccount(seen)
		err = env.answer(o.JSON, func(w io.Writer) error { return view.WriteAccount(w, account) }, func(t *view.Text) { t.Account(account) })
		if err != nil {
			return err
		}
		return result(false, account.Healthy)
	})
}

// account reads what the provider says about the account.
func (s *session) account(ctx context.Context, client *scaleway.Client) doctor.AccountSeen {
	seen := doctor.AccountSeen{Vendor: s.config.Vendor(), Now: time.Now(), AccessKey: client.AccessKey(), Project: client.Project(), Zones: client.Zones()}
	seen.Servers, seen.Listed = client.List(ctx)
	seen.Key, seen.KeyErr = client.APIKey(ctx)
	if seen.Listed == nil {
		snap := plan.Snapshot{Servers: seen.Servers, Nodes: inventory.Absent[[]inventory.Node](), Cluster: inventory.Absent[inventory.Cluster]()}
		seen.Roles = plan.Placements(s.config, snap)
	}
	if seen.Listed == nil && len(seen.Servers) == 0 {
		elsewhere := client.Elsewhere(ctx)
		seen.Elsewhere = &elsewhere
	}
	var keys []plan.FleetKey
	keys, seen.FleetKeyErr = s.ownKeys(ctx)
	e := engine.Engine{Config: s.config, Servers: client, FleetKeys: keys, Scrub: s.env.secrets.Scrub}
	seen.Keyring = e.Keyring(ctx)
	seen.Rights = s.rights(ctx, client, seen)
	seen.Quotas, seen.QuotasErr = client.Quotas(ctx)
	return seen
}

// ownKeys returns the public halves of the keys that hosts must accept.
func (s *session) ownKeys(ctx context.Context) ([]plan.FleetKey, error) {
	if err := s.openCluster(); err != nil && s.config.SSH.PrivateKey.IsZero() {
		return nil, err
	}
	var o hosts.Options
	if err := s.fleetKey(ctx, &o); err != nil {
		return nil, err
	}
	return fleetKeys(o), nil
}

// mostRead is how many servers are read for a password: an older one may have none any more.
const mostRead = 3

// rights tests the rights that can be tested without a change.
func (s *session) rights(ctx context.Context, client *scaleway.Client, seen doctor.AccountSeen) []doctor.Right {
	all := []doctor.Right{{Name: "list servers", Err: seen.Listed}}
	usable := slices.DeleteFunc(slices.Clone(seen.Servers), func(v inventory.Server) bool { return !v.Usable() })
	// A server of the pool first: no host depends on the time of its last update.
	slices.SortStableFunc(usable, func(a, b inventory.Server) int { return rank(seen.Roles[a.ID]) - rank(seen.Roles[b.ID]) })
	read, passwords, rename := doctor.Right{Name: "read servers"}, doctor.Right{Name: "read login passwords"}, doctor.Right{Name: "rename servers"}
	if len(usable) == 0 {
		why := "there is no server that is ready"
		if seen.Listed != nil {
			why = "the servers could not be listed"
		}
		read.Why, passwords.Why, rename.Why = why, why, why
	} else {
		one := usable[0]
		_, read.Err = client.Get(ctx, one.Zone, one.ID)
		passwords.Why, passwords.Err = disclosed(ctx, client, usable[:min(len(usable), mostRead)])
		rename.Err = client.CheckRename(ctx, one.Zone, one.ID)
	}
	keys := doctor.Right{Name: "list SSH keys"}
	_, keys.Err = client.Keys(ctx)
	return append(all, read, passwords, rename, keys)
}

func rank(role string) int {
	if role == "pool" {
		return 0
	}
	return 1
}

// disclosed reports whether the API key reads the password of one of these servers.
func disclosed(ctx context.Context, client *scaleway.Client, servers []inventory.Server) (why string, err error) {
	for _, v := range servers {
		_, err := client.Passwords(ctx, v.Zone, v.ID)
		switch {
		case errors.Is(err, scaleway.ErrNotDisclosed):
			continue
		case errors.Is(err, scaleway.ErrSealed):
			return "", &sealedError{err}
		}
		return "", err
	}
	return "no server that was read has a password any more", nil
}

// sealedError says that the API key may not read passwords.
type sealedError struct{ error }

// Is reports that it is a missing right.
func (*sealedError) Is(target error) bool { return target == inventory.ErrDenied }
