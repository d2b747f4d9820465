package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// Drift shows the verdict, then what could not be compared, then what changed outside macfleet, with the fix of each. What the
// configuration changed is counted apart: that is no drift. exit is the command's exit code.
func (t *Text) Drift(p *plan.Plan, r drift.Report, exit int) {
	d := driftText{t, p, r, p.Names()}
	d.verdict(fmt.Sprintf("exit %d", exit))
	if l := limit(r.Coverage); l != "" {
		t.line(0, signUnknown, l)
	}
	d.print(signUnknown, d.unseen())
	d.print(signDrift, d.items())
	t.since(r)
	d.ignored()
	t.held(p, false)
	t.keyRotation(p)
	if n := p.Summarise().Pending; n > 0 {
		t.sayf("Config changes, not drift: %s. Details: macfleet plan", count(n, "difference"))
	}
	d.print(signDrift, d.warnings())
	t.remarks(r)
	d.counts()
}

type driftText struct {
	t     *Text
	p     *plan.Plan
	r     drift.Report
	names plan.Names
}

// said is what drift says of one host. Those that are alike but for names and addresses stand in one line.
type said struct {
	host   string // full name; empty: of all
	text   string
	detail string // below the text, such as what a tool printed
	fix    string
}

// of counts hosts by their state.
func (d driftText) of() (n drift.FleetHosts, all int) {
	for _, f := range d.r.Hosts {
		for _, s := range drift.HostStates() {
			*n.Of(s) += *f.Of(s)
			all += *f.Of(s)
		}
	}
	return n, all
}

func (d driftText) verdict(end string) {
	n, all := d.of()
	objects := 0
	for _, i := range d.r.Items {
		if i.Fleet == "" && strings.HasPrefix(i.Host, clusterName+".") {
			objects++
		}
	}
	unseen := given(n.Unknown > 0, "%d of %s not compared", n.Unknown, count(all, "host"))
	partly := cmp.Or(d.partly(), "not everything was compared")
	switch {
	case d.r.Blind != "":
		d.t.verdict(signUnknown, fmt.Sprintf("Nothing of %s was compared: %s", ownerTitle(d.p), d.r.Blind), end)
	case len(d.r.Items) == 0 && d.r.Complete:
		d.t.verdict(markDone, noDrift(d.p, d.p.Summarise()), end)
	case len(d.r.Items) == 0 && all == 0 && len(d.r.Unseen) == 0:
		d.t.verdict(signUnknown, fmt.Sprintf("Nothing to compare: %s has no hosts yet", ownerTitle(d.p)), end)
	case len(d.r.Items) == 0:
		d.t.verdict(signUnknown, "No drift found, but "+cmp.Or(unseen, partly), end)
	default:
		on := listed(" and ", given(n.Drift > 0, "%d of %s", n.Drift, count(all, "host")), given(objects > 0, "%s of the cluster", count(objects, "object")))
		d.t.verdict(signDrift, listed("; ", "Drift on "+on, unseen, given(unseen == "" && !d.r.Complete, "%s", partly)), end)
	}
}

// partly counts the steps that could not be compared on hosts that answered. It is empty where more than that is missing,
// such as objects of the cluster.
func (d driftText) partly() string {
	steps, hosts := make(map[[2]string]bool), make(map[string]bool)
	for _, u := range d.r.Unseen {
		if u.Host == "" || u.Host == clusterName || u.Step == "" {
			return ""
		}
		steps[[2]string{u.Host, u.Step}], hosts[u.Host] = true, true
	}
	return given(len(steps) > 0, "%s on %s not compared", count(len(steps), "step"), count(len(hosts), "host"))
}

// counts is the closing line: each host once.
func (d driftText) counts() {
	if d.r.Blind != "" || len(d.r.Items) == 0 && d.r.Complete {
		return
	}
	n, all := d.of()
	if all == 0 && len(d.r.Items) == 0 {
		return
	}
	states := listed(", ", some(n.Drift, "drifted"), some(n.Unknown, "not compared"), some(n.Ignored, "ignored"), some(n.Pending, "to update"), some(n.Clean, "in sync"))
	by := by(d.r.Items, func(i drift.Item) plan.Severity { return i.Severity })
	severities := listed(", ", mapped(plan.Severities(), func(s plan.Severity) string { return some(len(by[s]), string(s)) })...)
	d.t.sayf("%s%s.%s", count(all, "host"), given(states != "", ": %s", states),
		given(severities != "", " %s: %s.", count(len(d.r.Items), "drift item"), severities))
}

