package vmfirewall

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/pf"
)

var (
	codeBypassedAnchor = plan.NewCode("bypassed-anchor", plan.Critical, `a rule with "quick" decides before the anchor is asked`,
		`move the block in /etc/pf.conf ahead of that rule, or take "quick" off it, and restart the host`)
	codeVMSubnetUncovered = plan.NewCode("vm-subnet-uncovered", plan.Critical, "the network of the virtual machines is not among vm_sources",
		"add it to vm_sources")
	codeVMNetworkCut = plan.NewCode("vm-network-cut", plan.Critical, "virtual machines run and the live rules of pf no longer translate what they send",
		"stop the virtual machines and start them again, for example with a drain of the host: macOS then brings its rules back")
	codeVMFirewallMissing   = plan.NewCode("vm-firewall-missing", plan.Critical, "nothing of the firewall is there")
	codePFConfResetByUpdate = plan.NewCode("pf-conf-reset-by-update", plan.Critical, "/etc/pf.conf has no line of the anchor: updates of macOS write a new one")
	codeBeginWithoutEnd     = plan.NewCode("begin-without-end", plan.Warning, "the last line of macfleet's block in /etc/pf.conf is missing")
	codeDuplicatePFBlock    = plan.NewCode("duplicate-pf-block", plan.Warning, "macfleet's block stands twice in /etc/pf.conf")
	codeLegacyPFBlock       = plan.NewCode("legacy-pf-block", plan.Warning, "earlier forms of the packet filter's block or anchor are still there")
	codePersistTableLeft    = plan.NewCode("persist-table-left", plan.Warning, "tables outlived their rules, so the next load would be refused as busy")
	codeStockAnchorsMissing = plan.NewCode("stock-anchors-missing", plan.Warning, "the live rules lack anchors of /etc/pf.conf")
	codeStockLinesMissing   = plan.NewCode("stock-lines-missing", plan.Critical, "/etc/pf.conf lacks lines of macOS's own")
	codeUnreferencedAnchor  = plan.NewCode("unreferenced-anchor", plan.Critical, "the live rules do not evaluate the anchor")
	codeFlushedPFAnchor     = plan.NewCode("flushed-pf-anchor", plan.Critical, "the rules of the anchor are gone from the kernel")
	codePFDisabled          = plan.NewCode("pf-disabled", plan.Critical, "pf is disabled")
	codePFReferenceMissing  = plan.NewCode("pf-reference-missing", plan.Critical, "macfleet holds no reference of pf, which ends with the last one")
	codeLiveRulesEdited     = plan.NewCode("live-rules-edited", plan.Critical, "the live rules or tables of the anchor are others")
	codeAnchorFileMissing   = plan.NewCode("anchor-file-missing", plan.Warning, "the file of the pf anchor is missing")
	codeAnchorFileEdited    = plan.NewCode("anchor-file-edited", plan.Warning, "the file of the pf anchor is not as macfleet writes it")
	codePFConfEdited        = plan.NewCode("pf-conf-edited", plan.Warning, "macfleet's block in /etc/pf.conf is not as it writes it")
	codeBootJobMissing      = plan.NewCode("boot-job-missing", plan.Warning, "the boot job of the firewall is missing")
	codeBootJobEdited       = plan.NewCode("boot-job-edited", plan.Warning, "the boot job of the firewall is not as macfleet writes it")
)

// bootJobAnchor returns the anchor of a boot job that is as macfleet writes it or as an earlier version did, or "".
func bootJobAnchor(text string) (anchor string, earlier bool) {
	for i, does := range []string{bootScript, earlierBootScript} {
		rest, head := strings.CutPrefix(text, bootJobHead+does+bootJobMiddle)
		if anchor, tail := strings.CutSuffix(rest, bootJobTail); head && tail {
			return anchor, i > 0
		}
	}
	return "", false
}

// The boot job around its anchor enables pf after a boot. macOS's own job loads
// /etc/pf.conf by then; where it did not, this one does. A job that loaded in any
// case would take away what macOS adds at run time for virtual machines' network,
// each time it is bootstrapped.
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
		<string>`
	bootScript = `PATH=/usr/bin:/bin:/usr/sbin:/sbin
own=/var/run/dev.macfleet.pf token=none
[ ! -f "$own" ] || while read -r word _ number _; do [ "$word" != Token ] || token=$number; done &lt;"$own"
pfctl -s References 2&gt;/dev/null | grep -qE "[[:space:]]$token([[:space:]]|\$)" || pfctl -E &gt;"$own" 2&gt;&amp;1
pfctl -s info 2&gt;/dev/null | grep -q "^Status: Enabled" || pfctl -e
pfctl -s rules 2&gt;/dev/null | grep -qF "anchor \"$1\"" || ifconfig bridge100 &gt;/dev/null 2&gt;&amp;1 || pfctl -f /etc/pf.conf
`
	earlierBootScript = `PATH=/usr/bin:/bin:/usr/sbin:/sbin
