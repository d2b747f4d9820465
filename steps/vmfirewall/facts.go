package vmfirewall

import (
	"slices"
	"strings"

	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/pf"
)

// Facts and wish are written in terms that do not depend on the wish: the facts
// of a host must not move, and look like drift, when the configuration does.

// whole are the settings of the packet filter that are not of one anchor, where the boot
// job is as told.
func (w packetFilterWish) whole(s packetFilterState, unfinished bool, job string) []kit.Setting {
	return []kit.Setting{
		kit.Compare("pf", s.pf(), "enabled"),
		kit.Compare("macOS's own anchors", s.stock(), "live"),
		kit.Compare("tables left over", kit.ListOr(s.leftover, "none"), "none"),
		kit.Compare("taken over", kit.ListOr(w.legacy, "none"), kit.ListOr(w.legacy, "none")),
		kit.Compare("earlier run", kit.Choose(unfinished, "unfinished", "finished"), "finished"),
		kit.Compare("network of virtual machines", kit.Choose(s.network == "", "covered", s.network+", not covered"), "covered"),
		kit.Compare("boot job", job, w.anchor+", loaded"),
	}
}

// wantedText is the wish.
func wantedText(w packetFilterWish) string {
	rules := anchorText(true, w.live.Rules, map[string]string{pf.SourceTable: w.live.Sources, pf.BlockedTable: w.live.Blocked})
	return kit.Wanted(append(w.whole(packetFilterState{}, false, ""),
		kit.Compare("anchor "+w.anchor, "", rules),
		kit.Compare("pf.conf "+w.anchor, "", describeForm(pf.Form{Blocks: 1, Settled: true})),
		kit.Compare("file "+w.anchor, "", oneLine(w.file))))
}

// factsText is what was seen, in the terms of wantedText: of each anchor that the
// wish or an earlier one names, what there is. That an earlier run is unfinished
// counts where it is all that differs: beside another wish, of which a run was
// taken back, the host is as it was last proven and nobody has edited it.
func (c *comparison) factsText(unfinished bool) string {
	all := c.want.whole(c.state, unfinished, c.jobText())
	names := append([]string{c.want.anchor}, c.want.givenUp...)
	slices.Sort(names)
	for _, name := range names {
		all = append(all, c.anchorFacts(name)...)
	}
	return kit.Facts(all)
}

// anchorFacts is what there is of one anchor. A point that evaluates nothing
// stays in the kernel until the next boot and says nothing.
func (c *comparison) anchorFacts(name string) []kit.Setting {
	var all []kit.Setting
	live := c.seen.anchors[name]
	evaluated := c.seen.evaluates(name)
	if live.filled || evaluated && name == c.want.anchor {
		all = append(all, kit.Setting{Name: "anchor " + name, Seen: anchorText(evaluated, live.rules, live.held)})
	}
	form := c.state.form
	if len(c.want.givenUp) > 0 {
		form, _ = c.conf.Inspect(name, nil) // inspect has looked at all names
	}
	if !form.Absent() {
		all = append(all, kit.Setting{Name: "pf.conf " + name, Seen: describeForm(form)})
	}
	if file, there := c.seen.files[pf.File(name)]; there && (name == c.want.anchor || slices.Contains(c.want.former, name)) {
		text := oneLine(file.Text)
		if file.Mode != kit.FileMode {
			text = "owner and mode " + file.Mode + ": " + text
		}
		all = append(all, kit.Setting{Name: "file " + name, Seen: text})
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
	if c.state.job == jobLoaded {
		return c.want.anchor + ", loaded"
	}
	file := c.seen.files[bootJobPath]
	for _, name := range c.want.former {
		if isBootJob(file.Text, name) && file.Mode == kit.FileMode && c.seen.job {
			return name + ", loaded"
		}
	}
	return c.state.job + " " + file.Text
}
