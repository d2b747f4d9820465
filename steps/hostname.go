package steps

import (
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
)

var codeHostnameEdited = plan.NewCode("hostname-edited", plan.Warning, "the Mac's names differ from the server's name")

// hostname sets the three names that macOS keeps to the server's name. Bonjour appends "-2"
// to LocalHostName on a conflict, so it drifts by itself.
type hostname struct {
	desired *fleet.Hostname
	name    string // of the host
}

func (hostname) ID() plan.StepID { return "hostname" }

// names are scutil's keys, in the order in which they are set.
func (hostname) names() []string { return []string{"ComputerName", "HostName", "LocalHostName"} }

func (h hostname) Wanted() string {
	if h.desired == nil {
		return ""
	}
	return kit.Wanted(h.settings(func(string) string { return "" }))
}

// settings compares all three names.
func (h hostname) settings(seen func(name string) string) []kit.Setting {
	all := make([]kit.Setting, 0, 3)
	for _, name := range h.names() {
		all = append(all, kit.Compare(name, seen(name), h.name))
	}
	return all
}

func (h hostname) Probes() []plan.Probe {
	if h.desired == nil {
		return nil
	}
	var out []plan.Probe
	for _, name := range h.names() {
		out = append(out, plan.Probe{ID: "hostname." + name, Command: scripts.Command("hostname-get", plan.Login, name)})
	}
	return out
}

func (h hostname) Diff(v plan.View) plan.Finding {
	if h.desired == nil {
		return plan.Finding{} // a Mac always has names: nothing to remove
	}
	r := kit.Reader{Facts: v.Facts}
	all := h.settings(func(name string) string { return readName(&r, name) })
	diff := kit.Fields(all...)
	return r.Found(all, plan.Change{
		Reason:  plan.Reason{Code: codeHostnameEdited, Text: notCalled(diff)},
		Fields:  diff,
		Command: scripts.Command("hostname-set", plan.Root, h.name),
	})
}

// readName returns one of the names, or "" if it is not set (exit code 1 and a message).
func readName(r *kit.Reader, name string) string {
	id := "hostname." + name
	a, ok := r.Answer(id)
	seen := strings.TrimSuffix(a.Stdout, "\n")
	switch {
	case !ok:
	case a.Exit == 0 && kit.IsName(seen):
		return seen
	case a.Exit == 1 && strings.Contains(a.Stdout+a.Stderr, "not set"):
	default:
		r.Unexpected(id, fmt.Sprintf("scutil --get %s: exit code %d, and neither a name nor \"not set\"", name, a.Exit), a)
	}
	return ""
}

func notCalled(diff []plan.Field) string {
	var out []string
	for _, f := range diff {
		if f.Before == "" {
			out = append(out, f.Name+" is not set")
		} else {
			out = append(out, fmt.Sprintf("%s is %q", f.Name, f.Before))
		}
	}
	return strings.Join(out, ", ")
}
