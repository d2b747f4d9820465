package steps

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
)

// macOS keeps programs of the session, and so packer, away from virtual machines unless a person has clicked Allow, from 15.0 on.
// From 15.5 on a list of networks replaces the click.
var (
	codeNetworkDenied = plan.NewCode("local-network-denied", plan.Critical, "macOS keeps jobs away from virtual machines: packer waits for SSH until it gives up",
		"macfleet reboot NAME; if it stays: allow it over VNC in System Settings, Privacy & Security, Local Network")
	codeSubnetMoved = plan.NewCode("subnet-moved", plan.Critical, "virtual machines are in a network that jobs may not reach",
		"set subnet in the local_network block to the bridge's network")
	codeNetworkClick = plan.NewCode("local-network-click", plan.Warning, "macOS 15.0 to 15.4 lets jobs reach virtual machines only after a person has allowed it",
		"run a bake, and click Allow over VNC; if VNC may not control the screen, turn on Remote Management with control in the provider's console")
	codeNetworkUnproven = plan.NewCode("local-network-unproven", plan.Notice, "it is unknown whether macOS 27 honours the list of networks that jobs may reach",
		"run a bake, then: macfleet apply (it checks while a virtual machine runs); if it is denied, allow it over VNC")
	codeNetworkUnverified = plan.NewCode("local-network-unverified", plan.NotDrift, "a virtual machine runs, and no job has shown since the last start that it can be reached")
)

// localNetwork lets jobs of the session reach the virtual machines.
type localNetwork struct {
	desired *fleet.LocalNetwork
	user    string
}

func (localNetwork) ID() plan.StepID { return "local_network" }

func (l localNetwork) Wanted() string {
	if l.desired == nil {
		return ""
	}
	return kit.Wanted(l.settings(networkSeen{}))
}

func (l localNetwork) Probes() []plan.Probe {
	if l.desired == nil {
		return nil
	}
	return []plan.Probe{scripts.Probe(l.ID(), "state", plan.Root, l.file())}
}

// file is where a job of the session writes what it reached: only the login user's own folders are open to it.
func (l localNetwork) file() string { return "/Users/" + l.user + "/.macfleet-local-network" }

// networkSeen is what a host answered.
type networkSeen struct {
	keys         bool           // this macOS has the list
	click        bool           // this macOS has only the click
	unproven     bool           // this macOS may ignore the list
	version      string         // of macOS
	wired, radio []netip.Prefix // what all programs may reach
	written      int64          // when the list was written, in seconds since 1970; 0: never
	booted       int64
	bridge       netip.Prefix // of the virtual machines; invalid: none has run since the start
	reached      string       // "allowed", "denied" or "none", by the last job of the session
	reachedSince int64        // the start of the Mac that it is about
	reachedOf    string       // the addresses that it is about
	answering    []string     // addresses that answer on the bridge
}

func (l localNetwork) settings(s networkSeen) []kit.Setting {
	subnet := l.subnet()
	seen := cmp.Or(strings.Join(distinct(slices.Concat(s.wired, s.radio)...), ", "), "no network")
	switch wired, radio := covers(s.wired, subnet), covers(s.radio, subnet); {
	case !s.keys, wired && radio: // without the list, macOS decides
		seen = *l.desired.Subnet
	case wired || radio:
		seen += " in one list of two"
	}
	const fine = "yes, or none runs"
	return []kit.Setting{kit.Compare("networks of jobs", seen, *l.desired.Subnet), kit.Compare("reached by a job", kit.Choose(l.verifies(s), "unknown", fine), fine)}
}

// subnet is the configured network, which the loader has checked.
func (l localNetwork) subnet() netip.Prefix {
	p, _ := netip.ParsePrefix(*l.desired.Subnet)
	return p
}

// current reports whether a job of the session has tried to reach a virtual machine since the Mac started.
func (s networkSeen) current() bool { return s.reached != "" && s.reachedSince == s.booted }

