package enginetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// Thing is a toy step: it keeps one value on a host.
type Thing struct {
	Key      plan.StepID
	Value    string // desired; empty: what a run created is removed
	Class    plan.Disruption
	Input    plan.InputKind
	Root     bool // needs root
	Grants   bool // gives root
	Brought  bool // the value is the digest of an artifact, which is uploaded first
	Guarded  bool // its change may cut the connection
	Detached bool // its change takes long
	Node     bool // the host's kubelet runs from the value
	Breaks   bool // its change fails
}

// step is a Thing in a world.
type step struct {
	Thing
	world *World
}

func (s step) ID() plan.StepID { return s.Key }

// Wanted is the value; for a kubelet also that its process runs from it.
func (s step) Wanted() string {
	if s.MakesNode() {
		return s.Value + " " + s.Value
	}
	return s.Value
}

// MakesNode reports whether the thing is the host's kubelet.
func (s step) MakesNode() bool { return s.Node && s.Value != "" }

// Probes returns the one probe.
func (s step) Probes() []plan.Probe {
	as := plan.Login
	if s.Root {
		as = plan.Root
	}
	return []plan.Probe{{ID: s.probe(), Command: plan.Command{Name: string(s.Key), Script: "get", As: as, Args: []string{string(s.Key)}}}}
}

func (s step) probe() string { return string(s.Key) + ".value" }

func (s step) Diff(v plan.View) plan.Finding {
	s.world.mu.Lock()
	s.world.diffs[v.Server.ID+" "+string(s.Key)]++
	s.world.mu.Unlock()
	f := plan.Finding{}
	a, ok := v.Facts.Get(s.probe()).Get()
	words := strings.Fields(a.Stdout)
	switch {
	case !ok:
		f.Unread = []plan.Unread{{Probe: s.probe(), Why: v.Facts.Get(s.probe()).Why()}}
		return f
	case len(words) < 4:
		f.Unread = []plan.Unread{{Probe: s.probe(), Why: "cannot be parsed", Bytes: a.Stdout}}
		return f
	}
	value, process := strings.Trim(words[0], "-"), strings.Trim(words[1], "-")
	if s.Grants && !v.Root {
		value = "" // half done
	}
	if f.Facts = value; s.Node && s.Value == "" {
		f.Facts += process
	}
	for _, vm := range words[4:] {
		f.Busy = append(f.Busy, plan.Task{VM: vm, Text: "the virtual machine " + vm})
	}
	f.VMs, f.Running = inventory.Present(words[4:]), inventory.Present(f.Busy)
	if s.MakesNode() {
		started, _ := time.Parse(time.RFC3339Nano, words[2])
		k := plan.Kubelet{Started: started}
		switch process {
		case "":
			k = plan.Kubelet{Fault: plan.Reason{Code: code("kubelet-not-running"), Text: "no process runs"}}
		case dead:
			k = plan.Kubelet{Fault: plan.Reason{Code: plan.CodeKubeletCrashLoop, Text: "it exits with " + value}}
		}
		f.Kubelet = inventory.Present(k)
		f.Facts += " " + process
		if words[3] != v.Host.Name && process != "" {
			f.Facts += " as " + words[3]
		}
	}
	revoked := s.Input == plan.Kubeconfig && v.Identity.IsAbsent()
	switch {
	case s.Value == "" && (f.Facts == "" || !v.Verified):
		f.Facts = ""
	case f.Facts != s.Wanted(), v.Pending, revoked:
		f.Changes = []plan.Change{s.change(v, value)}
	}
	return f
}

func (s step) change(v plan.View, value string) plan.Change {
	word := func(is bool, name string) string {
		if is {
			return name
		}
		return "-"
	}
	as := plan.Login
	if s.Root {
		as = plan.Root
	}
	c := plan.Change{Reason: plan.Reason{Code: code("value-differs"), Text: fmt.Sprintf("it is %q", value)}, Fields: []plan.Field{{Name: "value", Before: value, After: s.Value}},
		Command: plan.Command{Name: string(s.Key), Script: "set", As: as,
			Args: []string{string(s.Key), s.Value, word(v.Force, "force"), word(s.Breaks, "breaks"), word(s.Node, "node"), v.Host.Name}},
		Input: s.Input, Disruption: s.Class, Removes: s.Value == "", GrantsRoot: s.Grants, Detached: s.Detached}
	if s.Value == "" {
		c.Input = plan.NoInput
	}
	if s.Guarded {
		c.Guard = &plan.Guard{Why: "a new value"}
	}
	if s.Brought && s.Value != "" {
		c.Delivery = &plan.Delivery{Artifact: fleet.Artifact{Name: string(s.Key), Version: s.Value, SHA256: s.Value, Fetch: fleet.FetchPush}}
	}
	return c
}
