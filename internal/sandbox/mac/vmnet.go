package mac

import (
	"slices"
	"time"
)

// sharedAnchor holds the translation of virtual machines' network.
const sharedAnchor = vmnetAnchor + "/shared_v4"

// vmnetProcess holds the reference of virtual machines' network.
const vmnetProcess = "pfd"

// vmnet is the running network of virtual machines: their bridge, a reference of pf, four points in
// the live main ruleset and the rules that they call.
type vmnet struct {
	Since  time.Time `json:"since"`
	Token  uint64    `json:"token"`            // of its reference
	Broken bool      `json:"broken,omitempty"` // a load of the main ruleset has cut it, whatever is live now
}

// vmnetSwitches are its uncertain behaviours.
func vmnetSwitches() []Switch {
	return []Switch{
		{"vm-network", "when the virtual machines' bridge and vmnet's anchor points exist: while one runs, since the boot, or never",
			[]string{"vms", "present", "absent"}},
		{"vm-subnet", "the network of the virtual machines' bridge", []string{"192.168.64.1/24", "192.168.2.1/24"}},
		{"vmnet-adds", "what vmnet does to the live main ruleset when it starts: add its points, or replace everything with them",
			[]string{"points", "everything"}},
		{"vmnet-without-references", "whether vmnet starts while pf is enabled without a reference", []string{"starts", "fails"}},
		{"full-load-nat", "whether running virtual machines keep their network when the main ruleset is loaded with vmnet's points in it",
			[]string{"kept", "broken"}},
		{"guest-traffic", "whether running virtual machines send packets", []string{"busy", "none"}},
	}
}

// vmnetPoints are the kinds of its points.
var vmnetPoints = []struct {
	kind   ruleKind
	before string // before "anchor"
}{{scrubRule, "scrub-"}, {natRule, "nat-"}, {rdrRule, "rdr-"}, {filterRule, ""}}

// changeNetwork starts the virtual machines' network with the first of them, and stops it with the
// last.
func (v *visit) changeNetwork(before, after int) error {
	if v.switched("vm-network") != "vms" || (before == 0) == (after == 0) {
		return nil
	}
	live, err := v.filter()
	if err != nil {
		return err
	}
	if after > 0 {
		live.startVMNet(v)
	} else {
		live.endVMNet(v.session.now())
	}
	return v.setFilter(live)
}

func (f *filter) startVMNet(v *visit) {
	now := v.session.now()
	if f.VMNet != nil || f.Enabled && len(f.References) == 0 && v.switched("vmnet-without-references") == "fails" {
		return
	}
	f.VMNet = &vmnet{Since: now, Token: uint64(now.UnixNano())}
	f.References = append(f.References, reference{PID: 611, Process: vmnetProcess, Token: f.VMNet.Token, Since: now})
	if !f.Enabled {
		f.Enabled, f.Since = true, now
	}
	main := f.ruleset("")
	if v.switched("vmnet-adds") == "everything" {
		main.Rules = nil
		main.prune()
	}
	for _, p := range vmnetPoints {
		rest := ""
		if p.kind == scrubRule {
			rest = " fragment reassemble"
		}
		main.Rules = append(main.Rules, pfRule{Kind: p.kind, Text: p.before + `anchor "` + vmnetAnchor + `" all` + rest, Point: vmnetAnchor, Ticket: true})
	}
	f.ruleset(vmnetAnchor).Rules = []pfRule{{Kind: natRule, Text: `nat-anchor "shared_v4" all`, Point: "shared_v4"}}
	f.ruleset(sharedAnchor).Rules = []pfRule{{Kind: natRule, Text: "nat on en0 inet from " + v.bridgeNetwork().String() + " to any -> (en0:0) extfilter ei"}}
}

// endVMNet releases the reference, and removes the points that vmnet has added; a point that a load
// has restored stays.
func (f *filter) endVMNet(now time.Time) {
	if f.VMNet == nil {
		return
	}
	f.release(f.VMNet.Token, now)
	main := f.ruleset("")
	main.Rules = slices.DeleteFunc(main.Rules, func(r pfRule) bool { return r.Ticket })
	f.ruleset(vmnetAnchor).Rules, f.ruleset(sharedAnchor).Rules = nil, nil
	f.VMNet = nil
	f.tidy()
}

// release releases a reference and reports whether there was one. The last one disables pf, even if
// someone had enabled it without one.
func (f *filter) release(token uint64, now time.Time) bool {
	i := slices.IndexFunc(f.References, func(r reference) bool { return r.Token == token })
	if i < 0 {
		return false
	}
	if f.References = slices.Delete(f.References, i, i+1); len(f.References) == 0 {
		f.Enabled, f.Since = false, now
	}
	return true
}

// guestsOnline reports whether packets of virtual machines leave the host.
func (f *filter) guestsOnline() bool {
	leads := slices.ContainsFunc(f.ruleset("").of(natRule), func(r pfRule) bool { return r.Point == vmnetAnchor })
	return f.VMNet != nil && !f.VMNet.Broken && f.Enabled && leads && len(f.ruleset(sharedAnchor).of(natRule)) > 0
}

// translated counts the packets of virtual machines that a rule has translated.
func (c *pfctlCall) translated(anchor string) int {
	if anchor != sharedAnchor || !c.live.guestsOnline() || c.v.switched("guest-traffic") == "none" {
		return 0
	}
	return 1 + int(c.p.session.now().Sub(c.live.VMNet.Since)/(100*time.Millisecond))
}

// GuestsOnline reports whether the running virtual machines have a network.
func (m *Machine) GuestsOnline() (online bool, err error) {
	err = m.asRoot(func(v *visit, _ *proc) error {
		live, err := v.filter()
		if err == nil {
			online = live.guestsOnline()
		}
		return err
	})
	return online, err
}
