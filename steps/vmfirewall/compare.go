package vmfirewall

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/pf"
)

// The codes that are raised here.
var (
	codePFConfBroken = plan.NewCode("pf-conf-broken", plan.Critical, "/etc/pf.conf cannot be read",
		"mend it on the host; pfctl -nf /etc/pf.conf says what pf thinks of it")
	codePFConfMissing = plan.NewCode("pf-conf-missing", plan.Critical, "the host has no /etc/pf.conf", "put macOS's own file back")
	codeForeignAnchor = plan.NewCode("foreign-anchor", plan.Warning, "the anchor of that name was not made by macfleet",
		"choose another anchor in the vm_firewall block, or remove it on the host")
)

// comparison is a host's packet filter beside what is wanted of it.
type comparison struct {
	view  plan.View
	seen  packetFilter
	conf  pf.Conf
	want  packetFilterWish
	state packetFilterState
}

// packetFilterState is what was seen in the terms of the wish.
type packetFilterState struct {
	enabled   bool
	missing   []string // of macOS's own anchor points that pf.conf has, those that are not live
	evaluated bool     // the live main ruleset evaluates the anchor
	rules     []string
	held      map[string]string
	leftover  []string // tables of ours where none should be
	legacy    []string // anchors given up that are somewhere yet
	form      pf.Form
	file, job string // "as rendered", "loaded", or what is wrong
	pending   bool
	network   string // of virtual machines, where vm_sources does not cover it
}

const jobLoaded = "loaded"

func (s packetFilterState) pf() string { return kit.Choose(s.enabled, "enabled", "disabled") }

// stock says whether macOS's own anchor points are live.
func (s packetFilterState) stock() string {
	return kit.Choose(len(s.missing) == 0, "live", "missing: "+strings.Join(s.missing, ", "))
}

var errNUL = errors.New("it holds a NUL byte")

func brokenConf(err error) *plan.Trouble {
	return codePFConfBroken.Trouble(pfConfPath + " cannot be read: " + err.Error())
}

// inspect brings what was seen into the terms of the wish. It returns what
// macfleet must not touch.
func (c *comparison) inspect() *plan.Trouble {
	conf, there := c.seen.files[pfConfPath]
	if !there {
		return codePFConfMissing.Trouble("the host has no " + pfConfPath)
	}
	if strings.ContainsRune(conf.Text, 0) {
		return brokenConf(errNUL)
	}
	if c.seen.broken != nil {
		return brokenConf(c.seen.broken)
	}
	c.conf = c.seen.parsed
	form, err := c.conf.Inspect(c.want.anchor, c.want.givenUp)
	if err != nil {
		return brokenConf(err)
	}
	live := c.seen.anchors[c.want.anchor]
	c.state = packetFilterState{enabled: c.seen.enabled, evaluated: c.seen.evaluates(c.want.anchor), rules: live.rules, held: live.held, form: form,
		file: c.anchorFile(), job: c.bootJob(), pending: c.view.Pending}
	c.state.missing = c.stockMissing()
	c.leftovers(live)
	c.givenUp()
	if u := c.uncovered(); u != nil {
		c.state.network = c.seen.bridge.String()
	}
	return c.stranger()
}

// evaluates reports whether the live main ruleset has a point of the anchor.
func (p packetFilter) evaluates(anchor string) bool {
	return slices.Contains(p.points, pf.FilterPoint(anchor))
}

// stockMissing lists macOS's own anchor points of pf.conf that are not live.
// Without nat-anchor "com.apple/*" the network of virtual machines dies silently.
// Points of dummynet are in no listing of ours.
func (c *comparison) stockMissing() []string {
	var out []string
	for _, p := range c.conf.ApplePoints() {
		if p.Kind != "dummynet-anchor" && !slices.Contains(c.seen.points, p) {
			out = append(out, p.String())
		}
	}
	return out
}

// leftovers finds tables that outlived their rules: they make the next load fail
// with "Resource busy".
func (c *comparison) leftovers(live anchorState) {
	defined := c.conf.Tables()
	for _, name := range pf.Tables() {
		if slices.Contains(c.seen.tables, name) && !slices.Contains(defined, name) {
			c.state.leftover = append(c.state.leftover, name+" in the main ruleset")
		}
		if _, there := live.held[name]; there && len(live.rules) == 0 {
			c.state.leftover = append(c.state.leftover, name+" in the anchor")
		}
	}
}

