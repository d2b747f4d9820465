package view

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// mostFields is how many fields of a step a row names.
const mostFields = 3

// findings collects what a plan reports.
type findings struct {
	plan *plan.Plan
	cfg  *fleet.Config // whose lines are named; nil: none
	// unprepared says that a row of the cluster says what it lacks.
	unprepared bool
	all        []finding
}

// findingsOf returns all that a plan reports. cfg may be nil: no lines are named then.
func findingsOf(p *plan.Plan, cfg *fleet.Config) []finding {
	f := &findings{plan: p, cfg: cfg}
	f.cluster()
	f.claims()
	actions := byHost(p)
	for i := range p.Hosts {
		h := &p.Hosts[i]
		f.host(h, actions[h.Server.ID])
	}
	f.groups()
	for _, w := range p.Warnings {
		f.trouble(catWarning, nil, clusterName, "", &w)
	}
	for _, s := range p.Services {
		f.trouble(catWarning, nil, s.About(), "", &s.Trouble)
	}
	for _, d := range p.Doubts {
		f.trouble(catBlocked, nil, ownerTitle(p), "", &d)
	}
	return f.all
}

func (f *findings) add(x finding) { f.all = append(f.all, x) }

// trouble adds a trouble of a host or another subject.
func (f *findings) trouble(c category, h *plan.Host, subject, what string, x *plan.Trouble) {
	f.add(finding{category: c, host: h, subject: subject, what: what, text: brief(x.Text), codes: []string{x.Code.String()}, fix: x.Remedy, counted: true})
}

// dialled is how Go words that an address does not answer.
var dialled = regexp.MustCompile(`^dial tcp ?(\S*): (?:connect: )?`)

// brief is a text without the words around it that say nothing to an operator.
func brief(text string) string {
	m := dialled.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	return strings.TrimPrefix(text, m[0]) + given(m[1] != "", " (%s)", m[1])
}

// cluster adds what the cluster itself lacks, and what of it could not be read.
func (f *findings) cluster() {
	missing := 0
	var prepare *plan.Trouble
	for _, a := range f.plan.Actions {
		switch {
		case !a.OfCluster():
		case notPrepared(a):
			missing++
			prepare = a.Refusal
		case a.Refusal != nil:
			f.trouble(catCluster, nil, "", clusterSubject(a), a.Refusal)
		default:
			f.add(finding{category: catCluster, text: listed(": ", clusterSubject(a), a.Reason.Text), codes: []string{a.Reason.Code.String()}})
		}
	}
	if f.unprepared = prepare != nil; f.unprepared {
		f.add(finding{category: catCluster, text: count(missing, "object") + " missing or changed, which only an administrator may write",
			codes: []string{prepare.Code.String()}, fix: prepare.Remedy})
	}
	for _, u := range f.plan.Unread {
		f.add(finding{category: catNotCompared, subject: clusterName, what: u.Probe, text: u.Why})
	}
}

// host adds what there is to say of a host.
func (f *findings) host(h *plan.Host, actions []plan.Action) {
	switch {
	case h.Unknown.NoAnswer():
		f.trouble(catDown, h, "", "", h.Unknown)
	case h.Unknown != nil:
		f.trouble(catNotCompared, h, "", "", h.Unknown)
	case h.Refused != nil && f.saidAbove(h.Refused):
		f.awaitsCluster(h)
	case h.Refused != nil:
		f.trouble(catBlocked, h, "", "", h.Refused)
	}
	f.held(h, actions)
	if f.leaves(h, actions) {
		return
	}
	var setUp []plan.Action
	first := f.adopts(h, actions)
	for _, a := range actions {
		switch {
		case !a.Runs(), first(a):
		case firstSetup(h, a):
			setUp = append(setUp, a)
		case a.Kind != plan.ClaimServer: // the group's row says it
			f.action(h, a)
		}
	}
	f.firstSetup(h, setUp)
	f.blocked(h, actions)
	f.deferred(h, actions)
	for _, same := range grouped(h.Unread, func(u plan.StepUnread) string { return u.Why }) {
		steps := unique(mapped(same, func(u plan.StepUnread) string { return string(u.Step) }))
		probes := unique(mapped(same, func(u plan.StepUnread) string { return u.Probe }))
		f.add(finding{category: catNotCompared, host: h, what: strings.Join(steps, ", "), text: strings.Join(probes, ", ") + ": " + same[0].Why, codes: []string{plan.CodeUnread.String()}})
	}
	for _, w := range h.Warnings {
		if !slices.ContainsFunc(actions, func(a plan.Action) bool { return a.Refusal != nil && *a.Refusal == w.Trouble }) {
			c := catWarning
			if w.Drift {
				c = catAttention
			}
			f.trouble(c, h, "", string(w.Step), &w.Trouble)
		}
	}
	if slices.ContainsFunc(engine.Unpinned(&plan.Plan{Hosts: []plan.Host{*h}}), func(plan.Host) bool { return true }) {
		f.add(finding{category: catHostKey, host: h, text: "not pinned yet, apply pins " + h.Seen.Fingerprint})
	}
}

