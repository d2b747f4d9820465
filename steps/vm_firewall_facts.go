package steps

import (
	"slices"
	"strings"

	"github.com/macfleet/macfleet/steps/pf"
)

// Facts and wish are written in terms that do not depend on the wish: the facts
// of a host must not move, and look like drift, when the configuration does.

// wantedText is the wish.
func wantedText(w packetFilterWish) string {
	rules := anchorText(true, w.live.Rules, map[string]string{pf.SourceTable: w.live.Sources, pf.BlockedTable: w.live.Blocked})
	return wanted([]setting{
		{name: "pf", wanted: "enabled"},
		{name: "macOS's own anchors", wanted: "live"},
		{name: "tables left over", wanted: "none"},
		{name: "taken over", wanted: listOr(w.legacy, "none")},
		{name: "earlier run", wanted: "finished"},
		{name: networkSetting, wanted: "covered"},
		{name: "boot job", wanted: w.anchor + ", loaded"},
		{name: "anchor " + w.anchor, wanted: rules},
		{name: "pf.conf " + w.anchor, wanted: describeForm(pf.Form{Blocks: 1, Settled: true})},
		{name: "file " + w.anchor, wanted: oneLine(w.file)},
	})
}

// factsText is what was seen, in the terms of wantedText: of each anchor that the
// wish or an earlier one names, what there is. That an earlier run is unfinished
// counts where it is all that differs: beside another wish, of which a run was
// taken back, the host is as it was last proven and nobody has edited it.
func (c *comparison) factsText(unfinished bool) string {
	s := c.state
	all := []setting{
		{name: "pf", seen: choose(s.enabled, "enabled", "disabled")},
		{name: "macOS's own anchors", seen: choose(len(s.missing) == 0, "live", "missing: "+strings.Join(s.missing, ", "))},
		{name: "tables left over", seen: listOr(s.leftover, "none")},
		{name: "taken over", seen: listOr(c.want.legacy, "none")},
		{name: "earlier run", seen: choose(unfinished, "unfinished", "finished")},
		{name: networkSetting, seen: choose(s.network == "", "covered", s.network+", not covered")},
		{name: "boot job", seen: c.jobText()},
	}
	names := append([]string{c.want.anchor}, c.want.givenUp...)
	slices.Sort(names)
	for _, name := range names {
		all = append(all, c.anchorFacts(name)...)
	}
	return facts(all)
}

// anchorFacts is what there is of one anchor. A point that evaluates nothing
// stays in the kernel until the next boot and says nothing.
func (c *comparison) anchorFacts(name string) []setting {
	var all []setting
	live := c.seen.anchors[name]
	evaluated := slices.Contains(c.seen.points, pf.FilterPoint(name))
	if live.filled || evaluated && name == c.want.anchor {
		all = append(all, setting{name: "anchor " + name, seen: anchorText(evaluated, live.rules, live.held)})
	}
	form := c.state.form
	if len(c.want.givenUp) > 0 {
		form, _ = c.conf.Inspect(name, nil) // inspect has looked at all names
	}
	if !form.Absent() {
		all = append(all, setting{name: "pf.conf " + name, seen: describeForm(form)})
	}
	if file, there := c.seen.files[pf.File(name)]; there && (name == c.want.anchor || slices.Contains(c.want.former, name)) {
		text := oneLine(file.text)
		if file.mode != fileMode {
			text = "owner and mode " + file.mode + ": " + text
		}
		all = append(all, setting{name: "file " + name, seen: text})
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
	return choose(evaluated, "evaluated", "not evaluated") + "; " + listOr(rules, "no rules") + "; " +
		pf.SourceTable + " " + tables[pf.SourceTable] + "; " + pf.BlockedTable + " " + tables[pf.BlockedTable]
}

// jobText says whose boot job there is.
func (c *comparison) jobText() string {
	if c.state.job == jobLoaded {
		return c.want.anchor + ", loaded"
	}
	file := c.seen.files[bootJobPath]
	for _, name := range c.want.former {
		if isBootJob(file.text, name) && file.mode == fileMode && c.seen.job {
			return name + ", loaded"
		}
	}
	return c.state.job + " " + file.text
}
