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

// RunnerIncidents returns the incidents of hosts on which GitHub's runner is registered.
func RunnerIncidents() []Incident {
	var all []Incident
	for _, known := range runnerTroubles() {
		all = append(all, known.Incident)
	}
	return all
}

// GitHubIncidents returns the incidents of the GitHub App and of the runner's releases.
func GitHubIncidents() []Incident {
	var all []Incident
	for _, known := range gitHubTroubles() {
		all = append(all, known.Incident)
	}
	return all
}

// places are the names that stand for something else than a host.
var places = []string{Account, Cluster, GitHubAccount, Tailnet}

// Places returns the incidents of the account and of the cluster that are not healed yet, by place.
func (w *World) Places() (map[string][]string, error) {
	out := make(map[string][]string)
	for _, place := range places {
		open, err := w.incidentsOf(place)
		if err != nil {
			return nil, err
		}
		if len(open) > 0 {
			out[place] = open.names()
		}
	}
	return out, nil
}

// placed returns what stands for a place where a server is expected.
func placed(name string) (cloud.Server, bool) {
	return cloud.Server{ID: name, Name: name}, slices.Contains(places, name)
}

// target returns the server on which an incident is injected. A place has none.
func (w *World) target(host string, t trouble) (cloud.Server, error) {
	place, is := placed(host)
	switch {
	case is && host == t.place:
		return place, nil
	case !is && t.place == "":
		return w.find(host)
	case t.place != "":
		return cloud.Server{}, fmt.Errorf("%s is an incident of %s, not of %s; fix: macfleet sandbox inject %s %s", t.Name, t.place, host, t.place, t.Name)
	}
	return cloud.Server{}, fmt.Errorf("%s is an incident of a host, not of %s; macfleet sandbox list shows the hosts", t.Name, host)
}

// on adapts an incident of a host to one of the account: the world chooses the host.
func on(choose func(*World, []cloud.Server) (cloud.Server, error), t trouble) trouble {
	whole := t
	whole.place = Account
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
