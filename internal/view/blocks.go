package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

// block is what is shown of one host, or of several for which the same holds.
type block struct {
	sign  string
	title string   // what happens to them, without their names
	hosts []string // a line each
	body  []row
	name  string // of the host, which rows of several leave out
	id    string // the host's provider id, likewise
}

// row is one line below a block's hosts.
type row struct {
	sign    string
	depth   int
	text    string
	command bool  // it says what to type
	free    int64 // bytes that are free on the host, printed behind the text; 0: not printed
}

// What stands for a host's own name where several hosts are shown as one, for its name in
// a command to type, and for the provider id of its server.
const (
	ownName = "its name"
	anyName = "NAME"
	ownID   = "its server's id"
)

// ofHost is the block of one host, still without what there is to say.
func ofHost(sign string, h plan.Host) block {
	return block{sign: sign, hosts: []string{h.Name}, name: h.Name, id: h.Server.ProviderID()}
}

// troubled is the block of a trouble that concerns no host of the plan.
func troubled(name string, x plan.Trouble) block {
	return block{sign: signRefused, hosts: []string{name}, name: name, body: trouble("", 0, &x)}
}

// trouble returns the rows of a trouble, where there is one: what it is, and what to do.
func trouble(sign string, depth int, x *plan.Trouble) []row {
	if x == nil {
		return nil
	}
	rows := []row{{sign: sign, depth: depth, text: x.Code.String() + ": " + x.Text}}
	if x.Remedy != "" {
		rows = append(rows, row{depth: depth + 1, text: "fix: " + x.Remedy, command: true})
	}
	return rows
}

// exact is a row's text of the one host that a block is about.
func (b block) exact(r row) string {
	if r.command && b.name != "" {
		return strings.ReplaceAll(r.text, anyName, b.name)
	}
	return r.text
}

// general is a row's text without what is the host's own, so that equal things look equal.
func (b block) general(r row) string {
	own := ownName
	if r.command {
		own = anyName
	}
	for _, word := range [][2]string{{b.id, ownID}, {b.name, own}} {
		if word[0] != "" {
			r.text = strings.ReplaceAll(r.text, word[0], word[1])
		}
	}
	return r.text
}

// key is equal for blocks that fold into one.
func (b block) key() string {
	key := fmt.Sprintln(b.sign, b.general(row{text: b.title}))
	for _, r := range b.body {
		key += fmt.Sprintln(r.sign, r.depth, b.general(r))
	}
	return key
}

// fold joins blocks that differ only in their hosts, at the place of the first.
func fold(blocks []block) []block {
	return mapped(grouped(blocks, block.key), func(same []block) block {
		b, text := same[0], same[0].exact
		if len(same) > 1 {
			text = func(r row) string {
				if !r.command || b.name == "" {
					return b.general(r)
				}
				return fixForAll(b.general(r), plan.Names{}, mapped(same, func(b block) string { return b.name }), "")
			}
		}
		for i, r := range b.body {
			b.body[i].text = text(r)
		}
		for _, other := range same[1:] {
			b.hosts = append(b.hosts, other.hosts...)
			for i, r := range other.body { // those that fold have as many rows
				b.body[i].free = min(b.body[i].free, r.free)
			}
		}
		return b
	})
}

// fleets prints the blocks of every fleet under its name, folded.
func (t *Text) fleets(p *plan.Plan, of func(fleet string) []block) {
	told := len(unprepared(p)) > 0
	for _, f := range p.Fleets {
		all := of(f)
		for i := range all {
			if told {
				all[i].body = shortenKnown(all[i].body)
			}
		}
		t.blocks("Fleet "+f, all)
	}
}

// blocks prints blocks under a title, folded.
func (t *Text) blocks(title string, all []block) {
	if len(all) == 0 {
		return
	}
	t.section(title)
	for _, b := range fold(all) {
		t.block(b)
	}
}

func (t *Text) block(b block) {
	free := ", "
	if len(b.hosts) == 1 {
		t.line(0, b.sign, b.hosts[0])
		if b.title != "" {
			t.line(4, "", b.title)
		}
	} else {
		free = ", at least "
		t.line(0, b.sign, strings.TrimSpace(count(len(b.hosts), "host")+" "+b.title))
		for _, h := range b.hosts {
			t.line(6, "", h)
		}
		if len(b.body) > 0 {
			t.line(4, "", "each:")
		}
	}
	for _, r := range b.body {
		t.line(4+2*r.depth, r.sign, r.text+given(r.free > 0, "%s%s free", free, bytes(r.free)))
	}
}

// clusterName replaces a host's name in lines about the cluster.
const clusterName = "cluster"

// subject names what an action or an event is about: its host, or the cluster.
func subject(host string) string { return cmp.Or(host, clusterName) }

// cluster shows what the cluster itself lacks, and what of it could not be read. rows shows
// one action.
func (t *Text) cluster(p *plan.Plan, rows func(plan.Action) []row) {
	var body []row
	for _, a := range p.Actions {
		switch {
		case !a.OfCluster(), notPrepared(a) && !a.Origin.Drift:
		case notPrepared(a):
			of := rows(a)
			body = append(body, of[:min(1, len(of))]...) // the fix is printed once, below
		default:
			body = append(body, rows(a)...)
		}
	}
	body = append(body, unprepared(p)...)
	for _, u := range p.Unread {
		body = append(body, row{sign: signUnknown, text: fmt.Sprintf("not compared: %s: %s", u.Probe, u.Why)})
	}
	if len(body) > 0 {
		t.section("Cluster")
	}
	for _, r := range body {
		t.line(2*r.depth, r.sign, r.text)
	}
}

