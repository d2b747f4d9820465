package vmfirewall

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/pf"
)

// The codes that are raised here.
var (
	codeBypassedAnchor = plan.NewCode("bypassed-anchor", plan.Critical, `a rule with "quick" decides before the anchor is asked`,
		`move the block in /etc/pf.conf ahead of that rule, or take "quick" off it, and restart the host`)
	codeVMSubnetUncovered = plan.NewCode("vm-subnet-uncovered", plan.Critical, "the network of the virtual machines is not among vm_sources",
		"add it to vm_sources")
	codeVMFirewallMissing   = plan.NewCode("vm-firewall-missing", plan.Critical, "nothing of the firewall is there")
	codePFConfResetByUpdate = plan.NewCode("pf-conf-reset-by-update", plan.Critical, "/etc/pf.conf has no line of the anchor: updates of macOS write a new one")
	codeBeginWithoutEnd     = plan.NewCode("begin-without-end", plan.Warning, "the last line of macfleet's block in /etc/pf.conf is missing")
	codeDuplicatePFBlock    = plan.NewCode("duplicate-pf-block", plan.Warning, "macfleet's block stands twice in /etc/pf.conf")
	codeLegacyPFBlock       = plan.NewCode("legacy-pf-block", plan.Warning, "earlier forms of the packet filter's block or anchor are still there")
	codePersistTableLeft    = plan.NewCode("persist-table-left", plan.Warning, "tables outlived their rules, so the next load would be refused as busy")
	codeStockAnchorsMissing = plan.NewCode("stock-anchors-missing", plan.Warning, "the live rules lack anchors of /etc/pf.conf")
	codeUnreferencedAnchor  = plan.NewCode("unreferenced-anchor", plan.Critical, "the live rules do not evaluate the anchor")
	codeFlushedPFAnchor     = plan.NewCode("flushed-pf-anchor", plan.Critical, "the rules of the anchor are gone from the kernel")
	codePFDisabled          = plan.NewCode("pf-disabled", plan.Critical, "pf is disabled")
	codeLiveRulesEdited     = plan.NewCode("live-rules-edited", plan.Critical, "the live rules or tables of the anchor are others")
	codeAnchorFileMissing   = plan.NewCode("anchor-file-missing", plan.Warning, "the file of the pf anchor is missing")
	codeAnchorFileEdited    = plan.NewCode("anchor-file-edited", plan.Warning, "the file of the pf anchor is not as macfleet writes it")
	codePFConfEdited        = plan.NewCode("pf-conf-edited", plan.Warning, "macfleet's block in /etc/pf.conf is not as it writes it")
	codeBootJobMissing      = plan.NewCode("boot-job-missing", plan.Warning, "the boot job of the firewall is missing")
	codeBootJobEdited       = plan.NewCode("boot-job-edited", plan.Warning, "the boot job of the firewall is not as macfleet writes it")
)

// bootJob is the launchd job that enables pf after a boot. macOS's own job loads
// /etc/pf.conf by then; where it did not, this one does. A job that loaded in any
// case would take away what macOS adds at run time for virtual machines' network,
// each time it is bootstrapped.
func bootJob(anchor string) string { return bootJobHead + anchor + bootJobTail }

// isBootJob compares without making the text, as a big fleet has many.
func isBootJob(text, anchor string) bool {
	rest, head := strings.CutPrefix(text, bootJobHead)
	rest, tail := strings.CutSuffix(rest, bootJobTail)
	return head && tail && rest == anchor
}