// leaves adds the release of a host that leaves, in one row, and reports whether it leaves.
func (f *findings) leaves(h *plan.Host, actions []plan.Action) bool {
	if !h.Leaves {
		return false
	}
	runs := only(actions, plan.Action.Runs)
	f.blocked(h, actions)
	switch late := only(actions, func(a plan.Action) bool { return a.Refusal == nil && a.Deferral != nil }); {
	case len(late) > 0:
		why := late[0].Deferral
		f.add(finding{category: catDeferred, host: h, what: "release", text: late[0].Reason.Text + "; " + why.Text, fix: why.Remedy, counted: true,
			codes: []string{late[0].Reason.Code.String(), why.Code.String()}})
	case len(runs) > 0:
		f.add(finding{category: catRemove, host: h, what: "release", text: releaseText(runs), codes: []string{runs[0].Reason.Code.String()}})
	}
	return true
}

// releaseText says what a release does to a host, and why it leaves.
func releaseText(actions []plan.Action) string {
	var does []string
	for _, a := range actions {
		switch a.Kind {
		case plan.DrainNode:
			does = append(does, "drain")
		case plan.ReinstallServer:
			does = append(does, "erase with "+a.Reset.System)
		}
	}
	return strings.Join(append(does, "back to the pool"), ", ") + " (" + actions[0].Reason.Text + ")"
}

// held adds who holds a host, and what that keeps from it.
func (f *findings) held(h *plan.Host, actions []plan.Action) {
	hold := h.ActiveHold()
	if hold == nil {
		return
	}
	x := finding{category: catHeld, host: h, text: hold.String(), codes: []string{plan.CodeHeld.String()}}
	if kept := slices.DeleteFunc(slices.Clone(actions), func(a plan.Action) bool { return !byHold(a) }); len(kept) > 0 && h.Refused == nil && h.Unknown == nil {
		x.text += "; waits: " + labelsOf(kept)
		x.fix = hold.Trouble(h.Name).Remedy
	}
	f.add(x)
}

// firstSetup reports whether an action only sets up a host that was never set up: its fields say
// nothing that the configuration does not.
func firstSetup(h *plan.Host, a plan.Action) bool {
	return a.Kind != plan.ClaimServer && (!h.Member || a.AfterRoot || a.Reason.Code == plan.CodeFirstSetup)
}

// firstSetup adds what sets up a host: its steps, as all hosts of the group have them.
func (f *findings) firstSetup(h *plan.Host, actions []plan.Action) {
	steps := slices.DeleteFunc(slices.Clone(actions), func(a plan.Action) bool { return !a.Kind.OfStep() })
	if len(steps) == 0 {
		return
	}
	later := slices.DeleteFunc(slices.Clone(steps), func(a plan.Action) bool { return !a.AfterRoot })
	switch {
	case !h.Member:
		f.add(finding{category: catNew, host: h, what: "set up", text: labelsOf(steps), codes: []string{plan.CodeFirstSetup.String()}})
		return
	case len(later) > 0:
		f.add(finding{category: catNotCompared, host: h, text: labelsOf(later) + ": read, and changed where needed, once passwordless sudo works",
			codes: []string{later[0].Reason.Code.String()}})
	}
	if now := slices.DeleteFunc(steps, func(a plan.Action) bool { return a.AfterRoot }); len(now) > 0 {
		f.add(finding{category: catConfig, host: h, what: "set up", text: labelsOf(now), codes: []string{plan.CodeFirstSetup.String()}})
	}
}

