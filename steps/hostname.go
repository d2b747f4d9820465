package steps

import (
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
)

var codeHostnameEdited = plan.NewCode("hostname-edited", plan.Warning, "the Mac's own names are not the server's")

// hostname gives the Mac the name of its server in all three places that macOS
// keeps one. Bonjour appends "-2" to LocalHostName at a clash, so it drifts by
// itself.
type hostname struct {
	wish *fleet.Hostname
	name string // of the host
}

func (hostname) ID() plan.StepID { return "hostname" }

// names are what scutil calls the three, in the order in which they are set.
func (hostname) names() []string { return []string{"ComputerName", "HostName", "LocalHostName"} }

func (h hostname) Wanted() string {
	if h.wish == nil {
		return ""
	}
	all := make([]kit.Setting, 0, 3)
	for _, name := range h.names() {
		all = append(all, kit.Setting{Name: name, Wanted: h.name})
	}
	return kit.Wanted(all)
}

func (h hostname) Probes() []plan.Probe {
	if h.wish == nil {
		return nil
	}
	var out []plan.Probe
	for _, name := range h.names() {
		p := scripts.Probe(h.ID(), "get", plan.Login, name)
		p.ID = h.probeID(name)
		out = append(out, p)
	}
	return out
}

func (h hostname) probeID(name string) string { return string(h.ID()) + "." + name }

func (h hostname) Diff(v plan.View) plan.Finding {
	if h.wish == nil {
		return plan.Finding{} // a Mac always has names; there is nothing to remove
	}
	r := kit.Reader{Facts: v.Facts}
	all := make([]kit.Setting, 0, 3)
	for _, name := range h.names() {
		if seen, ok := h.read(&r, name); ok {
			all = append(all, kit.Compare(name, seen, h.name))
		}
	}
	if len(r.Unread) > 0 {
		return plan.Finding{Unread: r.Unread}
	}
	f := plan.Finding{Facts: kit.Facts(all)}
	if diff := kit.Fields(all...); len(diff) > 0 {
		f.Changes = []plan.Change{{
			Reason:  plan.Reason{Code: codeHostnameEdited, Text: notCalled(diff)},
			Fields:  diff,
			Command: scripts.Command("hostname-set", plan.Root, h.name),
		}}
	}
	return f
}

// read returns one of the names; one that is not set is "". scutil says so in
// words, with exit 1.
func (h hostname) read(r *kit.Reader, name string) (string, bool) {
	id := h.probeID(name)
	a, ok := r.Answer(id)
	switch {
	case !ok:
		return "", false
	case a.Exit == 0 && kit.IsName(strings.TrimSuffix(a.Stdout, "\n")):
		return strings.TrimSuffix(a.Stdout, "\n"), true
	case a.Exit == 1 && strings.Contains(a.Stdout+a.Stderr, "not set"):
		return "", true
	}
	r.Odd(id, fmt.Sprintf("scutil --get %s ended with exit %d and neither a name nor \"not set\"", name, a.Exit), a)
	return "", false
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
