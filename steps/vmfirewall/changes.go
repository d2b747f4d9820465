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
	codeBypassedAnchor = plan.NewCode("bypassed-anchor", plan.Critical, `a "quick" rule before the anchor bypasses it`,
		`in /etc/pf.conf, move macfleet's block before that rule or remove its "quick", then restart the host`)
	codeVMSubnetUncovered = plan.NewCode("vm-subnet-uncovered", plan.Critical, "the network of the virtual machines is not among vm_sources",
		"add the network to vm_sources, then: macfleet apply")
	codeVMNetworkCut = plan.NewCode("vm-network-cut", plan.Critical, "running virtual machines have no network: pf's live rules no longer translate their traffic",
		"restart the virtual machines, for example by draining the host: macOS then restores its rules")
	codeVMFirewallMissing   = plan.NewCode("vm-firewall-missing", plan.Critical, "the firewall is not set up")
	codePFConfResetByUpdate = plan.NewCode("pf-conf-reset-by-update", plan.Critical, "/etc/pf.conf does not load the anchor; macOS updates replace the file")
	codeBeginWithoutEnd     = plan.NewCode("begin-without-end", plan.Warning, "the last line of macfleet's block in /etc/pf.conf is missing")
	codeDuplicatePFBlock    = plan.NewCode("duplicate-pf-block", plan.Warning, "macfleet's block is in /etc/pf.conf twice")
	codeLegacyPFBlock       = plan.NewCode("legacy-pf-block", plan.Warning, "earlier forms of macfleet's block or anchor still exist")
	codePersistTableLeft    = plan.NewCode("persist-table-left", plan.Warning, "leftover tables make pf refuse the next load as busy")
	codeStockAnchorsMissing = plan.NewCode("stock-anchors-missing", plan.Warning, "anchors of /etc/pf.conf are missing from the live rules")
	codeStockLinesMissing   = plan.NewCode("stock-lines-missing", plan.Critical, "/etc/pf.conf lacks some of macOS's own lines")
	codeUnreferencedAnchor  = plan.NewCode("unreferenced-anchor", plan.Critical, "the live rules do not evaluate the anchor")
	codeFlushedPFAnchor     = plan.NewCode("flushed-pf-anchor", plan.Critical, "the anchor has no live rules")
	codePFDisabled          = plan.NewCode("pf-disabled", plan.Critical, "pf is disabled")
	codePFReferenceMissing  = plan.NewCode("pf-reference-missing", plan.Critical, "macfleet holds no pf reference, so pf stops when the last virtual machine releases its own")
	codeLiveRulesEdited     = plan.NewCode("live-rules-edited", plan.Critical, "the live rules or tables of the anchor were changed")
	codeAnchorFileMissing   = plan.NewCode("anchor-file-missing", plan.Warning, "the file of the pf anchor is missing")
	codeAnchorFileEdited    = plan.NewCode("anchor-file-edited", plan.Warning, "the file of the pf anchor was edited")
	codePFConfEdited        = plan.NewCode("pf-conf-edited", plan.Warning, "macfleet's block in /etc/pf.conf was edited")
	codeBootJobMissing      = plan.NewCode("boot-job-missing", plan.Warning, "the boot job of the firewall is missing")
	codeBootJobEdited       = plan.NewCode("boot-job-edited", plan.Warning, "the boot job of the firewall was edited")
)

// bootJobAnchor returns the anchor of a boot job written by this or an earlier macfleet, or "".
func bootJobAnchor(text string) (anchor string, earlier bool) {
	for i, until := range []string{bootJobHead + bootScript + bootJobMiddle, bootJobHead + earlierBootScript + bootJobMiddle} {
		rest, head := strings.CutPrefix(text, until)
		if anchor, tail := strings.CutSuffix(rest, bootJobTail); head && tail {
			return anchor, i > 0
		}
	}
	return "", false
}

// The boot job enables pf after a boot. It loads /etc/pf.conf only if macOS's own job has
// not: a load removes the rules that macOS adds at run time for virtual machines.
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