func labelsOf(actions []plan.Action) string {
	return strings.Join(slices.Compact(mapped(actions, label)), ", ")
}

// blocked adds the blocked actions of a host, by reason.
func (f *findings) blocked(h *plan.Host, actions []plan.Action) {
	refused := slices.DeleteFunc(slices.Clone(actions), func(a plan.Action) bool { return a.Refusal == nil })
	for _, same := range grouped(refused, func(a plan.Action) plan.Trouble { return *a.Refusal }) {
		switch why := same[0].Refusal; {
		case byHold(same[0]): // the row of the hold says it
		case h.Unknown != nil && *why == *h.Unknown, h.Refused != nil && *why == *h.Refused: // the host's own row says it
		case f.saidAbove(why): // the cluster's row says it
			f.awaitsCluster(h)
		default:
			f.trouble(catBlocked, h, "", labelsOf(same), why)
		}
	}
}

// deferred adds what a limit leaves for a later run: the differences, and the limit.
func (f *findings) deferred(h *plan.Host, actions []plan.Action) {
	late := slices.DeleteFunc(slices.Clone(actions), func(a plan.Action) bool { return a.Refusal != nil || a.Deferral == nil })
	for _, same := range grouped(late, func(a plan.Action) plan.Trouble { return *a.Deferral }) {
		why := same[0].Deferral
		x := finding{category: catDeferred, host: h, fix: why.Remedy, counted: true}
		if firstSetup(h, same[0]) {
			x.text, x.codes = "set up: "+labelsOf(same), []string{plan.CodeFirstSetup.String()}
		} else {
			for _, a := range same {
				x.text = listed(", then ", x.text, listed(": ", label(a), differenceText(a)))
				x.codes = append(x.codes, a.Reason.Code.String())
			}
		}
		x.text += "; " + why.Text
		x.codes = append(unique(x.codes), why.Code.String())
		f.add(x)
	}
}

// awaitsCluster adds that a host waits for cluster objects, which have a separate row.
func (f *findings) awaitsCluster(h *plan.Host) {
	f.add(finding{category: catBlocked, host: h, text: "waits for the cluster objects above", codes: []string{plan.CodeClusterNotPrepared.String()}})
}

// saidAbove reports whether a row of the cluster already shows the trouble of a host.
func (f *findings) saidAbove(x *plan.Trouble) bool {
	return f.unprepared && x.Code == plan.CodeClusterNotPrepared
}

// action adds what one action does to a host.
func (f *findings) action(h *plan.Host, a plan.Action) {
	x := finding{category: catConfig, host: h, what: label(a), text: differenceText(a), codes: []string{a.Reason.Code.String()}}
	if a.Drift {
		x.category = catDrift
	}
	if f.cfg != nil && a.Pending {
		x.at = placesOf(f.cfg, a)
	}
	f.add(x)
}

// differenceText says in short what an action changes.
func differenceText(a plan.Action) string {
	if a.Kind.OfStep() && len(a.Fields) > 0 {
		return fieldsText(a)
	}
	return a.Reason.Text
}

// unique keeps each text once, in its first place.
func unique(all []string) []string {
	return mapped(grouped(all, func(s string) string { return s }), func(same []string) string { return same[0] })
}

// aDigest is the short digest behind a version.
var aDigest = regexp.MustCompile(` \([0-9a-f]{12}\)$`)

// fieldsText says what changes in a step, in short.
func fieldsText(a plan.Action) string {
	fields := observedFirst(a.Fields)
	out := mapped(fields[:min(len(fields), mostFields)], fieldText)
	return strings.Join(out, ", ") + given(len(a.Fields) > mostFields, " and %d more", len(a.Fields)-mostFields)
}

// observedFirst puts what a step only assumes behind what it observed.
func observedFirst(fields []plan.Field) []plan.Field {
	assumed := func(f plan.Field) bool { return strings.HasPrefix(f.Before, "possibly ") }
	return slices.Concat(only(fields, func(f plan.Field) bool { return !assumed(f) }), only(fields, assumed))
}