// unseen are the reasons why hosts or steps could not be compared.
func (d driftText) unseen() []said {
	if d.r.Blind != "" {
		return nil
	}
	fixes, printed := make(map[[2]string]string), make(map[[3]string]string)
	for i := range d.p.Hosts {
		h := &d.p.Hosts[i]
		for _, x := range []*plan.Trouble{h.Unknown, h.Refused, h.NotJudged()} {
			if x != nil {
				fixes[[2]string{h.Name, x.Code.String()}] = x.Remedy
			}
		}
		for _, u := range h.Unread {
			if u.Bytes != "" {
				printed[[3]string{h.Name, string(u.Step), u.Probe + ": " + u.Why}] = fmt.Sprintf("printed: %q", wire.Shortened(u.Bytes))
			}
		}
	}
	for _, l := range d.p.Lost {
		fixes[[2]string{l.Name, l.Code.String()}] = l.Remedy
	}
	for _, x := range d.p.Doubts {
		fixes[[2]string{clusterName, x.Code.String()}] = x.Remedy
	}
	type key struct{ host, code string }
	return mapped(grouped(d.r.Unseen, func(u drift.Unseen) key { return key{u.Host, u.Code.String()} }), func(same []drift.Unseen) said {
		u := same[0]
		whys := mapped(same, func(u drift.Unseen) string { return dialed.ReplaceAllString(u.Why, "") })
		steps := strings.Join(nonempty(unique(mapped(same, func(u drift.Unseen) string { return u.Step }))...), ", ")
		details := mapped(same, func(u drift.Unseen) string { return printed[[3]string{u.Host, u.Step, u.Why}] })
		return said{host: u.Host, text: about(given(steps != "", "%s not compared", steps), u.Code) + strings.Join(unique(whys), "; "),
			detail: strings.Join(nonempty(unique(details)...), "; "), fix: fixes[[2]string{u.Host, u.Code.String()}]}
	})
}

// items are what drifted, the worst first.
func (d driftText) items() []said {
	type key struct{ host, step string }
	refusals, labelOf := make(map[key]*plan.Trouble), make(map[key]string)
	for _, a := range d.p.Actions {
		k := key{}
		k.host, k.step = drift.Subject(a)
		labelOf[k] = label(a)
		if a.Refusal != nil {
			refusals[k] = a.Refusal
		}
	}
	for i := range d.p.Hosts {
		for j, w := range d.p.Hosts[i].Warnings {
			if k := (key{d.p.Hosts[i].Name, w.About()}); w.Drift && refusals[k] == nil {
				refusals[k] = &d.p.Hosts[i].Warnings[j].Trouble
			}
		}
	}
	for i := range d.p.Orphans {
		refusals[key{d.p.Orphans[i].Name, drift.Orphan}] = &d.p.Orphans[i].Trouble
	}
	all := slices.Clone(d.r.Items)
	rank := func(i drift.Item) int { return slices.Index(plan.Severities(), i.Severity) }
	slices.SortStableFunc(all, func(a, b drift.Item) int { return rank(a) - rank(b) })
	return mapped(all, func(i drift.Item) said {
		k := key{i.Host, i.Step}
		what := labelOf[k]
		if what == "" {
			what = cmp.Or(labels[plan.Kind(i.Step)], i.Step)
		}
		moved := joined(i.Fields, func(f drift.Field) string {
			return fmt.Sprintf("%s: %s (wanted: %s)", f.Name, cmp.Or(f.Before, "not set"), cmp.Or(f.After, "not set"))
		})
		if moved == "" || labelOf[k] == "" || labels[plan.Kind(i.Step)] != "" {
			moved = i.Text
		}
		n := said{host: i.Host, text: given(i.Severity == plan.Critical, "critical: ") + about(what, i.Code) + moved}
		if x := refusals[k]; i.Refused != (plan.Code{}) && x != nil {
			n.fix = x.Remedy
			if x.Code != i.Code {
				n.detail = fmt.Sprintf("blocked (%s): %s", x.Code, x.Text)
			}
		} else if i.Refused == (plan.Code{}) {
			n.fix = applyFix
		}
		return n
	})
}

