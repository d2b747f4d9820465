package vmfirewall

import (
	"slices"
	"strings"

	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/pf"
)

// Facts and wish are written in terms that do not depend on the wish: the facts
// of a host must not move, and look like drift, when the configuration does.

// settings are both sides: of what a change moves, as a person reads them, first what is
// live and then the files; and of what the facts say of the packet filter beside single
// anchors. That an earlier run is unfinished is among the facts where it is all that
// differs: beside another wish, of which a run was taken back, the host is as it was last
// proven and nobody has edited it.
func (c *comparison) settings() (moved, facts []kit.Setting) {
	w := c.want
	evaluated, given, network := w.anchor+", evaluated", "none", "covered"
	if len(w.legacy) > 0 {
		given = "none of " + strings.Join(w.legacy, ", ")
	}
	if c.uncovered() != nil {
		network = c.seen.bridge.String() + ", not covered"
	}
	enabled := kit.Compare("pf", kit.Choose(c.seen.enabled, "enabled", "disabled"), "enabled")
	stock := kit.Compare("macOS's own anchors", kit.Choose(len(c.missing) == 0, "live", "missing: "+strings.Join(c.missing, ", ")), "live")
	leftover := kit.Compare("tables left over", kit.ListOr(c.leftover, "none"), "none")
	run := kit.Compare("earlier run", kit.Choose(c.view.Pending, "unfinished", "finished"), "finished")
	moved = []kit.Setting{
		enabled,
		stock,
		kit.Compare("anchor", kit.Choose(c.evaluated, evaluated, w.anchor+", not evaluated"), evaluated),
		kit.Compare("rules", kit.ListOr(c.live.rules, "none"), kit.ListOr(pf.Rules(), "none")),
		kit.Compare("vm_sources", c.held(pf.SourceTable), w.spec.Tables[pf.SourceTable]),
		kit.Compare("blocked_dst", c.held(pf.BlockedTable), w.spec.Tables[pf.BlockedTable]),
		leftover,
		kit.Compare("anchors given up", kit.ListOr(c.legacy, given), given),
		kit.Compare("pf.conf", describeForm(c.form), describeForm(settledForm)),
		kit.Compare("anchor file", c.file, kit.AsRendered),
		kit.Compare("boot job", c.job, jobLoaded),
		run,
	}
	if len(kit.Fields(moved...)) > 1 {
		run.Seen = run.Wanted
	}
	return moved, []kit.Setting{
		enabled,
		stock,
		leftover,
		kit.Compare("taken over", kit.ListOr(w.legacy, "none"), kit.ListOr(w.legacy, "none")),
		run,
		kit.Compare("network of virtual machines", network, "covered"),
		kit.Compare("boot job", c.jobText(), w.anchor+", loaded"),
	}
}

var settledForm = pf.Form{Blocks: 1, Settled: true}

// text is the wish.
func (w packetFilterWish) text() string {
	_, all := (&comparison{want: w}).settings()
	return kit.Wanted(append(all,
		kit.Compare("anchor "+w.anchor, "", anchorText(true, pf.Rules(), w.spec.Tables)),
		kit.Compare("pf.conf "+w.anchor, "", describeForm(settledForm)),
		kit.Compare("file "+w.anchor, "", oneLine(w.file))))
}

// anchorFacts is what there is of the anchors that the wish or an earlier one names, in the
// terms of the wish's text. A point that evaluates nothing stays in the kernel until the
// next boot and says nothing.
func (c *comparison) anchorFacts() []kit.Setting {
	var all []kit.Setting
	for _, name := range slices.Sorted(slices.Values(append([]string{c.want.anchor}, c.want.givenUp...))) {
		live, evaluated := c.seen.anchors[name], c.seen.evaluates(name)
		if live.filled || evaluated && name == c.want.anchor {
			all = append(all, kit.Setting{Name: "anchor " + name, Seen: anchorText(evaluated, live.rules, live.held)})
		}
		if form, _ := c.seen.conf.Inspect(name, nil); !form.Absent() { // inspect has looked at all names
			all = append(all, kit.Setting{Name: "pf.conf " + name, Seen: describeForm(form)})
		}
		if file, there := c.seen.files[pf.File(name)]; there && (name == c.want.anchor || slices.Contains(c.want.former, name)) {
			text := oneLine(file.Text)
			if file.Mode != kit.FileMode {
				text = "owner and mode " + file.Mode + ": " + text
			}
			all = append(all, kit.Setting{Name: "file " + name, Seen: text})
		}
	}
	return all
}

// oneLine writes a file in one line, which needs no quoting: a big fleet has many.
func oneLine(text string) string {
	const end = " | "
	if strings.Contains(text, end) {
		return text
	}
	return strings.ReplaceAll(text, "\n", end)
}

func anchorText(evaluated bool, rules []string, tables map[string]string) string {
	return kit.Choose(evaluated, "evaluated", "not evaluated") + "; " + kit.ListOr(rules, "no rules") + "; " +
		pf.SourceTable + " " + tables[pf.SourceTable] + "; " + pf.BlockedTable + " " + tables[pf.BlockedTable]
}

// jobText says whose boot job there is.
func (c *comparison) jobText() string {
	file := c.seen.files[bootJobPath]
	name := bootJobAnchor(file.Text)
	if (name == c.want.anchor || slices.Contains(c.want.former, name)) && file.Mode == kit.FileMode && c.seen.job {
		return name + ", loaded"
	}
	return c.job + " " + file.Text
}
