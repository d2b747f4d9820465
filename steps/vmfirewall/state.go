package vmfirewall

import (
	"errors"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/pf"
)

const (
	pfConfPath  = "/etc/pf.conf"
	bootJobPath = "/Library/LaunchDaemons/dev.macfleet.pf.plist"
)

// packetFilter is the seen state of pf on a host.
type packetFilter struct {
	enabled bool
	listed  []string   // anchors in the kernel
	points  []pf.Point // anchor points of the live main ruleset
	main    string     // the rules of the live main ruleset, as listed
	tables  []string   // of the main ruleset
	anchors map[string]anchorState
	files   map[string]kit.FileState // by path: pf.conf, anchors' files, the boot job
	conf    pf.Conf                  // parsed pf.conf
	broken  error                    // why it could not be parsed
	first   pf.Conf                  // macOS's own lines at first contact
	job     bool                     // the boot job is loaded
	held    string                   // existing pf references
	token   string                   // pfctl's output for macfleet's own reference
	work    []kit.Working            // running virtual machines and builds; probed only if there is a bridge
	writer  bool                     // fail2ban is installed: it writes pf rules too
	bridge  netip.Prefix             // the network of virtual machines; invalid: none running
}

// anchorState is an anchor in the kernel.
type anchorState struct {
	filled bool              // it has rules
	rules  []string          // in normal form
	held   map[string]string // content of macfleet's tables
	odd    error             // what could not be parsed
}

func (p packetFilter) confText() string { return p.files[pfConfPath].Text }

// evaluates reports whether the live main ruleset evaluates the anchor.
func (p packetFilter) evaluates(anchor string) bool {
	return slices.Contains(p.points, pf.FilterPoint(anchor))
}

// readPacketFilter parses the answer of the script vm_firewall-state.
func readPacketFilter(r *kit.Reader, id string) packetFilter {
	p := packetFilter{anchors: make(map[string]anchorState), files: make(map[string]kit.FileState)}
	r.Parts(id, p.take)
	if p.conf, p.broken = parse(p.confText()); strings.ContainsRune(p.confText(), 0) {
		p.broken = errors.New("it contains a NUL byte")
	}
	return p
}

// parsed is a pf.conf, or why it could not be parsed.
type parsed struct {
	conf pf.Conf
	err  error
}

var parsedConfs kit.Memo[parsed]

// parse parses a pf.conf, once for hosts that have the same.
func parse(text string) (pf.Conf, error) {
	p := parsedConfs.Of(text, func(text string) (p parsed) {
		p.conf, p.err = pf.Parse(strings.Clone(text)) // without the rest of the host's answer
		return p
	})
	return p.conf, p.err
}

// points are those of a listing of live rules, or why it could not be parsed.
type points struct {
	points []pf.Point
	err    error
}

var parsedPoints kit.Memo[points]

func parsePoints(listing string) (p points) {
	p.points, p.err = pf.Points(strings.Clone(listing))
	return p
}

// take parses one part.
func (p *packetFilter) take(part kit.Part) (err error) {
	if what, inAnchor := strings.CutPrefix(part.Name, "live "); inAnchor {
		return p.live(what, part)
	}
	none := part.Name == "job" || part.Name == "fail2ban" || part.Name == "bridge"
	if part.Exit != 0 && !none {
		return part.Worked()
	}
	switch part.Name {
	case "job":
		p.job = part.Exit == 0
		err = kit.JobCode(part.Exit)
	case "fail2ban":
		p.writer = part.Exit == 0
	case "references":
		p.held = part.Body
	case "token":
		p.token = part.Body
	case "work":
		p.work, err = kit.Works(part)
	case "bridge":
		if part.Exit == 0 { // otherwise no virtual machine runs
			p.bridge = bridgeNetwork(part.Body)
		}
	case "info":
		p.enabled, err = pf.Enabled(part.Body)
	case "rules", "nat":
		var all points
		if all = parsedPoints.Of(part.Body, parsePoints); all.err != nil {
			return all.err
		}
		p.points = append(p.points, all.points...)
		if part.Name == "rules" {
			p.main = part.Body
		}
	case "tables":
		p.tables, err = pf.Names(part.Body)
	case "first":
		p.first, err = parse(part.Body)
	case "anchors":
		p.listed, err = pf.Names(part.Body)
	case "file":
		mode, path, _ := strings.Cut(part.Of, " ")
		p.files[path] = kit.FileState{Text: part.Body, Mode: mode}
	default:
		err = kit.ErrPart
	}
	return err
}