// finding returns the difference as changes.
func (c *comparison) finding() plan.Finding {
	moved, facts := c.settings()
	f := plan.Finding{Facts: kit.Facts(append(facts, c.anchorFacts()...))}
	if rules := pf.Bypass(c.seen.main, c.want.anchor); len(rules) > 0 {
		f.Warnings = append(f.Warnings, bypassed(c.want.anchor, rules))
	}
	uncovered := c.uncovered()
	if running := kit.Running(c.seen.work); len(running) > 0 && !slices.Contains(c.seen.points, pf.Point{Kind: "nat-anchor", Name: pf.VMNet}) {
		f.Warnings = append(f.Warnings, *codeVMNetworkCut.Trouble("virtual machines (" + strings.Join(running, ", ") +
			") have no network, because the live rules do not evaluate " + pf.VMNet + c.otherWriter()))
	}
	diff := kit.Fields(moved...)
	if len(diff) == 0 {
		f.Refused = uncovered
		return f
	}
	if len(c.want.unsure) > 0 {
		f.Warnings = append(f.Warnings, unknownAnchors(c.want.unsure))
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
			After: "reloaded after a drain, because a reload can cut the network of running virtual machines"})
		change.Reason.Text += "; the host is drained first, because restoring them reloads the main ruleset, which can cut the network of running virtual machines"
	}
	f.Changes = []plan.Change{change}
	return f
}

// bypassed warns of foreign rules that let traffic bypass the anchor. They may be intended.
func bypassed(anchor string, rules []string) plan.Trouble {
	more := ""
	if len(rules) > 1 {
		more = fmt.Sprintf(" (and %d more such rules)", len(rules)-1)
	}
	return plan.Trouble{Code: codeBypassedAnchor,
		Text:   fmt.Sprintf("the live rule %q%s precedes the anchor %s, so the traffic it passes is not blocked", rules[0], more, anchor),
		Remedy: "in " + pfConfPath + ", move the lines from # BEGIN " + anchor + " to # END " + anchor + " before it, or remove its \"quick\", then restart the host"}
}

// uncovered reports virtual machines in a network that vm_sources does not cover. Only the
// configuration can fix that.
func (c *comparison) uncovered() *plan.Trouble {
	b := c.seen.bridge
	if !b.IsValid() || c.want.spec.Covers(b) {
		return nil
	}
	return &plan.Trouble{Code: codeVMSubnetUncovered,
		Text: fmt.Sprintf("virtual machines run in %s (bridge100), which vm_sources (%s) does not cover, so their traffic is not blocked",
			b, c.want.spec.Tables[pf.SourceTable]),
		Remedy: fmt.Sprintf("add %q to vm_sources, then: macfleet apply", b)}
}

// filled returns the replaced anchors that still have rules.
func (c *comparison) filled() []string {
	return slices.DeleteFunc(slices.Clone(c.want.givenUp), func(name string) bool { return !c.seen.anchors[name].filled })
}

// rulesDiffer reports whether the anchor's live rules or tables differ.
func (c *comparison) rulesDiffer() bool {
	other := func(table string) bool { return c.held(table) != c.want.spec.Tables[table] }
	return !slices.Equal(c.live.rules, pf.Rules()) || slices.ContainsFunc(pf.Tables(), other)
}

// change returns the change that removes the difference. If the live state is right, it only
// writes files; otherwise it changes the kernel first, with an undo, and writes the files
// once that is confirmed.
func (c *comparison) change() (plan.Change, error) {
	keep, err := c.keep()
	point, placeErr := c.point()
	main := len(c.missing) > 0 || !c.evaluated && point == ""
	// After an unfinished run, the kernel gets everything again.
	live := !c.seen.enabled || !c.reference || !c.evaluated || main || c.rulesDiffer() || len(c.leftover) > 0 || c.view.Pending || len(c.filled()) > 0
	if err = cmp.Or(err, placeErr); err != nil || !live {
		return plan.Change{Command: keep}, err
	}
	var after, before, back string
	switch {
	case !main && point != "":
		back = noPoint
	case main:
		point = ""
		points := append([]pf.Point{}, c.seen.points...) // not nil: vmnet's points may still appear
		after, err = c.whole.LoadFile(c.want.anchor, c.want.givenUp, points)
		was, beforeErr := c.whole.LoadFile(kit.Choose(c.evaluated, c.want.anchor, ""), []string{c.want.anchor}, points)
		if err = cmp.Or(err, beforeErr); err != nil {
			return plan.Change{}, err
		}
		before = was
	}
	// The undo restores the live state. The anchor's rules come from its file; rules of
	// unknown origin are not restored.
	rules := c.seen.files[pf.File(c.want.anchor)].Text
	if len(c.live.rules) == 0 || strings.ContainsRune(rules, 0) {
		rules = ""
	}
	restore := c.rulesCommand("back", rules, before, back, c.filled())
	change := plan.Change{Command: c.rulesCommand("on", c.want.file, after, point, c.want.givenUp), Guard: &plan.Guard{Restore: &restore, Persist: keep}}
	if main && len(kit.Running(c.seen.work)) > 0 {
		change.Disruption = plan.Drain
	}
	return change, nil
}

