package vmfirewall

import (
	"cmp"
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

// comparison is a host's packet filter beside what is wanted of it, and what was seen in
// the terms of the wish.
type comparison struct {
	view      plan.View
	seen      packetFilter
	want      packetFilterWish
	live      anchorState // of the wanted anchor
	evaluated bool        // the live main ruleset evaluates it
	missing   []string    // of macOS's own anchor points that pf.conf has, those that are not live
	leftover  []string    // tables of ours where none should be
	legacy    []string    // anchors given up that are somewhere yet
	form      pf.Form
	file, job string // "as rendered", "loaded", or what is wrong
}

const jobLoaded = "loaded"

func brokenConf(err error) *plan.Trouble {
	return codePFConfBroken.Trouble(pfConfPath + " cannot be read: " + err.Error())
}

// inspect brings what was seen into the terms of the wish. It returns what
// macfleet must not touch.
func (c *comparison) inspect() *plan.Trouble {
	if _, there := c.seen.files[pfConfPath]; !there {
		return codePFConfMissing.Trouble("the host has no " + pfConfPath)
	}
	form, err := c.seen.conf.Inspect(c.want.anchor, c.want.givenUp)
	if err = cmp.Or(c.seen.broken, err); err != nil {
		return brokenConf(err)
	}
	c.form, c.file, c.job = form, c.anchorFile(), c.bootJob()
	c.compareStock()
	c.compareTables()
	c.compareGivenUp()
	return c.stranger()
}

// compareStock lists macOS's own anchor points of pf.conf that are not live.
// Without nat-anchor "com.apple/*" the network of virtual machines dies silently.
// Points of dummynet are in no listing of ours.
func (c *comparison) compareStock() {
	for _, p := range c.seen.conf.Points() {
		if p.IsApple() && p.Kind != "dummynet-anchor" && !slices.Contains(c.seen.points, p) && !slices.Contains(c.missing, p.String()) {
			c.missing = append(c.missing, p.String())
		}
	}
}

// compareTables finds tables that outlived their rules: they make the next load fail
// with "Resource busy".
func (c *comparison) compareTables() {
	defined := c.seen.conf.Tables()
	for _, name := range pf.Tables() {
		if slices.Contains(c.seen.tables, name) && !slices.Contains(defined, name) {
			c.leftover = append(c.leftover, name+" in the main ruleset")
		}
		if _, there := c.live.held[name]; there && len(c.live.rules) == 0 {
			c.leftover = append(c.leftover, name+" in the anchor")
		}
	}
}

// compareGivenUp finds what is left of legacy anchors, and of those that an earlier
// wish made.
func (c *comparison) compareGivenUp() {
	for _, name := range c.want.givenUp {
		var where []string
		if slices.Contains(c.form.Legacy, name) {
			where = append(where, "in pf.conf")
		}
		if c.seen.anchors[name].filled {
			where = append(where, "live")
		}
		if _, there := c.seen.files[pf.File(name)]; there && slices.Contains(c.want.former, name) {
			where = append(where, "its file")
		}
		if where != nil {
			c.legacy = append(c.legacy, name+" ("+strings.Join(where, ", ")+")")
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
	state := file.Is(bootJobAnchor(file.Text) == c.want.anchor, kit.FileMode)
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
	if c.view.Proven || c.view.Pending || c.form.Blocks > 0 || c.form.Bare > 0 || c.form.Unclosed {
		return nil
	}
	what := pf.File(c.want.anchor)
	switch file, there := c.seen.files[what]; {
	case there && pf.IsOurs(file.Text):
		return nil
	case there:
	case len(c.live.rules) > 0 && !slices.Equal(c.live.rules, pf.Rules()):
		what = "the rules that are live in the anchor " + c.want.anchor
	default:
		return nil
	}
	return codeForeignAnchor.Trouble(fmt.Sprintf("macfleet did not make %s, and /etc/pf.conf does not name the anchor", what))
}

// held is what a table of the anchor holds; without rules there is no table.
func (c *comparison) held(table string) string {
	if text := c.live.held[table]; text != "" && len(c.live.rules) > 0 {
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