const (
	bootJobHead = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>dev.macfleet.pf</string>
	<key>ProgramArguments</key>
	<array>
		<string>/bin/sh</string>
		<string>-c</string>
		<string>PATH=/usr/bin:/bin:/usr/sbin:/sbin
pfctl -s info 2&gt;/dev/null | grep -q "^Status: Enabled" || pfctl -E
pfctl -s rules 2&gt;/dev/null | grep -qF "anchor \"$1\"" || pfctl -f /etc/pf.conf
</string>
		<string>sh</string>
		<string>`
	bootJobTail = `</string>
	</array>
	<key>RunAtLoad</key>
	<true/>
</dict>
</plist>
`
)

// finding compares.
func (c *comparison) finding() plan.Finding {
	all := packetFilterSettings(c.state, c.want)
	var f plan.Finding
	diff := kit.Fields(all...)
	f.Facts = c.factsText(c.state.pending && len(diff) == 1)
	if rules := pf.Bypass(c.seen.main, c.want.anchor); len(rules) > 0 {
		f.Warnings = append(f.Warnings, bypassed(c.want.anchor, rules))
	}
	uncovered := c.uncovered()
	if len(diff) == 0 {
		f.Refused = uncovered
		return f
	}
	if len(c.want.unsure) > 0 {
		f.Warnings = append(f.Warnings, unsureWhose(c.want.unsure))
	}
	if uncovered != nil {
		f.Warnings = append(f.Warnings, *uncovered)
	}
	change, err := c.change()
	if err != nil {
		f.Refused = brokenConf(err)
		return f
	}
	change.Reason, change.Fields = c.reason(), diff
	f.Changes = []plan.Change{change}
	return f
}

// bypassed warns of rules of somebody else that let through what the anchor blocks.
// Whether they are meant so, macfleet cannot know.
func bypassed(anchor string, rules []string) plan.Trouble {
	more := ""
	if len(rules) > 1 {
		more = fmt.Sprintf(" (and %d more such rules)", len(rules)-1)
	}
	return plan.Trouble{Code: codeBypassedAnchor,
		Text:   fmt.Sprintf("the live rule %q%s stands ahead of the anchor %s: what it lets pass is never blocked", rules[0], more, anchor),
		Remedy: "in " + pfConfPath + ", move the lines from # BEGIN " + anchor + " to # END " + anchor + " ahead of it, or take \"quick\" off it, and restart the host"}
}

// uncovered says that virtual machines run in a network of which nothing is
// blocked. Only the configuration can mend that.
func (c *comparison) uncovered() *plan.Trouble {
	b := c.seen.bridge
	if !b.IsValid() {
		return nil
	}
	for _, s := range c.want.sources.Sources {
		if s.Bits() <= b.Bits() && s.Contains(b.Addr()) {
			return nil
		}
	}
	return &plan.Trouble{Code: codeVMSubnetUncovered,
		Text:   fmt.Sprintf("virtual machines run in %s (bridge100), which vm_sources (%s) does not cover: nothing is blocked for them", b, c.want.live.Sources),
		Remedy: fmt.Sprintf("add %q to vm_sources", b)}
}

// liveDiffers reports whether the kernel has to be told something. After a run
// that never finished it is told everything once more.
func (c *comparison) liveDiffers() bool {
	s := c.state
	return !s.enabled || len(s.missing) > 0 || !s.evaluated || !c.rulesAreRight() || len(s.leftover) > 0 || s.pending ||
		slices.ContainsFunc(c.want.givenUp, func(name string) bool { return c.seen.anchors[name].filled })
}

func (c *comparison) rulesAreRight() bool {
	return slices.Equal(c.state.rules, c.want.live.Rules) &&
		held(c.state, pf.SourceTable) == c.want.live.Sources && held(c.state, pf.BlockedTable) == c.want.live.Blocked
}

// change is what removes the difference: in files alone where what is live is
// right, and else first live, with a way back, and in files once that is
// confirmed.
func (c *comparison) change() (plan.Change, error) {
	keep, err := c.keep()
	if err != nil || !c.liveDiffers() {
		return plan.Change{Command: keep}, err
	}
	main, before := "", ""
	if !c.state.evaluated || len(c.state.missing) > 0 {
		if main, err = c.conf.LoadFile(c.want.anchor, c.want.givenUp, c.seen.points); err != nil {
			return plan.Change{}, err
		}
		was := c.want.anchor
		if !c.state.evaluated {
			was = ""
		}
		if before, err = c.conf.LoadFile(was, []string{c.want.anchor}, c.seen.points); err != nil {
			return plan.Change{}, err
		}
	}
	back := c.back(before)
	return plan.Change{Command: c.live("on", c.want.file, main, c.want.givenUp), Guard: &plan.Guard{Restore: &back, Persist: keep}}, nil
}

// live is the script that tells the kernel.
func (c *comparison) live(way, rules, main string, names []string) plan.Command {
	defined := c.conf.Tables()
	var tables []string
	for _, name := range pf.Tables() {
		if !slices.Contains(defined, name) {
			tables = append(tables, name)
		}
	}
	args := append([]string{way, c.want.anchor, rules, main, strings.Join(tables, " ")}, names...)
	return scripts.Command("vm_firewall-live", plan.Root, args...)
}

// back brings back what is live now. Rules that the anchor has are those of its
// file, or nobody knows where they came from, and then it has none.
func (c *comparison) back(main string) plan.Command {
	rules := ""
	if len(c.state.rules) > 0 {
		rules = c.seen.files[pf.File(c.want.anchor)].Text
	}
	if strings.ContainsRune(rules, 0) {
		rules = ""
	}
	var names []string
	for _, name := range c.want.givenUp {
		if c.seen.anchors[name].filled {
			names = append(names, name)
		}
	}
	return c.live("back", rules, main, names)
}

// keep is the script that writes the files.
func (c *comparison) keep() (plan.Command, error) {
	conf := c.seen.conf()
	wanted := conf
	if !c.state.form.Settled {
		var err error
		if wanted, err = c.conf.Rewrite(c.want.anchor, c.want.givenUp); err != nil {
			return plan.Command{}, err
		}
	}
	check, err := c.conf.LoadFile(c.want.anchor, c.want.givenUp, nil)
	args := append([]string{c.want.anchor, c.want.file, conf, wanted, check, bootJob(c.want.anchor)}, c.want.former...)
	return scripts.Command("vm_firewall-keep", plan.Root, args...), err
}

// reason names what is wrong, the cause before its consequences.
func (c *comparison) reason() plan.Reason {
	s, f := c.state, c.state.form
	file, job := s.file != "missing", s.job != "missing"
	for _, r := range []struct {
		is   bool
		code plan.Code
		text string
	}{
		{!file && !job && f.Absent(), codeVMFirewallMissing, "nothing of it is there"},
		{f.Absent() && file, codePFConfResetByUpdate, "/etc/pf.conf has no line of the anchor, though its file is there: updates of macOS write a new one"},
		{f.Unclosed, codeBeginWithoutEnd, "/etc/pf.conf has " + describeForm(f)},
		{f.Blocks > 1, codeDuplicatePFBlock, "/etc/pf.conf has " + describeForm(f) + "; pf refuses to load the whole file"},
		{f.Bare > 0 || len(s.legacy) > 0, codeLegacyPFBlock, "earlier forms: /etc/pf.conf has " + describeForm(f) + "; anchors given up: " + kit.ListOr(s.legacy, "none")},
		{len(s.leftover) > 0, codePersistTableLeft, "tables outlived their rules (" + kit.ListOr(s.leftover, "") + "), so the next load would be refused as busy"},
		{len(s.missing) > 0, codeStockAnchorsMissing, "the live rules lack " + kit.ListOr(s.missing, "") + " of /etc/pf.conf"},
		{!s.evaluated, codeUnreferencedAnchor, "the live rules do not evaluate the anchor " + c.want.anchor},
		{len(s.rules) == 0, codeFlushedPFAnchor, "the anchor " + c.want.anchor + " has no rules"},
		{!s.enabled, codePFDisabled, "pf is disabled"},
		{!c.rulesAreRight(), codeLiveRulesEdited, "the live rules or tables of the anchor " + c.want.anchor + " are others"},
		{!file, codeAnchorFileMissing, pf.File(c.want.anchor) + " is not there"},
		{s.file != kit.AsRendered, codeAnchorFileEdited, pf.File(c.want.anchor) + ": " + s.file},
		{!f.Settled, codePFConfEdited, "/etc/pf.conf has " + describeForm(f)},
		{!job, codeBootJobMissing, bootJobPath + " is not there"},
		{s.job != jobLoaded, codeBootJobEdited, "the boot job is " + s.job},
	} {
		if r.is {
			return plan.Reason{Code: r.code, Text: r.text}
		}
	}
	return plan.Reason{Code: plan.CodeUnfinished, Text: "an earlier run began and was never proven"}
}