// noPoint removes the anchor's point from the live main ruleset.
const noPoint = "none"

// point says where to add the anchor's point in the live main ruleset: "" if it exists, or if only a full reload can
// place it.
func (c *comparison) point() (string, error) {
	if c.evaluated {
		return "", nil
	}
	return c.whole.Place(c.want.anchor, c.want.givenUp)
}

// otherWriter names another tool that writes pf rules, as the possible cause.
func (c *comparison) otherWriter() string {
	return kit.Choose(c.seen.writer, "; fail2ban (org.macports.fail2ban) writes pf rules on this host too, and its restart may reload the main ruleset", "")
}

// rulesCommand returns the script that changes the kernel's rules.
func (c *comparison) rulesCommand(way, rules, main, point string, names []string) plan.Command {
	defined := c.seen.conf.Tables()
	tables := slices.DeleteFunc(pf.Tables(), func(name string) bool { return slices.Contains(defined, name) })
	args := append([]string{way, c.want.anchor, rules, main, strings.Join(tables, " "), point, kit.Forced(c.view)}, names...)
	return scripts.Command("vm_firewall-live", plan.Root, args...)
}

// keep returns the script that writes the files.
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

// reason names the first cause that applies.
func (c *comparison) reason() plan.Reason {
	f, anchor := c.form, c.want.anchor
	has := "/etc/pf.conf has " + describeForm(f)
	file, job := c.file != "missing", c.job != "missing"
	return kit.Causes(
		kit.When(!file && !job && f.Absent(), codeVMFirewallMissing, "the firewall is not set up"),
		kit.When(len(c.lacks) > 0, codeStockLinesMissing,
			"/etc/pf.conf lacks "+kit.ListOr(c.lacks, "")+": after the next boot, virtual machines would have no network"),
		kit.When(f.Absent() && file, codePFConfResetByUpdate,
			"/etc/pf.conf does not load the anchor; macOS updates replace the file"),
		kit.When(f.Unclosed, codeBeginWithoutEnd, has),
		kit.When(f.Blocks > 1, codeDuplicatePFBlock, has+"; pf refuses to load the whole file"),
		kit.When(f.Bare > 0 || len(c.legacy) > 0, codeLegacyPFBlock,
			"earlier forms exist: "+has+"; replaced anchors: "+kit.ListOr(c.legacy, "none")),
		kit.When(len(c.leftover) > 0, codePersistTableLeft,
			"leftover tables ("+kit.ListOr(c.leftover, "")+") make pf refuse the next load as busy"),
		kit.When(len(c.missing) > 0, codeStockAnchorsMissing, "the live rules lack "+kit.ListOr(c.missing, "")+" of /etc/pf.conf"+c.otherWriter()),
		kit.When(!c.evaluated, codeUnreferencedAnchor, "the live rules do not evaluate the anchor "+anchor+c.otherWriter()),
		kit.When(len(c.live.rules) == 0, codeFlushedPFAnchor, "the anchor "+anchor+" has no rules"),
		kit.When(!c.seen.enabled, codePFDisabled, "pf is disabled"),
		kit.When(!c.reference, codePFReferenceMissing, "macfleet holds no pf reference, so pf stops when the last virtual machine releases its own"),
		kit.When(c.rulesDiffer(), codeLiveRulesEdited, "the live rules or tables of the anchor "+anchor+" were changed"),
		kit.When(!file, codeAnchorFileMissing, pf.File(anchor)+" is missing"),
		kit.When(c.file != kit.AsRendered, codeAnchorFileEdited, pf.File(anchor)+": "+c.file),
		kit.When(!f.Settled, codePFConfEdited, has),
		kit.When(!job, codeBootJobMissing, bootJobPath+" is missing"),
		kit.When(c.job != jobLoaded, codeBootJobEdited, "the boot job is "+c.job),
	)[0]
}