pfctl -s info 2&gt;/dev/null | grep -q "^Status: Enabled" || pfctl -E
pfctl -s rules 2&gt;/dev/null | grep -qF "anchor \"$1\"" || pfctl -f /etc/pf.conf
`
	bootJobMiddle = `</string>
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
	moved, facts := c.settings()
	f := plan.Finding{Facts: kit.Facts(append(facts, c.anchorFacts()...))}
	if rules := pf.Bypass(c.seen.main, c.want.anchor); len(rules) > 0 {
		f.Warnings = append(f.Warnings, bypassed(c.want.anchor, rules))
	}
	uncovered := c.uncovered()
	if running := kit.Running(c.seen.work); len(running) > 0 && !slices.Contains(c.seen.points, pf.Point{Kind: "nat-anchor", Name: pf.VMNet}) {
		f.Warnings = append(f.Warnings, *codeVMNetworkCut.Trouble("virtual machines run (" + strings.Join(running, ", ") +
			"), and the live rules no longer lead to " + pf.VMNet + ": what they send reaches nobody" + c.otherWriter()))
	}
	diff := kit.Fields(moved...)
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
	if change.Disruption == plan.Drain {
		f.Busy = kit.Tasks(c.seen.work)
		change.Fields = append(change.Fields, plan.Field{Name: "main ruleset", Before: "live",
			After: "loaded once, after a drain: a load can cut the network of virtual machines that run"})
		change.Reason.Text += "; only a load of the whole main ruleset brings them back, and that can cut the network of virtual machines that run, so the host is drained first"
	}
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
	if !b.IsValid() || c.want.spec.Covers(b) {
		return nil
	}
	return &plan.Trouble{Code: codeVMSubnetUncovered,
		Text: fmt.Sprintf("virtual machines run in %s (bridge100), which vm_sources (%s) does not cover: nothing is blocked for them",
			b, c.want.spec.Tables[pf.SourceTable]),
		Remedy: fmt.Sprintf("add %q to vm_sources", b)}
}

// filled are the anchors given up that have rules.
func (c *comparison) filled() []string {
	return slices.DeleteFunc(slices.Clone(c.want.givenUp), func(name string) bool { return !c.seen.anchors[name].filled })
}

// rulesDiffer reports whether the anchor's live rules or tables are others.
func (c *comparison) rulesDiffer() bool {
	other := func(table string) bool { return c.held(table) != c.want.spec.Tables[table] }
	return !slices.Equal(c.live.rules, pf.Rules()) || slices.ContainsFunc(pf.Tables(), other)
}

// change is what removes the difference: in files alone where what is live is
// right, and else first live, with a way back, and in files once that is
// confirmed.
func (c *comparison) change() (plan.Change, error) {
	keep, err := c.keep()
	point, placeErr := c.point()
	main := len(c.missing) > 0 || !c.evaluated && point == ""
	// After a run that never finished the kernel is told everything once more.
	live := !c.seen.enabled || !c.reference || !c.evaluated || main || c.rulesDiffer() || len(c.leftover) > 0 || c.view.Pending || len(c.filled()) > 0
	if err = cmp.Or(err, placeErr); err != nil || !live {
		return plan.Change{Command: keep}, err
	}
	var after, before, back string
	switch {
	case !main && point != "":
		back = nowhere
	case main:
		point = ""
		points := append([]pf.Point{}, c.seen.points...) // not nil: vmnet's may come to be live yet
		after, err = c.whole.LoadFile(c.want.anchor, c.want.givenUp, points)
		was, beforeErr := c.whole.LoadFile(kit.Choose(c.evaluated, c.want.anchor, ""), []string{c.want.anchor}, points)
		if err = cmp.Or(err, beforeErr); err != nil {
			return plan.Change{}, err
		}
		before = was
	}
	// What is live now comes back. Rules that the anchor has are those of its file, or
	// nobody knows where they came from, and then it has none.
	rules := c.seen.files[pf.File(c.want.anchor)].Text
	if len(c.live.rules) == 0 || strings.ContainsRune(rules, 0) {
		rules = ""
	}
	restore := c.tell("back", rules, before, back, c.filled())
	change := plan.Change{Command: c.tell("on", c.want.file, after, point, c.want.givenUp), Guard: &plan.Guard{Restore: &restore, Persist: keep}}
	if main && len(kit.Running(c.seen.work)) > 0 {
		change.Disruption = plan.Drain
	}
	return change, nil
}

