// Package vmfirewall is the step vm_firewall: what virtual machines may not reach.
package vmfirewall

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/pf"
)

//go:embed scripts
var files embed.FS

var scripts = kit.ScriptsOf(files)

// The codes that are raised here.
var (
	codeVMFirewallNotRendered = plan.NewCode("vm-firewall-not-rendered", plan.Warning, "the firewall's rules cannot be made of the configuration",
		"correct the vm_firewall block")
	codeVMFirewallNotWanted = plan.NewCode("vm-firewall-not-wanted", plan.Notice, "the configuration has no vm_firewall block, and macfleet made what is there")
)

// vmFirewall keeps virtual machines from private networks: the host's own, and
// those that it routes to. No policy of the cluster can, as it never sees their
// packets. It is a pf anchor with its file, a block in /etc/pf.conf that
// evaluates and loads it, and a boot job, as macOS loads pf.conf at a boot and
// does not enable pf.
type vmFirewall struct{ wish *fleet.VMFirewall }

// newVMFirewall returns the step of a host.
func New(h fleet.Host) plan.Step { return vmFirewall{wish: h.Spec.VMFirewall} }

func (vmFirewall) ID() plan.StepID { return "vm_firewall" }

func (f vmFirewall) Wanted() string {
	if f.wish == nil {
		return ""
	}
	want, err := f.wanted()
	if err != nil {
		return "not rendered: " + err.Error()
	}
	return wantedText(want)
}

// Probes asks one question, the same whatever is wanted: one script serves all
// hosts, and what an earlier wish made is found under any name. Without a wish
// nothing else matters.
func (f vmFirewall) Probes() []plan.Probe {
	if f.wish == nil {
		return []plan.Probe{kit.Traces(f.state())}
	}
	return []plan.Probe{f.state()}
}

func (f vmFirewall) state() plan.Probe { return scripts.Probe(f.ID(), "state", plan.Root) }

func (f vmFirewall) Diff(v plan.View) plan.Finding {
	r := kit.Reader{Facts: v.Facts}
	id := f.state().ID
	if f.wish == nil {
		seen := readPacketFilter(&r, kit.Answered(v.Facts, id))
		return f.leave(v, seen, &r)
	}
	seen := readPacketFilter(&r, id)
	want, err := f.wanted()
	if err != nil {
		return kit.Refused(codeVMFirewallNotRendered.Trouble(err.Error()))
	}
	want.before(v, seen)
	if a, ok := v.Facts.Get(id).Get(); ok && seen.anchors[want.anchor].odd != nil {
		r.Odd(id, fmt.Sprintf("pfctl on the anchor %s: %v", want.anchor, seen.anchors[want.anchor].odd), a)
	}
	if len(r.Unread) > 0 {
		return plan.Finding{Unread: r.Unread}
	}
	c := comparison{view: v, seen: seen, want: want}
	if trouble := c.inspect(); trouble != nil {
		return kit.Refused(trouble)
	}
	return c.finding()
}

// packetFilterWish is what is wanted, in normal form.
type packetFilterWish struct {
	anchor  string
	file    string   // the anchor's
	live    pf.Live  // what it becomes in the kernel
	legacy  []string // anchors that the wish takes over
	former  []string // anchors that an earlier wish of ours made
	sources pf.Spec  // the networks
	givenUp []string // legacy and former
	unsure  []string // anchors that may be of an earlier wish of ours
}

// wanted is the wish as a state.
func (f vmFirewall) wanted() (packetFilterWish, error) {
	var w packetFilterWish
	var err error
	if w.sources.Sources, err = pf.Networks(f.wish.VMSources); err != nil {
		return w, err
	}
	if w.sources.Blocked, err = pf.Networks(f.wish.Block); err != nil {
		return w, err
	}
	w.anchor, w.live = *f.wish.Anchor, pf.Loaded(w.sources)
	if w.file, err = pf.Rules(w.sources); err != nil {
		return w, err
	}
	w.legacy = w.others(nil, f.wish.Legacy)
	return w, nil
}

// before adds what an earlier wish made under another name, which is in what was seen.
func (w *packetFilterWish) before(v plan.View, seen packetFilter) {
	former, unsure := seen.made(v, w.anchor)
	w.unsure, w.former = unsure, w.others(nil, former)
	w.givenUp = w.others(w.legacy, w.former)
}

// others appends the names that are not there yet, and not that of the wanted anchor.
func (w *packetFilterWish) others(to, names []string) []string {
	out := slices.Clone(to)
	for _, name := range names {
		if name != w.anchor && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// leave is the finding where no firewall is wanted: what macfleet made goes, and
// nothing else. Its files and its boot job say that they are macfleet's; of a block
// whose file is gone the proof in the marker says it.
func (f vmFirewall) leave(v plan.View, seen packetFilter, r *kit.Reader) plan.Finding {
	if found, blind := r.Blind(v); blind {
		return found
	}
	conf, err := seen.parsed, seen.broken
	names, unsure := seen.made(v, "")
	if v.Proven || v.Pending {
		for _, name := range conf.Blocks() {
			if _, there := seen.files[pf.File(name)]; !there && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	_, job := seen.files[bootJobPath]
	if len(unsure) > 0 && !v.Pending {
		// Something was compared, so the proof stays; and the job, which may yet say whose it was.
		return plan.Finding{Facts: "unknown=\"" + strings.Join(unsure, ", ") + "\"\n", Warnings: []plan.Trouble{unsureWhose(unsure)}}
	}
	if len(names) == 0 && !job && !v.Pending {
		return plan.Finding{}
	}
	if err == nil && strings.ContainsRune(seen.conf(), 0) {
		err = errNUL
	}
	var rest, check string
	if err == nil {
		rest, err = conf.Remove(names)
	}
	if err == nil {
		check, err = conf.LoadFile("", names, nil)
	}
	if err != nil {
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
	var warnings []plan.Trouble
	if len(unsure) > 0 {
		warnings = append(warnings, unsureWhose(unsure))
	}
	return plan.Finding{Facts: kit.Facts(all), Warnings: warnings, Changes: []plan.Change{{
		Reason:  plan.Reason{Code: codeVMFirewallNotWanted, Text: "the configuration has no vm_firewall block for this host, and macfleet made what is here"},
		Fields:  kit.Fields(all...),
		Removes: true,
		Command: scripts.Command("vm_firewall-remove", plan.Root, append([]string{seen.conf(), rest, check}, names...)...),
	}}}
}
