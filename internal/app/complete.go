package app

import (
	"os"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/load"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

// Kind is what a word of the command line names.
type Kind int

// The kinds of words that can be completed.
const (
	AnEnvironment    Kind = iota
	AVariable             // NAME=
	AHost                 // a member that is known without asking anybody
	APinnedHost           // one whose key is pinned
	ASelector             // KEY=VALUE,…
	HostsOrSelectors      // that were not named yet
	AnArtifact            // that was not named yet
	AStep
	AJob
	ARun
	ASimulatedHost
	AnIncident
	ASwitch
	ASwitchValue // of the switch before it
)

// Repeats reports whether a command takes any number of such words.
func (k Kind) Repeats() bool { return k == HostsOrSelectors || k == AnArtifact }

// Complete returns the words that an argument or a flag's value may become, behind the
// words that are done. It reads local files alone: no network, no secret, no error,
// whatever state the configuration is in.
func Complete(env *Env, kind Kind, done []string, begun string) []string {
	all := slices.DeleteFunc(slices.Clone(env.candidates(kind, done, begun)), func(w string) bool { return !strings.HasPrefix(w, begun) })
	slices.Sort(all)
	return slices.Compact(all)
}

func (env *Env) candidates(kind Kind, done []string, begun string) []string {
	switch kind {
	case AnEnvironment:
		return env.outline().Environments
	case AVariable:
		return named(env.outline().Variables, func(v string) string { return v + "=" })
	case AHost:
		return append(env.outline().Hosts, env.pinnedHosts()...)
	case APinnedHost:
		return env.pinnedHosts()
	case ASelector:
		return env.selectorsFrom(begun)
	case HostsOrSelectors:
		if strings.Contains(begun, "=") {
			return env.selectorsFrom(begun)
		}
		return without(done, env.candidates(AHost, nil, ""))
	case AnArtifact:
		return without(done, env.outline().Artifacts)
	case AStep:
		return named(steps.For(fleet.Host{Spec: fleet.Spec{}.WithDefaults()}), func(s plan.Step) string { return string(s.ID()) })
	case AJob:
		return Jobs()
	case ARun:
		all, _, _ := runlog.List(env.runsDir()) // a damaged file offers nothing
		if len(all) == 0 {
			return nil
		}
		return append(named(all, func(b runlog.Record) string { return b.Head.ID }), runlog.Last)
	case ASimulatedHost:
		return sandbox.Names(env.sandboxDir())
	case AnIncident:
		return named(sandbox.Incidents(), func(i sandbox.Incident) string { return i.Name })
	case ASwitch:
		return named(sandbox.Switches(), func(s sandbox.Switch) string { return s.Name })
	case ASwitchValue:
		for _, s := range sandbox.Switches() {
			if len(done) > 1 && s.Name == done[1] {
				return s.Values
			}
		}
	}
	return nil
}

func named[T any](all []T, name func(T) string) []string {
	out := make([]string, 0, len(all))
	for _, x := range all {
		out = append(out, name(x))
	}
	return out
}

func without(done, all []string) []string {
	return slices.DeleteFunc(all, func(w string) bool { return slices.Contains(done, w) })
}

// outline returns what the configuration's files declare.
func (env *Env) outline() load.Names { return load.Outline(os.DirFS(env.Dir)) }

// pinnedHosts are the hosts whose keys are pinned.
func (env *Env) pinnedHosts() []string {
	environments := []string{env.Environment}
	if env.Environment == "" && env.Sandbox == "" {
		environments = append(environments, env.outline().Environments...)
	}
	var out []string
	for _, e := range environments {
		pins, _ := localPins{own: env.pinFile(e), cache: env.pinCache(e)}.All() // a damaged file offers nothing
		out = append(out, named(pins, func(p plan.Pin) string { return p.Name })...)
	}
	return out
}

// selectorsFrom offers the keys of a selector that were not given yet, and behind a key
// its values.
func (env *Env) selectorsFrom(begun string) []string {
	front, last := "", begun
	if i := strings.LastIndex(begun, ","); i >= 0 {
		front, last = begun[:i+1], begun[i+1:]
	}
	key, _, valued := strings.Cut(last, "=")
	var out []string
	for _, k := range []string{"fleet", "group", "name", "ready", "type", "zone"} {
		switch {
		case valued && k == key:
			out = append(out, named(env.selectorValues(k), func(v string) string { return front + k + "=" + v })...)
		case !valued && !strings.Contains(","+front, ","+k+"="):
			out = append(out, front+k+"=")
		}
	}
	return out
}

func (env *Env) selectorValues(key string) []string {
	switch n := env.outline(); key {
	case "fleet":
		return n.Fleets
	case "group":
		return n.Groups
	case "type":
		return n.Types
	case "zone":
		return n.Zones
	case "name":
		return env.candidates(AHost, nil, "")
	}
	return []string{"false", "true"} // ready
}