// nowhere takes the anchor's point out of the live main ruleset.
const nowhere = "nowhere"

// point says where the live main ruleset is to evaluate the anchor: nothing where it does, or where only a load of
// all of it puts it in its place.
func (c *comparison) point() (string, error) {
	if c.evaluated {
		return "", nil
	}
	return c.whole.Place(c.want.anchor, c.want.givenUp)
}

// otherWriter names who else writes rules of pf, where that may be why they differ.
func (c *comparison) otherWriter() string {
	return kit.Choose(c.seen.writer, "; fail2ban (org.macports.fail2ban) writes rules of pf here too, and a restart of it may load the main ruleset", "")
}

// tell is the script that tells the kernel.
func (c *comparison) tell(way, rules, main, point string, names []string) plan.Command {
	defined := c.seen.conf.Tables()
	tables := slices.DeleteFunc(pf.Tables(), func(name string) bool { return slices.Contains(defined, name) })
	args := append([]string{way, c.want.anchor, rules, main, strings.Join(tables, " "), point, kit.Forced(c.view)}, names...)
	return scripts.Command("vm_firewall-live", plan.Root, args...)
}

// keep is the script that writes the files.
func (c *comparison) keep() (plan.Command, error) {
	conf := c.seen.confText()
	wanted, err := conf, error(nil)
	if !c.form.Settled || len(c.lacks) > 0 {
		wanted, err = c.whole.Rewrite(c.want.anchor, c.want.givenUp)
	}
	check, checkErr := c.whole.LoadFile(c.want.anchor, c.want.givenUp, nil)
	args := append([]string{c.want.anchor, c.want.file, conf, wanted, check, bootJobHead + bootScript + bootJobMiddle + c.want.anchor + bootJobTail}, c.want.former...)
	return scripts.Command("vm_firewall-keep", plan.Root, args...), cmp.Or(err, checkErr)
}

// reason names what is wrong, the cause before its consequences.
func (c *comparison) reason() plan.Reason {
	f, anchor := c.form, c.want.anchor
	has := "/etc/pf.conf has " + describeForm(f)
	file, job := c.file != "missing", c.job != "missing"
	return kit.Causes(
		kit.When(!file && !job && f.Absent(), codeVMFirewallMissing, "nothing of it is there"),
		kit.When(len(c.lacks) > 0, codeStockLinesMissing,
			"/etc/pf.conf lacks "+kit.ListOr(c.lacks, "")+" of macOS's own: after the next boot virtual machines would have no network"),
		kit.When(f.Absent() && file, codePFConfResetByUpdate,
			"/etc/pf.conf has no line of the anchor, though its file is there: updates of macOS write a new one"),
		kit.When(f.Unclosed, codeBeginWithoutEnd, has),
		kit.When(f.Blocks > 1, codeDuplicatePFBlock, has+"; pf refuses to load the whole file"),
		kit.When(f.Bare > 0 || len(c.legacy) > 0, codeLegacyPFBlock,
			"earlier forms: "+has+"; anchors given up: "+kit.ListOr(c.legacy, "none")),
		kit.When(len(c.leftover) > 0, codePersistTableLeft,
			"tables outlived their rules ("+kit.ListOr(c.leftover, "")+"), so the next load would be refused as busy"),
		kit.When(len(c.missing) > 0, codeStockAnchorsMissing, "the live rules lack "+kit.ListOr(c.missing, "")+" of /etc/pf.conf"+c.otherWriter()),
		kit.When(!c.evaluated, codeUnreferencedAnchor, "the live rules do not evaluate the anchor "+anchor+c.otherWriter()),
		kit.When(len(c.live.rules) == 0, codeFlushedPFAnchor, "the anchor "+anchor+" has no rules"),
		kit.When(!c.seen.enabled, codePFDisabled, "pf is disabled"),
		kit.When(!c.reference, codePFReferenceMissing, "macfleet holds no reference of pf: pf ends when the last virtual machine gives back its own"),
		kit.When(c.rulesDiffer(), codeLiveRulesEdited, "the live rules or tables of the anchor "+anchor+" are others"),
		kit.When(!file, codeAnchorFileMissing, pf.File(anchor)+" is not there"),
		kit.When(c.file != kit.AsRendered, codeAnchorFileEdited, pf.File(anchor)+": "+c.file),
		kit.When(!f.Settled, codePFConfEdited, has),
		kit.When(!job, codeBootJobMissing, bootJobPath+" is not there"),
		kit.When(c.job != jobLoaded, codeBootJobEdited, "the boot job is "+c.job),
	)[0]
}
