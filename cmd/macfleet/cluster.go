package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/kubernetes"
	"github.com/macfleet/macfleet/providers/transport"
)

// openCluster opens the configuration's cluster, where it has one.
func (s *session) openCluster() error {
	if s.config.Kubernetes == nil {
		return nil
	}
	o := clusterOptions(s.config)
	o.Wrap = func(next http.RoundTripper) http.RoundTripper {
		return transport.Watch(s.cluster.Wrap(next), s.app.secrets.Learn)
	}
	if s.world != nil {
		if known := s.world.KubeContext(); o.Context != "" && known != "" && o.Context != known {
			return fmt.Errorf("the sandbox %s has no context %q; it has: %s", s.app.sandboxDir(), o.Context, known)
		}
		o.URL, o.Token = s.world.KubernetesURL(), s.world.KubernetesToken()
	}
	c, err := kubernetes.New(o)
	if err != nil {
		return err
	}
	s.kubernetes = c
	s.closers = append(s.closers, c.Close)
	return nil
}

// clusterOptions are what the configuration says of its cluster.
func clusterOptions(c *fleet.Config) kubernetes.Options {
	k := c.Kubernetes
	o := kubernetes.Options{Context: k.Context, Namespace: k.Namespace, LabelPrefix: k.LabelPrefix, Owner: c.Owner.String(), APIServer: k.APIServer,
		AgentNamespace: fleet.AgentNamespace(k.Namespace), PodNamespaces: k.PodNamespaces}
	if k.CAPI != nil {
		o.CAPI = &kubernetes.CAPI{Cluster: k.CAPI.Cluster, Namespace: k.CAPI.Namespace}
	}
	return o
}

// withCluster runs a function with the configuration's cluster alone: no server
// and no host is asked for anything. What looks ends with the first Ctrl-C.
func (a *app) withCluster(acting context.Context, f func(looking, acting context.Context, s *session) error) error {
	looking, done := a.untilStopped(acting)
	defer done()
	s := &session{app: a, started: time.Now()}
	var err error
	if s.config, err = a.config(); err != nil {
		return err
	}
	defer s.close()
	if err := s.openWorld(); err != nil {
		return err
	}
	if err := a.openLog(); err != nil {
		return err
	}
	s.cluster.Tell = a.told("kubernetes")
	if err := s.openCluster(); err != nil {
		return err
	}
	return f(looking, acting, s)
}

// errNoCluster ends commands that are about the cluster of a configuration that
// has none.
func errNoCluster(command string) error {
	return fmt.Errorf("the configuration has no kubernetes block, so macfleet %s has no cluster to work on; docs/configuration.md says how to write one", command)
}

// pins returns where the hosts' keys are pinned: in the cluster, once `init
// cluster` has made a place for them there, else in this machine's file. What
// changes something needs the true ones: a key that was pinned elsewhere must
// never look like that of a host nobody has met. What only looks goes by those
// that this machine knows, and says so.
func (s *session) pins(ctx context.Context) hosts.Pins {
	own, cache := s.app.pinFile(s.config.Environment), s.app.pinCache(s.config.Environment)
	if s.kubernetes == nil {
		return own
	}
	local := localPins{own: own, cache: cache}
	shared := s.kubernetes.Pins(ctx, kubernetes.PinOptions{Cache: cache, Own: own, Unprepared: local})
	if !s.readOnly {
		return shared
	}
	return &lookedUpPins{Pins: shared, ctx: ctx, local: local, warn: s.app.errText().Warn}
}

// lookedUpPins are the cluster's, or this machine's where those cannot be read.
type lookedUpPins struct {
	hosts.Pins
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
func (a *app) pinCache(environment string) hosts.KnownHosts {
	f := a.pinFile(environment)
	return hosts.KnownHosts{Path: filepath.Join(filepath.Dir(f.Path), "cluster_"+filepath.Base(f.Path))}
}
