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

var (
	codePFConfBroken = plan.NewCode("pf-conf-broken", plan.Critical, "/etc/pf.conf cannot be parsed",
		"fix the file on the host (sudo pfctl -nf /etc/pf.conf shows the errors)")
	codePFConfMissing = plan.NewCode("pf-conf-missing", plan.Critical, "/etc/pf.conf is missing", "restore macOS's own /etc/pf.conf on the host")
	codeForeignAnchor = plan.NewCode("foreign-anchor", plan.Warning, "another tool created an anchor of this name",
		"choose another anchor name in the vm_firewall block, or remove the anchor on the host")
)

// comparison compares a host's packet filter with the configuration.
type comparison struct {
	view      plan.View
	seen      packetFilter
	want      desiredFilter
	live      anchorState // of the wanted anchor
	evaluated bool        // the live main ruleset evaluates it
	missing   []string    // macOS's own anchor points that are not live
	leftover  []string    // macfleet's tables where none should be
	legacy    []string    // replaced anchors that still exist
	reference bool        // macfleet's pf reference is held
	form      pf.Form
	whole     pf.Conf  // pf.conf with all of macOS's own lines
	lacks     []string // macOS's lines that are missing
	file, job string   // "as rendered", "loaded", or what is wrong
}

const jobLoaded = "loaded"

func brokenConf(err error) *plan.Trouble {
	return codePFConfBroken.Trouble(pfConfPath + " cannot be parsed: " + err.Error())
}

// inspect fills in the comparison. It returns the trouble if macfleet must not change the
// host.
func (c *comparison) inspect() *plan.Trouble {
	if _, there := c.seen.files[pfConfPath]; !there {
		return codePFConfMissing.Trouble(pfConfPath + " is missing")
	}
	form, err := c.seen.conf.Inspect(c.want.anchor, c.want.givenUp)
	if err = cmp.Or(c.seen.broken, err); err != nil {
		return brokenConf(err)
	}
	c.form, c.file, c.job = form, c.anchorFile(), c.bootJob()
	c.reference = pf.Holds(c.seen.held, c.seen.token)
	c.whole, c.lacks = c.seen.conf.WithStock(c.seen.first, append([]string{c.want.anchor}, c.want.givenUp...))
	// Without nat-anchor "com.apple/*", virtual machines silently lose their network.
	// The listings do not include dummynet points.
	for _, p := range c.whole.Points() {
		if p.IsApple() && p.Kind != "dummynet-anchor" && !slices.Contains(c.seen.points, p) && !slices.Contains(c.missing, p.String()) {
			c.missing = append(c.missing, p.String())
		}
	}
	// Tables that outlived their rules make the next load fail with "Resource busy".
	defined := c.seen.conf.Tables()
	for _, name := range pf.Tables() {
		if slices.Contains(c.seen.tables, name) && !slices.Contains(defined, name) {
			c.leftover = append(c.leftover, name+" in the main ruleset")
		}
		if _, there := c.live.held[name]; there && len(c.live.rules) == 0 {
			c.leftover = append(c.leftover, name+" in the anchor")
		}
	}
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
	return c.foreignAnchor()
}

func (c *comparison) anchorFile() string {
	file := c.seen.files[pf.File(c.want.anchor)]
	if file.Text != c.want.file && file.Mode == kit.FileMode && pf.IsRendered(file.Text) {
		return "of an earlier configuration"
	}
	return file.Is(file.Text == c.want.file, kit.FileMode)
}

func (c *comparison) bootJob() string {
	file := c.seen.files[bootJobPath]
	anchor, earlier := bootJobAnchor(file.Text)
	if earlier && anchor == c.want.anchor && file.Mode == kit.FileMode {
		return "of an earlier version"
	}
	state := file.Is(anchor == c.want.anchor, kit.FileMode)
	if state == kit.AsRendered {
		return kit.Choose(c.seen.job, jobLoaded, "not loaded")
	}
	return state
}

// foreignAnchor refuses an anchor of the wanted name that another tool created and that pf.conf
// does not mention. An anchor that pf.conf mentions is an earlier form of macfleet's and is
// taken over.
func (c *comparison) foreignAnchor() *plan.Trouble {
	if c.view.Verified || c.view.Pending || c.form.Blocks > 0 || c.form.Bare > 0 || c.form.Unclosed {
		return nil
	}
	what := pf.File(c.want.anchor)
	switch file, there := c.seen.files[what]; {
	case there && pf.IsManaged(file.Text):
		return nil
	case there:
	case len(c.live.rules) > 0 && !slices.Equal(c.live.rules, pf.Rules()):
		what = "the live rules of the anchor " + c.want.anchor
	default:
		return nil
	}
	return codeForeignAnchor.Trouble(fmt.Sprintf("another tool created %s, and /etc/pf.conf does not mention the anchor", what))
}

// held returns the content of a table of the anchor.
func (c *comparison) held(table string) string {
	if text := c.live.held[table]; text != "" && len(c.live.rules) > 0 {
		return text
	}
	return "nothing"
}

// describeForm formats how pf.conf mentions the anchor.
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
		out = append(out, "an unpaired mark")
	}
	if len(f.Legacy) > 0 {
		out = append(out, "lines of "+strings.Join(f.Legacy, ", "))
	}
	return strings.Join(out, ", ")
}

// Facts are written in terms that do not depend on the configuration: those of a host must not
// change, and look like drift, when the configuration changes.

