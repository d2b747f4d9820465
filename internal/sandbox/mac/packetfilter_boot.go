package mac

import (
	"net/netip"
	"syscall"
)

// Files of pf.
const (
	pfConf        = "/private/etc/pf.conf"
	pfAnchors     = "/private/etc/pf.anchors"
	appleAnchor   = pfAnchors + "/com.apple"
	vmnetAnchor   = "com.apple.internet-sharing"
	providerTable = "fail2ban"
)

// ApplePFConf is Apple's /etc/pf.conf, which an update of macOS restores.
const ApplePFConf = `#
# Default PF configuration file.
#
# This file contains the main ruleset, which gets automatically loaded
# at startup.  PF will not be automatically enabled, however.  Instead,
# each component which utilizes PF is responsible for enabling and disabling
# PF via -E and -X as documented in pfctl(8).  That will ensure that PF
# is disabled only when the last enable reference is released.
#
# Care must be taken to ensure that the main ruleset does not get flushed,
# as the nested anchors rely on the anchor point defined here. In addition,
# to the anchors loaded by this file, some system services would dynamically 
# insert anchors into the main ruleset. These anchors will be added only when
# the system service is used and would removed on termination of the service.
#
# See pf.conf(5) for syntax.
#

#
# com.apple anchor point
#
scrub-anchor "com.apple/*"
nat-anchor "com.apple/*"
rdr-anchor "com.apple/*"
dummynet-anchor "com.apple/*"
anchor "com.apple/*"
load anchor "com.apple" from "/etc/pf.anchors/com.apple"
`

// FactoryPFConf is the /etc/pf.conf of a new Mac from the provider.
const FactoryPFConf = ApplePFConf + providerPFConf

// providerPFConf is what a provider appends to Apple's file.
const providerPFConf = `table <fail2ban> persist
block drop in proto { tcp, udp } from <fail2ban> to any
`

const appleAnchorRules = `#
# com.apple ruleset, referred to by the default /etc/pf.conf file.
# See notes in that file regarding the anchor point in the main ruleset.
#

#
# AirDrop anchor point.
#
anchor "200.AirDrop/*"

#
# Application Firewall anchor point.
#
anchor "250.ApplicationFirewall/*"
`

// factoryRules returns the files of pf of a new Mac.
func factoryRules(name string) ([]byte, error) {
	for _, s := range pfStock() {
		if s.data != nil && (name == s.path || "/private"+name == s.path) {
			return s.data, nil
		}
	}
	return nil, syscall.ENOENT
}

// pfStock are the files of pf on a new Mac's disk.
func pfStock() []stock {
	return []stock{
		{path: pfConf, data: []byte(FactoryPFConf)},
		{path: appleAnchor, data: []byte(appleAnchorRules)},
	}
}

// pfSwitches are the uncertain behaviours of pf.
func pfSwitches() []Switch {
	return []Switch{
		{"pf-after-boot", "whether the provider's own software enables pf after a boot", []string{"enabled", "disabled"}},
		{"full-load-busy", "whether loading a whole file fails as busy while an anchor that it loads has tables in use", []string{"no", "yes"}},
		{"table-contents", "whether a full load keeps entries added to the main ruleset's tables at run time", []string{"lost", "kept"}},
	}
}

// loadAtBoot does what the system's job does at a boot: it loads the rules of /etc/pf.conf and does
// not enable the filter. Then its users start: the provider's service enables it and fills its table,
// and vmnet adds its anchor points.
func (v *visit) loadAtBoot() error {
	root := &proc{session: v.session, user: v.session.users()[0], dir: "/"}
	live, err := v.bootedFilter(func(name string) ([]byte, error) { return v.read(root, name) })
	if err != nil {
		return err
	}
	return v.setFilter(live)
}

// LoadFilterAtBoot puts pf into its state after a boot with the present files.
func (m *Machine) LoadFilterAtBoot() error {
	return m.asRoot(func(v *visit, _ *proc) error { return v.loadAtBoot() })
}

func (v *visit) bootedFilter(read func(name string) ([]byte, error)) (*filter, error) {
	booted := v.session.id.Booted
	live := &filter{Since: booted, Rulesets: map[string]*ruleset{"": {Tables: map[string]*table{}}}}
	text, err := read(pfConf)
	if err == nil {
		l := &loading{live: live, read: read, switched: v.switched}
		if next, failed := l.load("/etc/pf.conf", string(text), ""); failed == nil {
			live = next
		}
	} else if !missing(err) {
		return nil, err
	}
	if t := live.ruleset("").Tables[providerTable]; t != nil && t.Active {
		for _, address := range []string{"198.51.100.23/32", "203.0.113.77/32"} {
			t.add(tableAddress{Prefix: netip.MustParsePrefix(address)})
		}
	}
	if v.switched("pf-after-boot") == "enabled" {
		live.Enabled = true
		live.References = []reference{{PID: 412, Process: "scw-agent", Token: 7_214_809_236_615_403_177, Since: booted}}
	}
	if guests, err := v.guests(); err != nil {
		return nil, err
	} else if network := v.switched("vm-network"); network == "present" || network == "vms" && running(guests) > 0 {
		live.startVMNet(v)
	}
	return live, nil
}

// pfFolder is the folder of the anchors' files.
func pfFolder() stock { return stock{path: pfAnchors} }