// verifies reports whether a job of the session should try to reach a virtual machine: one runs, and nothing else differs.
func (l localNetwork) verifies(s networkSeen) bool {
	// A person may allow it at any moment, so after a refusal every run tries again.
	tried := s.current() && (s.reached == "allowed" || s.reached == "none" && s.reachedOf == strings.Join(s.answering, " "))
	return (s.keys || s.click) && len(s.answering) > 0 && !tried && !l.moved(s) && !l.restarts(s)
}

// moved reports whether virtual machines are in another network.
func (l localNetwork) moved(s networkSeen) bool {
	subnet := l.subnet()
	return s.bridge.IsValid() && !(subnet.Bits() <= s.bridge.Bits() && subnet.Contains(s.bridge.Addr()))
}

// restarts reports whether the Mac has to start with another list.
func (l localNetwork) restarts(s networkSeen) bool {
	return s.keys && (!covers(s.wired, l.subnet()) || !covers(s.radio, l.subnet()) || s.written >= s.booted)
}

// covers reports whether a list has a network that holds all of another.
func covers(all []netip.Prefix, one netip.Prefix) bool {
	return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Bits() <= one.Bits() && p.Contains(one.Addr()) })
}

// distinct returns the texts of networks, each once.
func distinct(all ...netip.Prefix) []string {
	var out []string
	for _, p := range all {
		if !slices.Contains(out, p.String()) {
			out = append(out, p.String())
		}
	}
	return out
}

func (l localNetwork) Diff(v plan.View) plan.Finding {
	if l.desired == nil {
		return plan.Finding{} // others' networks may be in the list, so nothing is removed
	}
	r := kit.Reader{Facts: v.Facts}
	s := readNetwork(&r, "local_network.state")
	s.of(v.OSVersion)
	subnet, all := l.subnet(), l.settings(s)
	restart := &plan.Reason{Code: codeNetworkDenied, Text: "macOS reads the list of networks that jobs may reach only at its start"}
	f := r.Found(all,
		plan.Change{Reason: plan.Reason{Code: codeNetworkDenied, Text: "jobs may not reach the virtual machines at " + subnet.String()},
			Fields: kit.Fields(all[0]), Command: scripts.Command("local_network-set", plan.Root, distinct(slices.Concat([]netip.Prefix{subnet}, s.wired, s.radio)...)...)}, // others' stay
		plan.Change{Reason: plan.Reason{Code: codeNetworkUnverified, Text: "a virtual machine runs, and no job has reached it since the Mac started"},
			Fields: kit.Fields(all[1]), Command: l.verify(s)})
	moved := (s.keys || s.click) && l.moved(s)
	switch {
	case len(f.Unread) > 0:
		if !v.Root && !v.Verified && s.keys {
			f.Restart = restart // a new host gets the list in this run
		}
	case moved && len(f.Changes) == 0:
		f.Refused = codeSubnetMoved.Trouble("virtual machines are at "+s.bridge.Masked().String()+", and jobs may reach "+subnet.String(),
			"set subnet = \""+s.bridge.Masked().String()+"\" in the local_network block")
	case l.restarts(s):
		f.Restart = restart
	case s.current() && s.reached == "denied":
		f.Warnings = append(f.Warnings, *codeNetworkDenied.Trouble("a job could not reach a virtual machine since the Mac started: No route to host"))
	case s.click && s.reached != "allowed": // a click lasts longer than a start
		f.Warnings = append(f.Warnings, *codeNetworkClick.Trouble("macOS "+s.version+" lets jobs reach virtual machines only after a person has clicked Allow",
			fmt.Sprintf("run a bake, and click Allow at vnc://%s; if VNC may not control the screen, turn on Remote Management with control in the provider's console", v.Server.Address)))
	case s.unproven && !s.current():
		f.Warnings = append(f.Warnings, *codeNetworkUnproven.Trouble("no job has reached a virtual machine on macOS " + s.version + " since it started, and this version may ignore the list"))
	}
	return f
}

// verify is the command that tries to reach a virtual machine.
func (l localNetwork) verify(s networkSeen) plan.Command {
	return scripts.Command("local_network-verify", plan.Gui, append([]string{strconv.FormatInt(s.booted, 10), l.file()}, s.answering...)...)
}