// live parses the kernel's state of an anchor. For a missing anchor or table, pfctl exits
// with another code.
func (p *packetFilter) live(what string, part kit.Part) error {
	state := p.anchors[part.Of]
	switch {
	case what == "tables": // asked by earlier versions
		return nil
	case what != "rules" && !slices.Contains(pf.Tables(), what):
		return kit.ErrPart
	case part.Exit != 0 && (what != "rules" || !slices.Contains(p.listed, part.Of)):
		return nil
	case part.Exit != 0:
		return part.Worked()
	case what == "rules":
		state.filled = strings.TrimSpace(part.Body) != ""
		state.rules, state.odd = pf.LiveRules(part.Body)
	default:
		networks, odd := pf.Addresses(part.Body)
		if state.held == nil {
			state.held = make(map[string]string)
		}
		state.held[what], state.odd = networks, errors.Join(state.odd, odd)
	}
	p.anchors[part.Of] = state
	return nil
}

// bridgeNetwork parses `ifconfig bridge100`, which exists while virtual machines run.
func bridgeNetwork(text string) netip.Prefix {
	words := strings.Fields(text)
	for i := range max(len(words)-3, 0) {
		if words[i] != "inet" || words[i+2] != "netmask" {
			continue
		}
		address, err := netip.ParseAddr(words[i+1])
		mask, merr := strconv.ParseUint(strings.TrimPrefix(words[i+3], "0x"), 16, 32)
		network, nerr := address.Prefix(bits.LeadingZeros32(^uint32(mask)))
		if errors.Join(err, merr, nerr) == nil && network.Bits() > 0 {
			return network
		}
	}
	return netip.Prefix{}
}

var codeUnknownAnchor = plan.NewCode("unknown-anchor", plan.Warning, "a pf anchor may be macfleet's, but has no header of macfleet",
	"if it is macfleet's, make macfleet's header the first line of its file")

// managed returns the anchors that macfleet set up, known by the header of an anchor's file and
// by the boot job, which names its anchor.
func (p packetFilter) managed() []string {
	var out []string
	for path, file := range p.files {
		if name, ok := strings.CutPrefix(path, pf.File("")); ok && pf.IsManaged(file.Text) && fleet.CheckText("anchor", name) == "" {
			out = append(out, name)
		}
	}
	if name, _ := bootJobAnchor(p.files[bootJobPath].Text); fleet.CheckText("anchor", name) == "" && !slices.Contains(out, name) {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// created returns the anchors that macfleet set up, other than the wanted one. If none is
// marked but the marker says that there was one, a block like macfleet's counts whose file or
// live rules resemble macfleet's. unsure are anchors of unknown origin.
func (p packetFilter) created(v plan.View, wanted string) (names, unsure []string) {
	names = p.managed()
	if len(names) > 0 || !v.Verified {
		return names, nil
	}
	if p.broken != nil {
		return nil, nil // refused elsewhere
	}
	marked := slices.DeleteFunc(p.conf.Marked(), func(name string) bool {
		form, err := p.conf.Inspect(name, nil)
		return err != nil || form.Blocks == 0
	})
	if slices.Contains(marked, wanted) {
		return nil, nil // the marker is about that one
	}
	for _, name := range marked {
		file, there := p.files[pf.File(name)]
		if p.conf.Has(name) && (!there || p.resembles(name, file.Text)) {
			names = append(names, name)
		} else {
			unsure = append(unsure, name)
		}
	}
	for path, file := range p.files {
		name, ok := strings.CutPrefix(path, pf.File(""))
		if ok && name != wanted && pf.Resembles(file.Text) && !slices.Contains(marked, name) {
			unsure = append(unsure, name)
		}
	}
	if len(names) > 0 {
		return names, nil
	}
	slices.Sort(unsure)
	return nil, unsure
}

// resembles reports whether an anchor's file or live rules look like macfleet's.
func (p packetFilter) resembles(anchor, file string) bool {
	return pf.Resembles(file) || slices.Equal(p.anchors[anchor].rules, pf.Rules())
}

// unknownAnchors warns of anchors that may be macfleet's.
func unknownAnchors(names []string) plan.Trouble {
	return plan.Trouble{Code: codeUnknownAnchor,
		Text: "macfleet set up a firewall on this host, but no anchor has its header any more; it may be " +
			strings.Join(names, ", ") + ", which macfleet leaves unchanged",
		Remedy: "if it is macfleet's, make \"" + pf.Header + "\" the first line of " + pf.File(names[0]) +
			"; otherwise apply the vm_firewall block again, then remove it"}
}
