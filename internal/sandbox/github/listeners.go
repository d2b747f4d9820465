package github

import (
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// listenersByServer returns the listeners on the Macs, by server id. The lock is held.
func (a *API) listenersByServer() (map[string][]agent.Runner, error) {
	all := map[string][]agent.Runner{}
	if err := store.ReadJSON(a.path(listenersFile), &all); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return all, nil
}

func (a *API) listeners() (out []agent.Runner, err error) {
	all, err := a.listenersByServer()
	for _, id := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[id]...)
	}
	return out, err
}
