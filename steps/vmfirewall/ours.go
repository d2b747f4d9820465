package vmfirewall

import (
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/pf"
)

var codeUnknownAnchor = plan.NewCode("unknown-anchor", plan.Warning, "an anchor is there that may be macfleet's, and nothing proves it",
	"where it is macfleet's, say so in the first line of its file")

// ours returns the anchors that macfleet made, by what it alone writes: the first
// line of an anchor's file, and the boot job, which names its anchor.
func (p packetFilter) ours() []string {
	var out []string
	for path, file := range p.files {
		if name, ok := strings.CutPrefix(path, pf.File("")); ok && pf.IsOurs(file.Text) && fleet.CheckText("anchor", name) == "" {
			out = append(out, name)
		}
	}
	if name := bootJobAnchor(p.files[bootJobPath].Text); fleet.CheckText("anchor", name) == "" && !slices.Contains(out, name) {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// made returns the anchors that macfleet made, beside the wanted one where there
// is a wish. Where nothing names one and the marker says that there was one, a
// block as macfleet writes it counts whose file or live rules are as macfleet's,
// though somebody took the first line of the file. unsure are those of which
// nobody can say it.
func (p packetFilter) made(v plan.View, wanted string) (names, unsure []string) {
	names = p.ours()
	if len(names) > 0 || !v.Proven {
		return names, nil
	}
	if p.broken != nil {
		return nil, nil // which is refused
	}
	marked := slices.DeleteFunc(p.conf.Marked(), func(name string) bool {
		form, err := p.conf.Inspect(name, nil)
		return err != nil || form.Blocks == 0
	})
	if slices.Contains(marked, wanted) {
		return nil, nil // the proof is of that one
	}
	for _, name := range marked {
		file, there := p.files[pf.File(name)]
		if p.conf.Has(name) && (!there || p.resembles(name, file.Text)) {
			names = append(names, name)
		} else {
			unsure = append(unsure, name)
		}
	}
	for path, file := range p.files {
		name, ok := strings.CutPrefix(path, pf.File(""))
		if ok && name != wanted && pf.Resembles(file.Text) && !slices.Contains(marked, name) {
			unsure = append(unsure, name)
		}
	}
	if len(names) > 0 {
		return names, nil
	}
	slices.Sort(unsure)
	return nil, unsure
}

// resembles reports whether an anchor's file or its live rules are as macfleet's.
func (p packetFilter) resembles(anchor, file string) bool {
	return pf.Resembles(file) || slices.Equal(p.anchors[anchor].rules, pf.Rules())
}

// unsureWhose warns of anchors that may be macfleet's.
func unsureWhose(names []string) plan.Trouble {
	return plan.Trouble{Code: codeUnknownAnchor,
		Text: "macfleet made a firewall on this host, and nothing says any more which anchor it is; it may be " +
			strings.Join(names, ", ") + ", which is left alone",
		Remedy: "where it is macfleet's, make \"" + pf.Header + "\" the first line of " + pf.File(names[0]) +
			"; where it is not, apply the vm_firewall block once more and then take it away"}
}
