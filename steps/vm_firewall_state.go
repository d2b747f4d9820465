package steps

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/steps/pf"
)

const (
	pfConfPath  = "/etc/pf.conf"
	bootJobPath = "/Library/LaunchDaemons/dev.macfleet.pf.plist"
)

// packetFilter is what was seen of pf on a host.
type packetFilter struct {
	enabled bool
	listed  []string   // anchors that the kernel has
	points  []pf.Point // where the live main ruleset evaluates anchors
	main    string     // the rules of the live main ruleset, as listed
	tables  []string   // of the main ruleset
	anchors map[string]anchorState
	files   map[string]fileState // by path: pf.conf, anchors' files, the boot job
	parsed  pf.Conf              // pf.conf, read once
	broken  error                // why it cannot be
	job     bool                 // launchd has the boot job
	bridge  netip.Prefix         // the network of virtual machines; invalid: none runs
}

// anchorState is an anchor as it is in the kernel.
type anchorState struct {
	filled bool     // it has rules
	rules  []string // in normal form
	tables []string
	held   map[string]string // what its tables hold
	odd    error             // what is not understood of it
}

type fileState struct {
	text, mode string
}

func (p packetFilter) conf() string { return p.files[pfConfPath].text }

// sectionMark begins the line behind each part of the answer.
const sectionMark = "\n== "

// packetFilter reads the answer of the script vm_firewall-state.
func (r *reader) packetFilter(id string) packetFilter {
	p := packetFilter{anchors: make(map[string]anchorState), files: make(map[string]fileState)}
	a, ok := r.answer(id)
	if !ok {
		return p
	}
	rest, ended := a.Stdout, false
	for !ended {
		body, after, found := strings.Cut(rest, sectionMark)
		if !found {
			r.odd(id, "the answer breaks off", a)
			return p
		}
		var head string
		head, rest, _ = strings.Cut(after, "\n")
		if ended = head == "end"; ended {
			break
		}
		if err := p.section(strings.Fields(head), body); err != nil {
			r.odd(id, fmt.Sprintf("%q: %v", head, err), a)
			return p
		}
	}
	p.parsed, p.broken = pf.Parse(p.conf())
	return p
}

var errSection = errors.New("this is no part of the answer")

// section reads one part: its name, the exit code of what gave it, and what it
// is of.
func (p *packetFilter) section(head []string, body string) (err error) {
	i := 1
	if len(head) > 1 && head[0] == "live" {
		i = 2
	}
	if len(head) <= i {
		return errSection
	}
	exit, err := strconv.Atoi(head[i])
	if err != nil {
		return errSection
	}
	name, of := strings.Join(head[:i], " "), strings.Join(head[i+1:], " ")
	switch name {
	case "job":
		p.job = exit == 0
		return jobCode(exit)
	case "bridge":
		p.bridge = bridgeNetwork(body, exit)
		return nil
	case "live vm_sources", "live blocked_dst":
		if exit == 0 { // a table that is not there ends with another one
			p.held(of, strings.TrimPrefix(name, "live "), body)
		}
		return nil
	}
	if strings.HasPrefix(name, "live ") && exit != 0 && !slices.Contains(p.listed, of) {
		return nil // an anchor that only a file knows has nothing in the kernel
	}
	if exit != 0 {
		return fmt.Errorf("it ended with exit %d", exit)
	}
	return p.answered(name, of, body)
}

// answered reads a part that came with exit 0.
func (p *packetFilter) answered(name, of, body string) (err error) {
	live := p.anchors[of]
	switch name {
	case "info":
		p.enabled, err = pf.Enabled(body)
	case "rules", "nat":
		var points []pf.Point
		points, err = pf.Points(body)
		p.points = append(p.points, points...)
		if name == "rules" {
			p.main = body
		}
	case "tables":
		p.tables, err = pf.Names(body)
	case "anchors":
		p.listed, err = pf.Names(body)
	case "live rules":
		live.filled = strings.TrimSpace(body) != ""
		live.rules, live.odd = pf.LiveRules(body)
		p.anchors[of] = live
	case "live tables":
		tables, odd := pf.Names(body)
		live.tables, live.odd = tables, errors.Join(live.odd, odd)
		p.anchors[of] = live
	case "file":
		mode, path, _ := strings.Cut(of, " ")
		p.files[path] = fileState{body, mode}
	default:
		return errSection
	}
	return err
}

// held reads what a table of an anchor holds.
func (p *packetFilter) held(anchor, table, body string) {
	networks, odd := pf.Addresses(body)
	live := p.anchors[anchor]
	if live.held == nil {
		live.held = make(map[string]string)
	}
	live.held[table], live.odd = pf.NetworkList(networks), errors.Join(live.odd, odd)
	p.anchors[anchor] = live
}

// jobCode reads the exit code of launchctl print: 113 is a job that launchd does
// not have.
func jobCode(exit int) error {
	if exit != 0 && exit != 113 {
		return fmt.Errorf("launchctl print ended with exit %d", exit)
	}
	return nil
}

// bridgeNetwork reads the network of `ifconfig bridge100`, which exists while
// virtual machines run.
func bridgeNetwork(text string, exit int) netip.Prefix {
	words := strings.Fields(text)
	for i := range words {
		if exit != 0 || words[i] != "inet" || i+3 >= len(words) || words[i+2] != "netmask" {
			continue
		}
		address, err := netip.ParseAddr(words[i+1])
		mask, merr := strconv.ParseUint(strings.TrimPrefix(words[i+3], "0x"), 16, 32)
		if err != nil || merr != nil {
			continue
		}
		bits := 0
		for mask&(1<<31) != 0 {
			bits, mask = bits+1, mask<<1
		}
		if network, err := address.Prefix(bits); err == nil && bits > 0 {
			return network
		}
	}
	return netip.Prefix{}
}