func notPrepared(a plan.Action) bool {
	return a.OfCluster() && a.Refusal != nil && a.Refusal.Code == plan.CodeClusterNotPrepared
}

// unprepared shows several objects that only an administrator makes as one trouble:
// one command makes them all.
func unprepared(p *plan.Plan) []row {
	all := slices.DeleteFunc(slices.Clone(p.Actions), func(a plan.Action) bool { return !notPrepared(a) })
	if len(all) == 0 {
		return nil
	}
	other := slices.DeleteFunc(slices.Clone(all), func(a plan.Action) bool { return a.Origin.Drift }) // drifted objects have separate lines
	t := plan.Trouble{Code: plan.CodeClusterNotPrepared, Remedy: all[0].Refusal.Remedy,
		Text: "macfleet's own account may not make these, as it could give itself any right by that"}
	switch {
	case len(other) == 1:
		t.Text = other[0].Refusal.Text
	case len(other) > 1:
		t.Text = "the cluster lacks what macfleet init cluster makes, or has it otherwise: " +
			joined(other, func(a plan.Action) string { return a.Object.String() + " (" + a.Reason.Code.String() + ")" })
	}
	return trouble(signRefused, 0, &t)
}

// shortenKnown shortens the trouble of a host whose cluster is not prepared: it is printed
// once for the cluster, with its fix.
func shortenKnown(body []row) []row {
	code := plan.CodeClusterNotPrepared.String()
	at := slices.IndexFunc(body, func(r row) bool { return strings.HasPrefix(r.text, code+": ") })
	if at < 0 {
		return body
	}
	said := row{sign: signRefused, depth: body[at].depth, text: code + ": see the cluster, above"}
	return slices.Replace(body, at, min(at+2, len(body)), said)
}

// clusterSubject names what an action of the cluster is about.
func clusterSubject(a plan.Action) string { return label(a) + given(a.Host != "", " of %s", a.Host) }

func objectRows(a plan.Action) []row {
	return append([]row{{sign: string(a.Kind.Sign()), text: clusterSubject(a) + reason(a)}}, refusal(plan.Host{}, a)...)
}

// deliveries say what of an action travels to the host: what macfleet sends and what the
// host fetches.
func deliveries(a plan.Action) []row {
	var out []row
	for _, c := range a.Changes {
		d := c.Delivery
		if d == nil {
			continue
		}
		way := "sends "
		if d.Artifact.Fetch == fleet.FetchHost {
			way = "host downloads "
		}
		size := bytes(d.Artifact.Size)
		if d.Artifact.Size == 0 { // not in the configuration
			size = strings.TrimSpace(d.Artifact.Name + " " + d.Artifact.Version)
		}
		r := row{depth: 2, text: way + size}
		if free, ok := d.Free.Get(); ok {
			r.free = max(free, 1)
		}
		out = append(out, r)
	}
	return out
}

// units are those in which disks are sold.
var units = []struct {
	of   int64
	name string
}{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}}

// bytes writes a number of bytes in the largest unit of which it has one.
func bytes(n int64) string {
	for _, u := range units {
		switch {
		case n >= 10*u.of:
			return fmt.Sprintf("%d %s", n/u.of, u.name)
		case n >= u.of:
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/float64(u.of)), ".0") + " " + u.name
		}
	}
	return fmt.Sprintf("%d B", n)
}

// costs lists what a plan disturbs and what it moves at most, or "".
func costs(p *plan.Plan) string {
	worst := make(map[string]plan.Disruption) // by server id: a host is disturbed once
	moved := make(map[bool]int64)             // by whether hosts download it
	pods := 0
	for _, actions := range p.Runnable() {
		if i := slices.IndexFunc(actions, func(a plan.Action) bool { return a.Drains }); i >= 0 {
			pods += actions[i].Evicts
		}
		for _, a := range actions {
			worst[a.ServerID] = max(worst[a.ServerID], a.Disruption)
			for _, c := range a.Changes {
				if c.Delivery != nil {
					moved[c.Delivery.Artifact.Fetch == fleet.FetchHost] += c.Delivery.Artifact.Size
				}
			}
		}
	}
	of := make(map[plan.Disruption]int)
	for _, d := range worst {
		of[d]++
	}
	var parts []string
	for d := plan.Restart; d <= plan.Wipe; d++ {
		parts = append(parts, given(of[d] > 0, "%s", count(of[d], d.String())))
	}
	parts = append(parts, given(pods > 0, "%s evicted", count(pods, "Pod")))
	sent, fetched := moved[false], moved[true]
	parts = append(parts, given(sent > 0, "%s to send", bytes(sent)), given(fetched > 0, "%s to download", bytes(fetched)))
	return listed(", ", parts...)
}

// cost says in a sentence what a plan costs at most, or "".
func cost(p *plan.Plan) string {
	text := costs(p)
	return given(text != "", "Cost: at most %s.", text)
}