// givenUp finds what is left of legacy anchors, and of those that an earlier
// wish made.
func (c *comparison) givenUp() {
	for _, name := range c.want.givenUp {
		var where []string
		if slices.Contains(c.state.form.Legacy, name) {
			where = append(where, "in pf.conf")
		}
		if c.seen.anchors[name].filled {
			where = append(where, "live")
		}
		if _, there := c.seen.files[pf.File(name)]; there && slices.Contains(c.want.former, name) {
			where = append(where, "its file")
		}
		if where != nil {
			c.state.legacy = append(c.state.legacy, name+" ("+strings.Join(where, ", ")+")")
		}
	}
}

func (c *comparison) anchorFile() string {
	file, there := c.seen.files[pf.File(c.want.anchor)]
	switch {
	case !there:
		return "missing"
	case file.Text != c.want.file && file.Mode == kit.FileMode && pf.IsRendered(file.Text):
		return "of an earlier wish"
	}
	return file.Is(file.Text == c.want.file, kit.FileMode)
}

func (c *comparison) bootJob() string {
	file, there := c.seen.files[bootJobPath]
	state := file.Is(isBootJob(file.Text, c.want.anchor), kit.FileMode)
	switch {
	case !there:
		return "missing"
	case state == kit.AsRendered:
		return kit.Choose(c.seen.job, jobLoaded, "not loaded")
	}
	return state
}

// stranger refuses an anchor of the wanted name that somebody else made and that
// pf.conf does not name: one that pf.conf names, with marks or without, is an
// earlier form of ours and is taken over.
func (c *comparison) stranger() *plan.Trouble {
	if c.view.Proven || c.view.Pending || c.state.form.Blocks > 0 || c.state.form.Bare > 0 || c.state.form.Unclosed {
		return nil
	}
	file, there := c.seen.files[pf.File(c.want.anchor)]
	what := pf.File(c.want.anchor)
	switch {
	case there && pf.IsOurs(file.Text):
		return nil
	case there:
	case len(c.state.rules) > 0 && !slices.Equal(c.state.rules, c.want.live.Rules):
		what = "the rules that are live in the anchor " + c.want.anchor
	default:
		return nil
	}
	return codeForeignAnchor.Trouble(fmt.Sprintf("macfleet did not make %s, and /etc/pf.conf does not name the anchor", what))
}

// packetFilterSettings are both sides of what a change moves, as a person reads
// them: first what is live, then the files.
func packetFilterSettings(s packetFilterState, want packetFilterWish) []kit.Setting {
	evaluated := want.anchor + ", evaluated"
	given := "none"
	if len(want.legacy) > 0 {
		given = "none of " + strings.Join(want.legacy, ", ")
	}
	return []kit.Setting{
		kit.Compare("pf", s.pf(), "enabled"),
		kit.Compare("macOS's own anchors", s.stock(), "live"),
		kit.Compare("anchor", kit.Choose(s.evaluated, evaluated, want.anchor+", not evaluated"), evaluated),
		kit.Compare("rules", kit.ListOr(s.rules, "none"), kit.ListOr(want.live.Rules, "none")),
		kit.Compare("vm_sources", held(s, pf.SourceTable), want.live.Sources),
		kit.Compare("blocked_dst", held(s, pf.BlockedTable), want.live.Blocked),
		kit.Compare("tables left over", kit.ListOr(s.leftover, "none"), "none"),
		kit.Compare("anchors given up", kit.ListOr(s.legacy, given), given),
		kit.Compare("pf.conf", describeForm(s.form), describeForm(pf.Form{Blocks: 1, Settled: true})),
		kit.Compare("anchor file", s.file, kit.AsRendered),
		kit.Compare("boot job", s.job, jobLoaded),
		kit.Compare("earlier run", kit.Choose(s.pending, "unfinished", "finished"), "finished"),
	}
}

// held is what a table of the anchor holds; without rules there is no table.
func held(s packetFilterState, table string) string {
	if text := s.held[table]; text != "" && len(s.rules) > 0 {
		return text
	}
	return "nothing"
}

// describeForm says in which forms pf.conf has the anchor.
func describeForm(f pf.Form) string {
	var out []string
	switch {
	case f.Blocks == 0:
		out = append(out, "no block")
	case f.Blocks == 1 && !f.Settled && f.Bare == 0 && !f.Unclosed && len(f.Legacy) == 0:
		out = append(out, "one block, edited or out of order")
	case f.Blocks == 1:
		out = append(out, "one block")
	default:
		out = append(out, fmt.Sprintf("%d blocks", f.Blocks))
	}
	if f.Bare > 0 {
		out = append(out, fmt.Sprintf("%d lines without marks", f.Bare))
	}
	if f.Unclosed {
		out = append(out, "a mark without its other half")
	}
	if len(f.Legacy) > 0 {
		out = append(out, "lines of "+strings.Join(f.Legacy, ", "))
	}
	return strings.Join(out, ", ")
}
