// Package vmfirewall is the step vm_firewall: it blocks virtual machines from private networks.
package vmfirewall

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/pf"
)

//go:embed scripts
var files embed.FS

var scripts = kit.ScriptsOf(files)

var (
	codeVMFirewallNotRendered = plan.NewCode("vm-firewall-not-rendered", plan.Warning, "the firewall's rules cannot be rendered from the configuration",
		"correct the vm_firewall block")
	codeVMFirewallNotWanted = plan.NewCode("vm-firewall-not-wanted", plan.Notice, "the configuration no longer has a vm_firewall block for the host")
)

// vmFirewall blocks virtual machines from private networks: the host's own and those it
// routes to. Cluster policies cannot, because they never see these packets. It consists of a
// pf anchor with its file, a block in /etc/pf.conf that evaluates and loads it, and a boot
// job, because macOS loads pf.conf at boot but does not enable pf.
type vmFirewall struct{ desired *fleet.VMFirewall }

// New returns the step of a host.
func New(h fleet.Host) plan.Step { return vmFirewall{desired: h.Spec.VMFirewall} }

func (vmFirewall) ID() plan.StepID { return "vm_firewall" }

// probeID names the step's only probe. It does not depend on the configuration, and finds
// anchors of earlier configurations under any name.
const probeID = "vm_firewall.state"

func (f vmFirewall) Probes() []plan.Probe {
	return kit.ProbeOrTraces(f.desired != nil, scripts.Probe(f.ID(), "state", plan.Root))
}

func (f vmFirewall) Wanted() string {
	if f.desired == nil {
		return ""
	}
	want := f.wanted()
	if want.err != nil {
		return "not rendered: " + want.err.Error()
	}
	return want.whole
}

func (f vmFirewall) Diff(v plan.View) plan.Finding {
	r := kit.Reader{Facts: v.Facts}
	seen := readPacketFilter(&r, kit.AnsweredProbe(v.Facts, probeID))
	if f.desired == nil {
		return f.leave(v, seen, &r)
	}
	want := f.wanted()
	if want.err != nil {
		return kit.Refused(codeVMFirewallNotRendered.Trouble(want.err.Error()))
	}
	former, unsure := seen.created(v, want.anchor)
	want.unsure, want.former = unsure, want.others(former)
	want.givenUp = want.others(slices.Concat(want.legacy, want.former))
	c := comparison{view: v, seen: seen, want: want, live: seen.anchors[want.anchor], evaluated: seen.evaluates(want.anchor)}
	if a, ok := v.Facts.Get(probeID).Get(); ok && c.live.odd != nil {
		r.Unexpected(probeID, fmt.Sprintf("pfctl on the anchor %s: %v", want.anchor, c.live.odd), a)
	}
	if len(r.Unread) > 0 {
		return plan.Finding{Unread: r.Unread}
	}
	if trouble := c.inspect(); trouble != nil {
		return kit.Refused(trouble)
	}
	return c.finding()
}

// desiredFilter is the configuration in normal form.
type desiredFilter struct {
	anchor  string
	spec    pf.Spec
	file    string   // the anchor's file
	legacy  []string // anchors that the configuration takes over
	former  []string // anchors of an earlier configuration
	givenUp []string // legacy and former
	unsure  []string // anchors that may be of an earlier configuration
	whole   string   // all of the configuration, in normal form
	err     error    // why it cannot be rendered
}

var rendered kit.Memo[desiredFilter]

// wanted renders the configuration, once for hosts that have the same.
func (f vmFirewall) wanted() desiredFilter {
	var key []byte
	for _, texts := range [][]string{{*f.desired.Anchor}, f.desired.VMSources, f.desired.Block, f.desired.Legacy} {
		for _, text := range texts {
			key = append(strconv.AppendQuote(key, text), ' ')
		}
		key = append(key, '\n')
	}
	return rendered.Of(string(key), func(string) desiredFilter { return f.render() })
}

func (f vmFirewall) render() desiredFilter {
	w := desiredFilter{anchor: *f.desired.Anchor}
	if w.spec, w.err = pf.NewSpec(f.desired.VMSources, f.desired.Block); w.err != nil {
		return w
	}
	w.file, w.legacy = w.spec.File(), w.others(f.desired.Legacy)
	w.whole = w.text()
	return w
}

// others returns the names without duplicates and without the wanted anchor.
func (w desiredFilter) others(names []string) []string {
	var out []string
	for _, name := range names {
		if name != w.anchor && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// leave removes what macfleet set up, and nothing else, once the block is gone. Files and
// boot job carry macfleet's header; for a block without its file, the marker decides.
func (f vmFirewall) leave(v plan.View, seen packetFilter, r *kit.Reader) plan.Finding {
	if found, blind := r.Unreadable(v); blind {
		return found
	}
	names, unsure := seen.created(v, "")
	if v.Verified || v.Pending {
		for _, name := range seen.conf.Marked() {
			if _, there := seen.files[pf.File(name)]; !there && seen.conf.Has(name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	var warnings []plan.Trouble
	if len(unsure) > 0 {
		warnings = append(warnings, unknownAnchors(unsure))
	}
	_, job := seen.files[bootJobPath]
	switch {
	case len(unsure) > 0 && !v.Pending:
		// The anchor's owner is unknown: keep the marker's digest and the boot job, which may still tell.
		return plan.Finding{Facts: "unknown=\"" + strings.Join(unsure, ", ") + "\"\n", Warnings: warnings}
	case len(names) == 0 && !job && !v.Pending:
		return plan.Finding{}
	case seen.broken != nil:
		return kit.Refused(brokenConf(seen.broken))
	}
	rest, err := seen.conf.Remove(names)
	check, checkErr := seen.conf.LoadFile("", names, nil)
	if err = cmp.Or(err, checkErr); err != nil {
		return kit.Refused(brokenConf(err))
	}
	var all []kit.Setting
	for _, name := range names {
		all = append(all, kit.Compare("anchor "+name, "made by macfleet", ""))
	}
	if job {
		all = append(all, kit.Compare("boot job", "made by macfleet", ""))
	}
	if v.Pending {
		all = append(all, kit.Compare("earlier run", "unfinished", "finished"))
	}
	return plan.Finding{Facts: kit.Facts(all), Warnings: warnings, Changes: []plan.Change{{
		Reason:  plan.Reason{Code: codeVMFirewallNotWanted, Text: "the configuration no longer has a vm_firewall block for this host"},
		Fields:  kit.Fields(all...),
		Removes: true,
		Command: scripts.Command("vm_firewall-remove", plan.Root, append([]string{seen.confText(), rest, check}, names...)...),
	}}}
}