// applyFix stands for an apply of the hosts that a said is of.
const applyFix = "macfleet apply"

// warnings are worth knowing, and no drift.
func (d driftText) warnings() []said {
	out := mapped(d.p.Warnings, func(w plan.Trouble) said {
		return said{text: about("", w.Code) + w.Text, fix: w.Remedy}
	})
	for _, s := range d.p.Services {
		out = append(out, said{text: about(s.About(), s.Code) + s.Text, fix: s.Remedy})
	}
	for _, h := range d.p.Hosts {
		for _, w := range h.Warnings {
			if !w.Drift && !slices.ContainsFunc(d.r.Unseen, func(u drift.Unseen) bool { return u.Host == h.Name && u.Code == w.Code }) {
				out = append(out, said{host: h.Name, text: about(string(w.Step), w.Code) + w.Text, fix: w.Remedy})
			}
		}
	}
	return out
}

// about begins a text: what it is about, with its code.
func about(what string, code plan.Code) string {
	if what == "" {
		return code.String() + ": "
	}
	return fmt.Sprintf("%s (%s): ", what, code)
}

// print prints notes, those that are alike in one. A fix is below the last of those in a row that it is for.
func (d driftText) print(sign string, all []said) {
	general := func(n said, text string) string {
		if n.host == "" {
			return text
		}
		return strings.ReplaceAll(text, n.host, "HOST")
	}
	fix := func(same []said) string {
		switch n := same[0]; {
		case n.fix == applyFix:
			return d.apply(mapped(same, func(n said) string { return n.host }))
		case len(same) > 1 && n.host != "":
			return fixForAll(strings.ReplaceAll(n.fix, n.host, anyName), d.names, mapped(same, func(n said) string { return n.host }), "")
		default:
			return n.fix
		}
	}
	groups := grouped(all, func(n said) [3]string {
		return [3]string{general(n, n.text), general(n, n.detail), general(n, n.fix)}
	})
	for i, same := range groups {
		n := same[0]
		hosts := mapped(same, func(n said) string { return n.host })
		switch {
		case len(same) > 1:
			n = said{text: general(n, n.text), detail: general(n, n.detail)}
			d.t.line(0, sign, count(len(same), "host")+": "+n.text)
			d.t.line(4, "", d.shortened(hosts))
		case n.host == "":
			d.t.line(0, sign, n.text)
		default:
			d.t.line(0, sign, d.names.Short(n.host)+": "+n.text)
		}
		if n.detail != "" {
			d.t.line(4, "", n.detail)
		}
		if f := fix(same); f != "" && (i+1 == len(groups) || fix(groups[i+1]) != f) {
			d.t.line(4, "", "fix: "+f)
		}
	}
}

// mostNamed is how many hosts are named in a line.
const mostNamed = 12

func (d driftText) shortened(hosts []string) string {
	if len(hosts) <= mostNamed {
		return joined(hosts, d.names.Short)
	}
	return joined(hosts[:mostNamed], d.names.Short) + fmt.Sprintf(", and %d more", len(hosts)-mostNamed)
}

// apply is the command that repairs hosts. Many are not named: apply finds them.
func (d driftText) apply(hosts []string) string {
	const most = 3
	if len(hosts) > most || slices.ContainsFunc(hosts, func(h string) bool { return h == clusterName || strings.HasPrefix(h, clusterName+".") }) {
		return applyFix
	}
	if len(hosts) == 1 {
		return applyFix + " --on name=" + hosts[0]
	}
	return applyFix + strings.Join(mapped(hosts, func(h string) string { return " --on name=" + shortestName(d.names, h) }), "")
}

func (d driftText) ignored() {
	for _, i := range d.r.Ignored {
		d.t.sayf("Ignored until %s: %s: %s (%s): ignore %q of %s: %s", i.Until, d.names.Short(i.Host), i.Step, i.Code, i.Ignore, i.Owner, i.Reason)
		for _, f := range i.Fields {
			d.t.line(4, "", movedRow(f, f.Before, f.After).text)
		}
	}
}
