package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
)

// Account is the name that stands for the provider's account, instead of a host's, in incidents that
// affect the account or the pool.
const Account = "scaleway"

// AccountIncidents returns the incidents of the account and the pool.
func AccountIncidents() []Incident {
	var all []Incident
	for _, known := range accountTroubles() {
		all = append(all, known.Incident)
	}
	return all
}

// AccountOpen returns the account's incidents that are not healed yet.
func (w *World) AccountOpen() ([]string, error) {
	open, err := w.incidentsOf(Account)
	return open.names(), err
}

// target returns the server on which an incident is injected. The account has no server.
func (w *World) target(host string, t trouble) (cloud.Server, error) {
	if (host == Account) == t.account {
		if t.account {
			return cloud.Server{ID: Account, Name: Account}, nil
		}
		return w.find(host)
	}
	if t.account {
		return cloud.Server{}, fmt.Errorf("%s is an incident of the account, not of a host; fix: macfleet sandbox inject %s %s", t.Name, Account, t.Name)
	}
	return cloud.Server{}, fmt.Errorf("%s is an incident of a host, not of the account; macfleet sandbox list shows the hosts", t.Name)
}

// on adapts an incident of a host to one of the account: the world chooses the host.
func on(choose func(*World, []cloud.Server) (cloud.Server, error), t trouble) trouble {
	whole := t
	whole.account = true
	whole.remember = func(ctx context.Context, v *victim) error {
		all, err := v.world.cloud.Servers()
		if err != nil {
			return err
		}
		slices.SortFunc(all, func(a, b cloud.Server) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
		server, err := choose(v.world, all)
		if err != nil {
			return err
		}
		v.record.Server = server.ID
		return t.remember(ctx, &victim{v.world, server, v.record})
	}
	chosen := func(do func(context.Context, *victim) error) func(context.Context, *victim) error {
		return func(ctx context.Context, v *victim) error {
			server, found, err := v.world.cloud.Server(v.record.Server)
			if err != nil || !found {
				return err
			}
			return do(ctx, &victim{v.world, server, v.record})
		}
	}
	whole.cause, whole.cure = chosen(t.cause), chosen(t.cure)
	whole.lasts = func(ctx context.Context, v *victim) (lasts bool, err error) {
		err = chosen(func(ctx context.Context, v *victim) (err error) {
			lasts, err = t.lasts(ctx, v)
			return err
		})(ctx, v)
		return lasts, err
	}
	return whole
}

// pooled reports whether a server is in the pool and free.
func (w *World) pooled(s cloud.Server) bool {
	return strings.HasPrefix(s.Name, w.settings.PoolPrefix) && s.Delivered && s.Status == "ready" && s.ProjectID == w.settings.ProjectID
}

// firstPooled chooses a free server of the pool.
func firstPooled(w *World, all []cloud.Server) (cloud.Server, error) {
	if i := slices.IndexFunc(all, w.pooled); i >= 0 {
		return all[i], nil
	}
	return cloud.Server{}, fmt.Errorf("the pool has no free server; fix: macfleet sandbox heal, or a world with more of them (--sandbox-hosts)")
}

// firstMember chooses a server that someone uses, else one of the pool.
func firstMember(w *World, all []cloud.Server) (cloud.Server, error) {
	if i := slices.IndexFunc(all, func(s cloud.Server) bool { return !strings.HasPrefix(s.Name, w.settings.PoolPrefix) }); i >= 0 {
		return all[i], nil
	}
	return firstPooled(w, all)
}
