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

// Kind is what a word of the command line names, and finds such words behind those that are done.
type Kind struct {
	find    func(env *Env, done []string, begun string) []string
	Repeats bool // a command takes any number of them
}

func kind(find func(*Env) []string) Kind {
	return Kind{find: func(env *Env, _ []string, _ string) []string { return find(env) }}
}

// The kinds of words that can be completed.
var (
	AnEnvironment = kind(func(env *Env) []string { return env.outline().Environments })
	AVariable     = kind(func(env *Env) []string {
		return mapped(env.outline().Variables, func(v string) string { return v + "=" })
	})
	AHost       = kind(func(env *Env) []string { return withShort(env.knownHosts()) })
	AHostOrCode = Kind{find: func(env *Env, _ []string, begun string) []string {
		return append(withShort(env.knownHosts()), codesFrom(begun)...)
	}}
	HostsByName      = Kind{find: func(env *Env, done []string, _ string) []string { return without(done, withShort(env.knownHosts())) }, Repeats: true}
	ASelector        = Kind{find: func(env *Env, _ []string, begun string) []string { return env.selectorsFrom(begun) }} // KEY=VALUE,…
	HostsOrSelectors = Kind{find: (*Env).hostsOrSelectors, Repeats: true}
	AnArtifact       = Kind{find: func(env *Env, done []string, _ string) []string { return without(done, env.outline().Artifacts) }, Repeats: true}
	AStep            = kind(func(*Env) []string {
		return mapped(steps.For(fleet.Host{Spec: fleet.Spec{}.WithDefaults()}), func(s plan.Step) string { return string(s.ID()) })
	})
	AJob           = kind(func(*Env) []string { return Jobs() })
	ARun           = kind((*Env).runs)
	ASimulatedHost = kind(func(env *Env) []string { return withShort(sandbox.Names(env.sandboxDir())) })
	AnIncident     = kind(func(*Env) []string {
		return mapped(slices.Concat(sandbox.Incidents(), sandbox.RunnerIncidents(), sandbox.AccountIncidents(), sandbox.ClusterIncidents(), sandbox.GitHubIncidents(), sandbox.TailnetIncidents(), sandbox.TailnetAccountIncidents()), func(i sandbox.Incident) string { return i.Name })
	})
	ASwitch = kind(func(*Env) []string {
		return mapped(sandbox.Switches(), func(s sandbox.Switch) string { return s.Name })
	})
	ASwitchValue = Kind{find: func(_ *Env, done []string, _ string) []string {
		for _, s := range sandbox.Switches() {
			if len(done) > 1 && s.Name == done[1] {
				return s.Values
			}
		}
		return nil
	}}
)

// Complete returns the words that an argument or a flag's value may become, behind the words that are
// done. It reads only local files: no network, no secret, no error, whatever state they are in.
func Complete(env *Env, kind Kind, done []string, begun string) []string {
	all := slices.DeleteFunc(slices.Clone(kind.find(env, done, begun)), func(w string) bool { return !strings.HasPrefix(w, begun) })
	slices.Sort(all)
	return slices.Compact(all)
}

func (env *Env) runs() []string {
	all, _, _ := runlog.List(env.kept("runs")) // a damaged file offers nothing
	if len(all) == 0 {
		return nil
	}
	return append(mapped(all, func(b runlog.Record) string { return b.Head.ID }), runlog.Last)
}

func (env *Env) hostsOrSelectors(done []string, begun string) []string {
	if strings.Contains(begun, "=") {
		return env.selectorsFrom(begun)
	}
	return without(done, withShort(env.knownHosts()))
}

func mapped[T, U any](all []T, name func(T) U) []U {
	out := make([]U, 0, len(all))
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

// knownHosts are the hosts that are known without a connection.
func (env *Env) knownHosts() []string { return append(env.outline().Hosts, env.pinnedHosts()...) }

// codesFrom are the reason codes, once one was started: there are too many to list them all.
func codesFrom(begun string) []string {
	if begun == "" {
		return nil
	}
	return mapped(plan.Codes(), plan.Code.String)
}

// withShort returns names of hosts and their short forms.
func withShort(hosts []string) []string {
	names := plan.NewNames(fleet.Owner{}, hosts)
	return append(mapped(hosts, names.Short), hosts...)
}

// pinnedHosts are the hosts whose keys are pinned.
func (env *Env) pinnedHosts() []string {
	environments := []string{env.Environment}
	if env.Environment == "" && env.Sandbox == "" {
		environments = append(environments, env.outline().Environments...)
	}
	var out []string
	for _, e := range environments {
		all, _ := env.localPins(e).All() // a damaged file offers nothing
		pins, _ := plan.WithoutReleased(all)
		out = append(out, mapped(pins, func(p plan.Pin) string { return p.Name })...)
	}
	return out
}

// selectorsFrom offers the keys of a selector that were not given yet, and behind a key its values.
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
			out = append(out, mapped(env.selectorValues(k), func(v string) string { return front + k + "=" + v })...)
		case !valued && !strings.Contains(","+front, ","+k+"="):
			out = append(out, front+k+"=")
		}
	}
	return out
}

// SelectorFor is the selector that a word without a key probably means: a fleet, group, type or zone of that name, else a host.
func SelectorFor(env *Env, word string) string {
	for _, key := range []string{"fleet", "group", "type", "zone"} {
		if slices.Contains(env.selectorValues(key), word) {
			return key + "=" + word
		}
	}
	if strings.Contains(word, "=") {
		return word
	}
	return "name=" + word
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
		return withShort(env.knownHosts())
	}
	return []string{"false", "true"} // ready
}
