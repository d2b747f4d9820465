package sandbox

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

const (
	pfConf    = "/etc/pf.conf"
	pfAnchors = "/etc/pf.anchors/"
)

// pfTroubles are the incidents of pf.
func pfTroubles() []trouble {
	return slices.Concat(pfFileTroubles(), pfLiveTroubles(), []trouble{
		{
			Incident: Incident{"cut-connection-during-pf", "the next pf rules that block something cut the connection until they are reverted"},
			remember: nothing, cause: armCut(false), lasts: cutArmed(false), cure: disarmCut(false),
		},
		{
			Incident: Incident{"reboot-during-undo", "the next pf rules that block something cut the connection, and the Mac restarts before they are reverted"},
			remember: nothing, cause: armCut(true), lasts: cutArmed(true), cure: disarmCut(true),
		},
	})
}

// pfFileTroubles are incidents of /etc/pf.conf.
func pfFileTroubles() []trouble {
	return []trouble{
		{
			Incident: Incident{"duplicate-pf-block", "the fleet's block is twice in /etc/pf.conf"},
			remember: rememberPFConf(duplicateBlock), cause: plantPFConf, lasts: pfConfBroken, cure: restorePFConf,
		},
		{
			Incident: Incident{"legacy-pf-block", "/etc/pf.conf has lines for the fleet's anchor without markers, from an older version"},
			remember: rememberPFConf(legacyBlock), cause: plantPFConf, lasts: pfConfBroken, cure: restorePFConf,
		},
		{
			Incident: Incident{"begin-without-end", "someone deleted the END line of the fleet's block in /etc/pf.conf"},
			remember: rememberPFConf(withoutEnd), cause: plantPFConf, lasts: pfConfBroken, cure: restorePFConf,
		},
		{
			Incident: Incident{"pf-conf-reset-by-update", "a macOS update restored Apple's /etc/pf.conf, and the Mac has restarted since"},
			remember: rememberPFConf(appleOwn), cause: resetPFConf, lasts: pfConfBroken, cure: undoReset,
		},
		{
			Incident: Incident{"stock-lines-missing", "someone deleted macOS's translation lines from /etc/pf.conf: after the next restart, virtual machines have no network"},
			remember: rememberPFConf(withoutTranslation), cause: plantPFConf, lasts: pfConfBroken, cure: restorePFConf,
		},
		{
			Incident: Incident{"pf-conf-emptied", "someone emptied /etc/pf.conf"},
			remember: rememberPFConf(func(string, string) string { return "" }), cause: plantPFConf, lasts: pfConfBroken, cure: restorePFConf,
		},
	}
}

// pfLiveTroubles are incidents of the rules in the kernel.
func pfLiveTroubles() []trouble {
	return []trouble{
		{
			Incident: Incident{"flushed-pf-anchor", "someone flushed the fleet's anchor in the kernel; the files are unchanged"},
			remember: rememberAnchor, cause: flushAnchor, lasts: anchorFlushed, cure: reloadAnchor,
		},
		{
			Incident: Incident{"unreferenced-anchor", "the fleet's rules are loaded, but the live main ruleset does not call their anchor"},
			remember: rememberAnchor, cause: dropPoint, lasts: pointGone, cure: restorePoint,
		},
		{
			Incident: Incident{"fail2ban-reloads-pf", "fail2ban, which also writes pf rules, loaded the provider's main ruleset"},
			remember: rememberAnchor, cause: letFail2banReload, lasts: pointGone, cure: stopFail2ban,
		},
		{
			Incident: Incident{"pf-reference-missing", "someone released macfleet's pf reference, so pf stops with the last virtual machine"},
			remember: rememberReference, cause: dropReference, lasts: referenceGone, cure: takeReference,
		},
		{
			Incident: Incident{"persist-table-left", "persistent tables of an older version are in the kernel, so the fleet's rules are flushed and cannot be loaded"},
			remember: rememberAnchor, cause: leaveTables, lasts: tablesLeft, cure: killTables,
		},
		{
			Incident: Incident{"pf-disabled", "someone disabled pf"},
			remember: rememberEnabled, cause: disablePF, lasts: pfDisabled, cure: enablePF,
		},
	}
}