func readNetwork(r *kit.Reader, id string) (s networkSeen) {
	r.Parts(id, func(p kit.Part) (err error) {
		switch p.Name {
		case "keys":
			s.wired, s.radio, err = allowed(p)
		case "written":
			if p.Exit == 0 {
				s.written, err = strconv.ParseInt(strings.TrimSpace(p.Body), 10, 64)
			}
		case "boot":
			s.booted, err = bootTime(p)
		case "bridge":
			s.bridge, err = bridgeNetwork(p)
		case "reached":
			s.readReached(p)
		case "neighbours":
			s.answering = neighbours(p, s.bridge)
		default:
			err = kit.ErrPart
		}
		return err
	})
	return s
}

// allowed reads the two lists from a dictionary as defaults prints it. Without the domain defaults fails.
func allowed(p kit.Part) (wired, radio []netip.Prefix, err error) {
	if p.Exit != 0 {
		return nil, nil, nil
	}
	list := &wired
	for _, line := range p.Lines() {
		word := strings.Trim(strings.TrimSpace(line), `",`)
		switch {
		case strings.HasPrefix(word, "AllowedEthernet"):
			list = &wired
		case strings.HasPrefix(word, "AllowedWiFi"):
			list = &radio
		case strings.Contains(word, "."):
			one, bad := netip.ParsePrefix(word)
			if bad == nil {
				*list = append(*list, one)
			}
		}
	}
	return wired, radio, nil
}

// of sets what this version of macOS, such as 15.4.1, does. An unknown one is taken for a present one.
func (s *networkSeen) of(version string) {
	s.version = version
	first, rest, _ := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, err := strconv.Atoi(first)
	minor, _ := strconv.Atoi(second)
	s.click = major == 15 && minor < 5
	s.keys = err != nil || major > 15 || major == 15 && minor >= 5
	s.unproven = major >= 27
}

// readReached reads "RESULT BOOT ADDRESS…". The login user can write the file: what cannot be read was never verified.
func (s *networkSeen) readReached(p kit.Part) {
	words := strings.Fields(p.Body)
	if len(words) < 2 {
		return
	}
	if at, err := strconv.ParseInt(words[1], 10, 64); err == nil {
		s.reached, s.reachedSince, s.reachedOf = words[0], at, strings.Join(words[2:], " ")
	}
}

// neighbours reads the lines "? (192.168.64.7) at 5e:e9:1e:0:53:64 on bridge100 …" of arp: who has answered on the bridge. An address
// that did not answer is incomplete. Leased addresses do not show it: most of their machines are gone.
func neighbours(p kit.Part, bridge netip.Prefix) []string {
	var out []string
	for _, line := range p.Lines() {
		words := strings.Fields(line)
		if len(words) < 6 || words[5] != "bridge100" || !strings.Contains(words[3], ":") {
			continue
		}
		addr, err := netip.ParseAddr(strings.Trim(words[1], "()"))
		last := bridge.IsValid() && addr.Is4() && addr.As4()[3] == 255
		if err == nil && addr != bridge.Addr() && bridge.Contains(addr) && !last {
			out = append(out, addr.String())
		}
	}
	slices.Sort(out)
	return out[:min(len(out), mostNeighbours)]
}

// mostNeighbours bounds how long a job tries: macOS runs two virtual machines of macOS at once.
const mostNeighbours = 4

// bridgeNetwork reads "inet 192.168.64.1 netmask 0xffffff00 …"; without a bridge ifconfig fails.
func bridgeNetwork(p kit.Part) (netip.Prefix, error) {
	if p.Exit != 0 {
		return netip.Prefix{}, nil
	}
	for _, line := range p.Lines() {
		words := strings.Fields(line)
		if len(words) < 4 || words[0] != "inet" {
			continue
		}
		mask, err := strconv.ParseUint(strings.TrimPrefix(words[3], "0x"), 16, 32)
		addr, bad := netip.ParseAddr(words[1])
		if err = errors.Join(err, bad); err != nil {
			return netip.Prefix{}, fmt.Errorf("bridge100: %w", err)
		}
		bits := 0
		for ; mask&0x80000000 != 0; mask <<= 1 {
			bits++
		}
		return netip.PrefixFrom(addr, bits), nil
	}
	return netip.Prefix{}, nil
}
