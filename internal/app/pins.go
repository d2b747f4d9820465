package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// pinFile is where the host keys of an environment are kept that this machine
// pinned, as long as no cluster keeps them.
func (env *Env) pinFile(environment string) hosts.KnownHosts {
	if env.Sandbox != "" {
		return hosts.KnownHosts{Path: filepath.Join(env.sandboxDir(), "known_hosts")}
	}
	name := "known_hosts"
	if environment != "" {
		name += "-" + environment
	}
	return hosts.KnownHosts{Path: filepath.Join(env.Dir, ".macfleet", name)}
}

// pins returns where the hosts' keys are pinned: in the cluster, once `init
// cluster` has made a place for them there, else in this machine's file. What
// changes something needs the true ones: a key that was pinned elsewhere must
// never look like that of a host nobody has met. What only looks goes by those
// that this machine knows, and says so.
func (s *session) pins(ctx context.Context) engine.Pins {
	own, cache := s.env.pinFile(s.config.Environment), s.env.pinCache(s.config.Environment)
	if s.kubernetes == nil {
		return own
	}
	local := localPins{own: own, cache: cache}
	shared := s.kubernetes.Pins(ctx, kubernetes.PinOptions{Cache: cache, Own: own, Unprepared: local})
	if !s.readOnly {
		return shared
	}
	return &lookedUpPins{Pins: shared, ctx: ctx, local: local, warn: s.env.errText().Warn}
}

// lookedUpPins are the cluster's, or this machine's where those cannot be read.
type lookedUpPins struct {
	engine.Pins
	ctx   context.Context
	local localPins
	warn  func(string)
}

// All returns every pin that can be known.
func (l *lookedUpPins) All() ([]plan.Pin, error) {
	pins, err := l.Pins.All()
	if err == nil || l.ctx.Err() != nil {
		return pins, err
	}
	known, lerr := l.local.All()
	if lerr != nil {
		return nil, errors.Join(err, lerr)
	}
	l.warn(fmt.Sprintf("%v. Hosts are compared with the %d keys that this machine knows; a key that is shown as not pinned may be pinned there. macfleet apply needs the cluster's.",
		err, len(known)))
	return known, nil
}

// localPins are the keys that this machine knows: those that it pinned itself,
// and those that the cluster last said. So they stay pinned when the cluster has
// lost its own.
type localPins struct{ own, cache hosts.KnownHosts }

// All returns the pins of both files. Of a server that both know, the one that was
// pinned here counts.
func (l localPins) All() ([]plan.Pin, error) {
	own, err := l.own.All()
	if err != nil {
		return nil, err
	}
	cached, err := l.cache.All()
	return joinPins(own, cached), err
}

// Update moves all pins into this machine's own file.
func (l localPins) Update(change func([]plan.Pin) []plan.Pin) error {
	cached, err := l.cache.All()
	if err != nil {
		return err
	}
	if err := l.own.Update(func(own []plan.Pin) []plan.Pin { return change(joinPins(own, cached)) }); err != nil || len(cached) == 0 {
		return err
	}
	return l.cache.Update(func([]plan.Pin) []plan.Pin { return nil })
}

func joinPins(own, cached []plan.Pin) []plan.Pin {
	for _, c := range cached {
		if !slices.ContainsFunc(own, func(p plan.Pin) bool { return p.ServerID == c.ServerID }) {
			own = append(own, c)
		}
	}
	return own
}

// pinCache is where the keys are kept that the cluster last said. It lies beside
// pinFile and holds no key that is not in the cluster.
func (env *Env) pinCache(environment string) hosts.KnownHosts {
	f := env.pinFile(environment)
	return hosts.KnownHosts{Path: filepath.Join(filepath.Dir(f.Path), "cluster_"+filepath.Base(f.Path))}
}

// drop removes the pin of a host and returns it.
func drop(pins engine.Pins, name string) (plan.Pin, error) {
	all, err := pins.All()
	if err != nil {
		return plan.Pin{}, err
	}
	is := func(p plan.Pin) bool { return p.Name == name }
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], pins.Update(func(now []plan.Pin) []plan.Pin { return slices.DeleteFunc(now, is) })
	}
	names := named(all, func(p plan.Pin) string { return p.Name })
	return plan.Pin{}, fmt.Errorf("no host key is pinned for %s; %s", name, cmp.Or(didYouMean("did you mean %s?", name, names), "macfleet hosts lists the members"))
}
