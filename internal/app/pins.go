package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// localPins returns the pins of an environment on this machine.
func (env *Env) localPins(environment string) localPins {
	path := env.localPath("known_hosts")
	if environment != "" && env.Sandbox == "" {
		path += "-" + environment
	}
	return localPins{hosts.KnownHosts{Path: path}, hosts.KnownHosts{Path: filepath.Join(filepath.Dir(path), "cluster_"+filepath.Base(path))}}
}

// pins returns where the hosts' keys are pinned: in the cluster, once `init cluster` has made a
// place for them there, else in this machine's file. A command that changes hosts needs the
// cluster's: a key that was pinned elsewhere must never look like that of an unknown host. A command
// that only observes uses those that this machine knows, with a warning.
func (s *session) pins(ctx context.Context) engine.Pins {
	local := s.env.localPins(s.config.Environment)
	if s.kubernetes == nil {
		return local.own
	}
	shared := s.kubernetes.Pins(ctx, kubernetes.PinOptions{Cache: local.cache, Own: local.own, Unprepared: local})
	if !s.readOnly {
		return clusterPins{shared}
	}
	return &lookedUpPins{clusterPins: clusterPins{shared}, ctx: ctx, local: local, warn: s.env.errText().Warn}
}

// clusterPins gives the engine what the cluster's pins recall.
type clusterPins struct{ *kubernetes.Pins }

// Recall returns what is left of pins that the cluster has lost.
func (c clusterPins) Recall() engine.Recollection {
	r := c.Pins.Recall()
	return engine.Recollection{Remembered: r.Remembered, Lost: r.Lost}
}

// gatherPins makes what the cluster last said this machine's own, where the cluster has lost it.
func (s *session) gatherPins(ctx context.Context) error {
	pins := s.pins(ctx)
	if _, err := pins.All(); err != nil {
		return err
	}
	if r, ok := pins.(engine.Recalling); !ok || r.Recall().Lost == nil {
		return nil
	}
	return s.env.localPins(s.config.Environment).gather()
}

// former returns as whose this directory was applied before, by the records of its runs and, outside
// the sandbox, by the keys that are pinned next to it.
func (s *session) former() []string {
	owners, here := make(map[string]bool), s.env.directory()
	of := func(h runlog.Head) fleet.Owner { return fleet.Owner{Name: h.Configuration, Environment: h.Environment} }
	for _, h := range runlog.Worked(s.env.kept("runs"), func(h runlog.Head) bool {
		return here != "" && h.Directory == here && of(h) != s.config.Owner
	}) {
		owners[of(h).String()] = true
	}
	if s.world == nil {
		pins, _ := s.env.localPins(s.config.Environment).own.All() // commands that need them report what is wrong with them
		for _, p := range pins {
			if owner, _, ok := fleet.Split(p.Name, p.ServerID); ok {
				owners[owner] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(owners))
}

// met returns on which of some servers' hosts a recorded run of this configuration has started something, also
// under a former name of it.
func (s *session) met(servers []string) []string {
	here, c := s.env.directory(), s.config.Owner
	return runlog.Met(s.env.kept("runs"), func(h runlog.Head) bool {
		return h.Environment == c.Environment && (h.Configuration == c.Name || here != "" && h.Directory == here)
	}, servers)
}

// lookedUpPins are the cluster's, or this machine's where those cannot be read.
type lookedUpPins struct {
	clusterPins
	ctx    context.Context
	local  localPins
	warn   func(string)
	unread string // why the cluster's could not be had
}

// Recall returns what the cluster's pins recall, unless they could not be read.
func (l *lookedUpPins) Recall() engine.Recollection {
	if l.unread != "" {
		return engine.Recollection{Unread: l.unread}
	}
	return l.clusterPins.Recall()
}

// All returns every pin that can be known.
func (l *lookedUpPins) All() ([]plan.Pin, error) {
	pins, err := l.clusterPins.All()
	if err == nil || l.ctx.Err() != nil {
		return pins, err
	}
	known, lerr := l.local.All()
	if lerr != nil {
		return nil, errors.Join(err, lerr)
	}
	l.unread = err.Error()
	l.warn(fmt.Sprintf("%v. Hosts are compared with the %d keys that this machine knows; a key that is shown as not pinned may be pinned there. macfleet apply needs the cluster's.",
		err, len(known)))
	return known, nil
}

// localPins are the keys that this machine knows: those that it pinned itself, as long as no cluster
// keeps them, and those that the cluster last said. So they stay pinned when the cluster has lost its own.
type localPins struct{ own, cache hosts.KnownHosts }

// All returns the pins of both files. Of a server that both know, the one pinned here counts, unless plan.JoinPins says otherwise.
func (l localPins) All() ([]plan.Pin, error) {
	own, err := l.own.All()
	if err != nil {
		return nil, err
	}
	cached, err := l.cache.All()
	return plan.JoinPins(own, cached), err
}

// Update changes all pins. What the cluster said once stays apart from what was pinned here, as
// long as it is not changed: it shows that the cluster has lost something.
func (l localPins) Update(change func([]plan.Pin) []plan.Pin) error {
	cached, err := l.cache.All()
	if err != nil {
		return err
	}
	var after []plan.Pin
	if err := l.own.Update(func(own []plan.Pin) []plan.Pin {
		after = change(plan.JoinPins(own, cached))
		return slices.DeleteFunc(slices.Clone(after), func(p plan.Pin) bool { return slices.Contains(cached, p) && !slices.Contains(own, p) })
	}); err != nil || len(cached) == 0 {
		return err
	}
	return l.cache.Update(func(cached []plan.Pin) []plan.Pin {
		return slices.DeleteFunc(cached, func(p plan.Pin) bool { return !slices.Contains(after, p) })
	})
}

// gather moves what the cluster said once to what was pinned here, before the cluster gets an empty
// place for its pins.
func (l localPins) gather() error {
	cached, err := l.cache.All()
	if err != nil || len(cached) == 0 {
		return err
	}
	if err := l.own.Update(func(own []plan.Pin) []plan.Pin { return plan.JoinPins(own, cached) }); err != nil {
		return err
	}
	return l.cache.Update(func([]plan.Pin) []plan.Pin { return nil })
}