// fieldText says what changes in a field: of a version without its digest, and of a list only the items that differ.
func fieldText(x plan.Field) string {
	if x.Name == "version" || x.Name == "bundle" {
		before, after := value(x.Before), value(x.After)
		if b, c := aDigest.ReplaceAllString(before, ""), aDigest.ReplaceAllString(after, ""); b != c {
			before, after = b, c
		}
		return before + " → " + after
	}
	before, after := strings.Split(x.Before, ","), strings.Split(x.After, ",")
	if strings.Contains(x.Before+x.After, ", ") { // words, not a list
		before, after = []string{x.Before}, []string{x.After}
	}
	lacks := func(of []string) func(string) bool {
		return func(item string) bool { return !slices.Contains(of, item) }
	}
	gone, fresh := only(before, lacks(after)), only(after, lacks(before))
	switch {
	case max(len(before), len(after)) == 1 || len(gone) == len(before) || len(gone)+len(fresh) == 0:
		return x.Name + " " + value(x.Before) + " → " + value(x.After)
	case len(gone) == 0:
		return x.Name + " adds " + strings.Join(fresh, ",")
	case len(fresh) == 0:
		return x.Name + " drops " + strings.Join(gone, ",")
	}
	return x.Name + " " + strings.Join(gone, ",") + " → " + strings.Join(fresh, ",")
}

// only keeps what a test is true of.
func only[T any](all []T, keep func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(x T) bool { return !keep(x) })
}

// placesOf returns the lines of the configuration that want what an action changes.
func placesOf(cfg *fleet.Config, a plan.Action) []fleet.Source {
	sources := cfg.SourcesOf(a.Host, a.Fleet, a.Group)
	var out []fleet.Source
	for _, x := range a.Fields {
		at := sources.Of(string(a.Step) + "." + strings.ReplaceAll(x.Name, " ", "_"))
		if at.File == "" {
			at = sources.Of(string(a.Step))
		}
		if at.File != "" {
			out = append(out, at)
		}
	}
	return out
}

// claims adds which servers each group takes from the pool.
func (f *findings) claims() {
	claims := slices.DeleteFunc(slices.Clone(f.plan.Actions), func(a plan.Action) bool { return a.Kind != plan.ClaimServer || !a.Runs() })
	for _, same := range grouped(claims, func(a plan.Action) string { return a.Fleet + "." + a.Group }) {
		f.add(finding{category: catNew, subject: same[0].Fleet + "." + same[0].Group, text: f.claimText(same), codes: []string{same[0].Reason.Code.String()}})
	}
}

// groups adds what has no host in the plan: servers that are missing, lost, orphaned, skipped or
// unmanaged, and groups of which no host was contacted.
func (f *findings) groups() {
	p := f.plan
	for _, s := range p.Shortages {
		x := s.Trouble
		x.Text = count(s.Missing, "server") + " missing: " + x.Text
		f.trouble(catBlocked, nil, s.Fleet+"."+s.Group, "", &x)
	}
	for _, l := range p.Lost {
		f.trouble(catLost, &plan.Host{Name: l.Name, Fleet: l.Fleet}, "", "", &l.Trouble)
	}
	for _, o := range p.Orphans {
		x := o.Trouble
		x.Text += given(o.Runs() != "", " (%s)", o.Runs())
		f.trouble(catOrphaned, &plan.Host{Name: o.Name, Fleet: o.Fleet, Server: o.Server}, "", "", &x)
	}
	for _, same := range grouped(p.Rejected, func(r plan.Rejected) string { return r.Server.ID }) {
		f.trouble(catSkipped, &plan.Host{Name: same[0].Server.Name}, "", "", &same[0].Trouble)
	}
	for _, u := range p.NotContacted {
		f.add(finding{category: catNotCompared, subject: u.Fleet + "." + u.Group, text: u.String()})
	}
	for _, s := range p.Strays {
		f.add(finding{category: catUnmanaged, host: &plan.Host{Name: s.Name}, text: "in no pool and no fleet: never touched"})
	}
}

// claimText says which pool servers a group takes.
func (f *findings) claimText(same []plan.Action) string {
	servers := mapped(same, func(a plan.Action) string {
		h, _ := f.plan.HostByServer(a.ServerID)
		return h.Server.Name
	})
	h, _ := f.plan.HostByServer(same[0].ServerID)
	return fmt.Sprintf("claim %s of the pool (%s): %s", count(len(same), "server"), h.Server.Type, joinedUpTo(servers, mostServers))
}

// How many names a row lists.
const (
	mostNames   = 8 // hosts, over all fleets
	mostServers = 3 // servers of the pool
)