// settings returns what a change updates, for display (first the live state, then files), and
// the facts other than those of single anchors. An unfinished earlier run is a fact only if nothing else
// differs: otherwise a change that was undone would look like an edit.
func (c *comparison) settings() (moved, facts []kit.Setting) {
	w := c.want
	evaluated, given, network := w.anchor+", evaluated", "none", "covered"
	if len(w.legacy) > 0 {
		given = "none of " + strings.Join(w.legacy, ", ")
	}
	if c.uncovered() != nil {
		network = c.seen.bridge.String() + ", not covered"
	}
	enabled := kit.Compare("pf", kit.Choose(c.seen.enabled, "enabled", "disabled"), "enabled")
	stock := kit.Compare("macOS's own anchors", kit.Choose(len(c.missing) == 0, "live", "missing: "+strings.Join(c.missing, ", ")), "live")
	leftover := kit.Compare("tables left over", kit.ListOr(c.leftover, "none"), "none")
	run := kit.Compare("earlier run", kit.Choose(c.view.Pending, "unfinished", "finished"), "finished")
	reference := kit.Compare("reference of pf", kit.Choose(c.reference, "held", "none"), "held")
	moved = []kit.Setting{
		enabled,
		reference,
		stock,
		kit.Compare("anchor", kit.Choose(c.evaluated, evaluated, w.anchor+", not evaluated"+c.otherWriter()), evaluated),
		kit.Compare("rules", kit.ListOr(c.live.rules, "none"), kit.ListOr(pf.Rules(), "none")),
		kit.Compare("vm_sources", c.held(pf.SourceTable), w.spec.Tables[pf.SourceTable]),
		kit.Compare("blocked_dst", c.held(pf.BlockedTable), w.spec.Tables[pf.BlockedTable]),
		leftover,
		kit.Compare("anchors given up", kit.ListOr(c.legacy, given), given),
		kit.Compare("pf.conf", describeForm(c.form), describeForm(settledForm)),
		stockLines(c.lacks),
		kit.Compare("anchor file", c.file, kit.AsRendered),
		kit.Compare("boot job", c.job, jobLoaded),
		run,
	}
	if kit.Differing(moved) > 1 {
		run.Seen = run.Wanted
	}
	facts = []kit.Setting{enabled}
	if _, earlier := bootJobAnchor(c.seen.files[bootJobPath].Text); !earlier {
		facts = append(facts, reference) // earlier versions took no reference, so a missing one is not drift
	}
	return moved, append(facts,
		stock,
		leftover,
		kit.Compare("taken over", kit.ListOr(w.legacy, "none"), kit.ListOr(w.legacy, "none")),
		run,
		kit.Compare("network of virtual machines", network, "covered"),
		kit.Compare("boot job", c.jobText(), w.anchor+", loaded"))
}

// stockLines compares macOS's own lines in /etc/pf.conf.
func stockLines(lacks []string) kit.Setting {
	return kit.Compare("macOS's own lines of pf.conf", kit.Choose(len(lacks) == 0, "there", "missing: "+strings.Join(lacks, ", ")), "there")
}

var settledForm = pf.Form{Blocks: 1, Settled: true}

// text is the configuration in normal form.
func (w desiredFilter) text() string {
	_, all := (&comparison{want: w}).settings()
	return kit.Wanted(append(all,
		kit.Compare("anchor "+w.anchor, "", anchorText(true, pf.Rules(), w.spec.Tables)),
		kit.Compare("pf.conf "+w.anchor, "", describeForm(settledForm)),
		kit.Compare("file "+w.anchor, "", oneLine(w.file))))
}

// anchorFacts describes the anchors of this and earlier configurations, in the same form as
// text. Empty anchor points stay in the kernel until the next boot and are ignored.
func (c *comparison) anchorFacts() []kit.Setting {
	var all []kit.Setting
	for _, name := range slices.Sorted(slices.Values(append([]string{c.want.anchor}, c.want.givenUp...))) {
		live, evaluated := c.seen.anchors[name], c.seen.evaluates(name)
		if live.filled || evaluated && name == c.want.anchor {
			all = append(all, kit.Setting{Name: "anchor " + name, Seen: anchorText(evaluated, live.rules, live.held)})
		}
		if form, _ := c.seen.conf.Inspect(name, nil); !form.Absent() { // inspect has checked all names
			all = append(all, kit.Setting{Name: "pf.conf " + name, Seen: describeForm(form)})
		}
		if file, there := c.seen.files[pf.File(name)]; there && (name == c.want.anchor || slices.Contains(c.want.former, name)) {
			text := oneLine(file.Text)
			if file.Mode != kit.FileMode {
				text = "owner and mode " + file.Mode + ": " + text
			}
			all = append(all, kit.Setting{Name: "file " + name, Seen: text})
		}
	}
	if len(c.lacks) > 0 {
		all = append(all, stockLines(c.lacks))
	}
	return all
}

// oneLine joins the lines of a file, so that the text needs no quoting.
func oneLine(text string) string {
	const end = " | "
	if strings.Contains(text, end) {
		return text
	}
	return strings.ReplaceAll(text, "\n", end)
}

func anchorText(evaluated bool, rules []string, tables map[string]string) string {
	return kit.Choose(evaluated, "evaluated", "not evaluated") + "; " + kit.ListOr(rules, "no rules") + "; " +
		pf.SourceTable + " " + tables[pf.SourceTable] + "; " + pf.BlockedTable + " " + tables[pf.BlockedTable]
}

// jobText describes the boot job.
func (c *comparison) jobText() string {
	file := c.seen.files[bootJobPath]
	name, _ := bootJobAnchor(file.Text)
	if (name == c.want.anchor || slices.Contains(c.want.former, name)) && file.Mode == kit.FileMode && c.seen.job {
		return name + ", loaded"
	}
	return c.job + " " + file.Text
}
