package mac

import (
	"net/netip"
	"strconv"
	"strings"
)

// localNetworkPlist is the list of networks that every program may use. macOS reads it at its start, from 15.5 on.
const localNetworkPlist = "/private/var/root/Library/Preferences/com.apple.network.local-network.plist"

// localNetworkSwitch says what lets a program of the session into the local network.
const localNetworkSwitch = "local-network"

func localNetworkSwitches() []Switch {
	return []Switch{{localNetworkSwitch, "what lets jobs of the session into the local network: what the version of macOS says, a click that was made, or nothing although the list has it",
		[]string{"version", "clicked", "ignored"}}}
}

// nc connects to SSH, here or on a virtual machine; only -z with limits is modelled.
func nc(p *proc) int {
	args := p.args()
	if len(args) < 3 || args[0] != "-z" {
		return p.unmodelled(strings.Join(args, " "))
	}
	host, port := args[len(args)-2], args[len(args)-1]
	to, err := netip.ParseAddr(host)
	if err != nil {
		return p.unmodelled(strings.Join(args, " "))
	}
	if to.IsLoopback() {
		if port != "22" {
			return p.fail(exitFailed, "connectx to %s port %s (tcp) failed: Connection refused", host, port)
		}
		p.printf("Connection to %s port %s [tcp/ssh] succeeded!\n", host, port)
		return 0
	}
	allowed, up, version := false, false, p.osVersion()
	err = p.visit(func(v *visit) error {
		live, err := v.filter()
		if err != nil {
			return err
		}
		up = (live.VMNet != nil || v.switched("vm-network") == "present") && v.bridgeNetwork().Contains(to)
		allowed = p.user.uid == 0 || p.under == nil || !strings.HasPrefix(p.under.target, "gui/") || v.mayUse(version, to)
		return nil
	})
	switch {
	case err != nil:
		return p.fail(exitFailed, "%s", why(err))
	case !allowed:
		return p.fail(exitFailed, "connectx to %s port %s (tcp) failed: No route to host", host, port)
	case !up:
		return p.fail(exitFailed, "connectx to %s port %s (tcp) failed: Operation timed out", host, port)
	}
	p.printf("Connection to %s port %s [tcp/ssh] succeeded!\n", host, port)
	return 0
}

// mayUse reports whether a program of the session may connect to an address of the local network, on a version of macOS.
func (v *visit) mayUse(version string, to netip.Addr) bool {
	switch v.switched(localNetworkSwitch) {
	case "clicked":
		return true
	case "ignored":
		return false
	}
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	first, _ := strconv.Atoi(major)
	second, _ := strconv.Atoi(minor)
	if first < 15 {
		return true
	}
	if first == 15 && second < 5 {
		return false
	}
	n, err := v.at(localNetworkPlist)
	if err != nil || !n.exists() || !n.info.ModTime().Before(v.session.booted()) {
		return false
	}
	values, err := v.readPlist(localNetworkPlist)
	if err != nil {
		return false
	}
	list, _ := values["AllowedEthernetLocalNetworkAddresses"].([]any)
	for _, one := range list {
		text, _ := one.(string)
		if network, err := netip.ParsePrefix(text); err == nil && network.Contains(to) {
			return true
		}
	}
	return false
}