// anchorLine finds the name in an anchor or load anchor line.
var anchorLine = regexp.MustCompile(`(?m)^[ \t]*(?:load[ \t]+)?anchor[ \t]+"?([^"\s{]+)`)

// anchor returns the name of the fleet's anchor on this host.
func (v *victim) anchor(ctx context.Context) (string, error) {
	if known := v.record.Settings["anchor"]; known != "" {
		return known, nil
	}
	names, err := v.run(ctx, "cat "+pfConf+" 2>/dev/null; ls "+pfAnchors+" 2>/dev/null | while read -r name; do echo \"anchor $name\"; done")
	if err != nil {
		return "", err
	}
	for _, found := range anchorLine.FindAllStringSubmatch(names, -1) {
		if name := found[1]; name != "com.apple" && !strings.HasPrefix(name, "com.apple/") && name != "fail2ban" {
			return name, nil
		}
	}
	return "macfleet", nil
}

// rememberPFConf records the file and the incident's version of it.
func rememberPFConf(edit func(text, anchor string) string) func(context.Context, *victim) error {
	return func(ctx context.Context, v *victim) error {
		name, err := v.anchor(ctx)
		if err != nil {
			return err
		}
		text, err := v.pfConf()
		v.record.File, v.record.Planted = []byte(text), []byte(edit(text, name))
		return err
	}
}

func (v *victim) pfConf() (string, error) {
	machine, err := v.machine()
	if err != nil {
		return "", err
	}
	text, err := machine.ReadFile(pfConf)
	return string(text), err
}

func (v *victim) writePFConf(text string) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	return machine.WriteFile(pfConf, []byte(text), 0, 0, 0o644)
}

func plantPFConf(_ context.Context, v *victim) error { return v.writePFConf(string(v.record.Planted)) }

// pfConfBroken reports whether the file is still the incident's version.
func pfConfBroken(_ context.Context, v *victim) (bool, error) {
	text, err := v.pfConf()
	return err == nil && text == string(v.record.Planted), err
}

func restorePFConf(ctx context.Context, v *victim) error {
	broken, err := pfConfBroken(ctx, v)
	if err != nil || !broken {
		return err
	}
	return v.writePFConf(string(v.record.File))
}

// anchorLines call an anchor and load it.
func anchorLines(anchor string) string {
	return fmt.Sprintf("anchor %q\nload anchor %q from %q\n", anchor, anchor, pfAnchors+anchor)
}

func anchorBlock(anchor string) string {
	return "# BEGIN " + anchor + "\n" + anchorLines(anchor) + "# END " + anchor + "\n"
}

// ended ends the text with a line break.
func ended(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

func withBlock(text, anchor string) string {
	if strings.Contains(text, "# BEGIN "+anchor+"\n") {
		return ended(text)
	}
	return ended(text) + anchorBlock(anchor)
}

func duplicateBlock(text, anchor string) string { return withBlock(text, anchor) + anchorBlock(anchor) }

func legacyBlock(text, anchor string) string {
	return ended(text) + "# " + anchor + ": egress rules for virtual machines\n" + anchorLines(anchor)
}

func withoutEnd(text, anchor string) string {
	return strings.ReplaceAll(withBlock(text, anchor), "# END "+anchor+"\n", "")
}

// withoutTranslation removes the lines that call vmnet's anchors.
func withoutTranslation(text, _ string) string {
	for _, kind := range []string{"nat", "rdr"} {
		text = strings.ReplaceAll(text, kind+"-anchor \"com.apple/*\"\n", "")
	}
	return text
}

func appleOwn(string, string) string { return mac.ApplePFConf }

func resetPFConf(_ context.Context, v *victim) error { return v.bootWith(string(v.record.Planted)) }

// bootWith writes the file and puts pf into its state after a boot.
func (v *victim) bootWith(text string) error {
	if err := v.writePFConf(text); err != nil {
		return err
	}
	machine, err := v.machine()
	if err != nil {
		return err
	}
	return machine.LoadFilterAtBoot()
}

func undoReset(ctx context.Context, v *victim) error {
	broken, err := pfConfBroken(ctx, v)
	if err != nil || !broken {
		return err
	}
	return v.bootWith(string(v.record.File))
}
