package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/plan"
)

// progress follows a run by its events: how far each host is, and what it is doing.
type progress struct {
	plan           *plan.Plan // nil: nothing is being applied, hosts are only asked
	names          plan.Names
	hosts          []*hostWork // in the plan's order; the cluster, which has no name, first
	at             map[string]*hostWork
	soaks          map[string]time.Time // by fleet: until when its canary is watched
	asked, answers int                  // hosts being asked, and those that answered
	began          time.Time
}

// hostWork is how far a run is with one host.
type hostWork struct {
	host        string
	done, total int      // actions
	trail       []string // what is done, in short words
	now         string   // what is going on
	waits       string   // what it waits for since a time; it counts while it is what is going on
	since       time.Time
	next        string // the first action that was not started
	began       time.Time
	ended       time.Time // zero: it has not ended
	trouble     string    // why it failed, or was deferred
	failed      bool
	canary      bool
}

// newProgress returns the counters of a run that begins. p is what is applied; nil: nothing.
func newProgress(p *plan.Plan) *progress {
	t := &progress{plan: p, at: make(map[string]*hostWork), soaks: make(map[string]time.Time)}
	if p == nil {
		return t
	}
	t.names = p.Names()
	canaries := make(map[string]bool)
	for _, r := range p.Rollouts {
		for _, name := range canariesOf(r) {
			canaries[name] = true
		}
	}
	for _, actions := range p.Runnable() {
		host := actions[0].Host
		if actions[0].OfCluster() {
			host = ""
		}
		w := t.work(host)
		w.total += len(actions)
		w.canary = canaries[host]
	}
	return t
}

// canariesOf are the hosts of a rollout that go first, one at a time.
func canariesOf(r plan.Rollout) []string {
	if r.Canary == 0 || len(r.Waves) == 0 {
		return nil
	}
	return r.Waves[0]
}

// work returns how far a host is.
func (t *progress) work(host string) *hostWork {
	w := t.at[host]
	if w == nil {
		w = &hostWork{host: host}
		t.at[host], t.hosts = w, append(t.hosts, w)
	}
	return w
}

// event takes in an event, and returns the host whose work this event ended, if any.
func (t *progress) event(e engine.Event) *hostWork {
	if t.began.IsZero() {
		t.began = e.Time
	}
	switch e.Type {
	case engine.Observing:
		t.asked += e.Count
	case engine.Observed:
		t.answers++
	case engine.Soaking:
		t.soaks[e.Fleet] = e.Until
	default:
		return t.acted(e)
	}
	return nil
}

// acted takes in an event of the work on a host or the cluster.
func (t *progress) acted(e engine.Event) *hostWork {
	if t.plan == nil || e.Host == "" && e.Action == nil {
		return nil
	}
	w := t.work(subjectHost(e))
	begin := func(what string) {
		if w.began.IsZero() {
			w.began = e.Time
		}
		w.now = what
	}
	switch e.Type {
	case engine.HostStarted:
		begin("connecting")
	case engine.Started:
		begin(label(*e.Action))
	case engine.Sending:
		w.now = e.Artifact + given(e.Bytes < e.Size, "  sending %s of %s", bytes(e.Bytes), bytes(e.Size))
	case engine.Cordoning:
		begin("cordoned")
		w.past("cordoned")
	case engine.Evicting:
		w.now = fmt.Sprintf("draining: Pod %s %s%s", e.Pod, e.What, given(e.Text != "", ": %s", e.Text))
	case engine.Fencing:
		begin("CI agent fenced")
		w.past("CI agent fenced")
	case engine.Unfenced:
		w.past("CI agent may get jobs again")
	case engine.Installing, engine.Idling:
		begin(e.Text)
		w.waits, w.since = e.Text, e.Time
	case engine.Waiting:
		begin("waiting until its Node is Ready")
	case engine.NodeReady:
		w.past("Ready")
	case engine.Uncordoned:
		w.past("uncordoned")
	case engine.Done:
		w.done++
		w.past(label(*e.Action))
		if w.host == "" && w.done == w.total {
			return w.end(e.Time)
		}
	case engine.Skipped:
		w.next = cmp.Or(w.next, label(*e.Action))
	case engine.Deferred:
		w.trouble = "deferred: " + e.Trouble.Code.String()
	case engine.Failed:
		if w.failed {
			return nil
		}
		w.failed, w.trouble = true, label(*e.Action)+": "+shortCause(e.Err)
		return w.end(e.Time)
	case engine.HostEnded:
		return w.end(e.Time)
	}
	return nil
}

// subjectHost is the host of an event; work on the cluster for a host counts with the cluster.
func subjectHost(e engine.Event) string {
	if e.Action != nil && e.Action.OfCluster() {
		return ""
	}
	return e.Host
}

// past enters what is done.
func (w *hostWork) past(what string) {
	if !slices.Contains(w.trail, what) {
		w.trail = append(w.trail, what)
	}
}

// end ends a host's work. It returns nil where that had ended.
func (w *hostWork) end(at time.Time) *hostWork {
	if !w.ended.IsZero() {
		return nil
	}
	w.ended = at
	return w
}

// shortCause is the code of an error where it has one, else the beginning of its text: the end of the run says all of it.
func shortCause(err error) string {
	if x := runlog.TroubleOf(err); x != nil {
		return x.Code.String()
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	if at := scriptEnded.FindStringIndex(text); at != nil && at[1] < len(text) {
		text = text[at[1]:]
	}
	if r := []rune(text); len(r) > 80 {
		return string(r[:79]) + "…"
	}
	return text
}

// atWork returns the hosts in progress, in the plan's order.
func (t *progress) atWork() []*hostWork {
	return slices.DeleteFunc(slices.Clone(t.hosts), func(w *hostWork) bool { return w.began.IsZero() || !w.ended.IsZero() })
}

// waiting says how many hosts have not started, a text for each reason.
func (t *progress) waiting(now time.Time) []string {
	if t.plan == nil {
		return nil
	}
	why := make(map[string]string) // by host
	for _, r := range t.plan.Rollouts {
		text := t.waitsFor(r, now)
		for _, name := range slices.Concat(r.Waves...) {
			why[name] = text
		}
		for _, name := range r.Left {
			why[name] = "(" + r.LeftReason + ")"
		}
	}
	var reasons []string
	for _, w := range t.hosts {
		if w.began.IsZero() && w.ended.IsZero() && w.host != "" {
			reasons = append(reasons, cmp.Or(why[w.host], "for a turn"))
		}
	}
	return mapped(grouped(reasons, func(text string) string { return text }), func(same []string) string {
		return fmt.Sprintf("%d waiting %s", len(same), same[0])
	})
}

// waitsFor says what the next host of a rollout waits for.
func (t *progress) waitsFor(r plan.Rollout, now time.Time) string {
	open := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { w := t.at[name]; return w != nil && !w.ended.IsZero() })
	}
	if trials := open(r.Trials); len(trials) > 0 {
		return "for the repair of " + firstOf(mapped(trials, t.names.Short))
	}
	if left := open(canariesOf(r)); len(left) > 0 {
		return "for the canary"
	}
	if until := t.soaks[r.Fleet]; now.Before(until) {
		return fmt.Sprintf("until the canary has been Ready for %s (%s UTC)", r.Soak, until.UTC().Format("15:04:05"))
	}
	return fmt.Sprintf("for a turn in %s (max_unavailable %d)", r.Fleet, r.AtOnce)
}

// counts sums up how far the run is.
func (t *progress) counts(now time.Time) string {
	actions, total, ended, hosts, failed := 0, 0, 0, 0, 0
	for _, w := range t.hosts {
		actions, total = actions+w.done, total+w.total
		if w.failed {
			failed++
		}
		if w.host == "" {
			continue
		}
		hosts++
		if !w.ended.IsZero() && !w.failed {
			ended++
		}
	}
	return listed(" · ", fmt.Sprintf("%d/%d actions", actions, total), given(hosts > 0, "%d/%d hosts", ended, hosts), some(failed, "failed"), clock(now.Sub(t.began))+t.ofExpected())
}

// ofExpected says how long the run was expected to take when it was planned, or "".
func (t *progress) ofExpected() string {
	if t.plan == nil || t.plan.Forecast == nil {
		return ""
	}
	return " of " + roughly(t.plan.Forecast.Seconds)
}

// share returns how much of the actions is done, from 0 to 1.
func (t *progress) share() float64 {
	done, total := 0, 0
	for _, w := range t.hosts {
		done, total = done+w.done, total+w.total
	}
	return float64(done) / float64(max(total, 1))
}

// asking says how far a comparison is, or "" while actions run.
func (t *progress) asking(now time.Time) string {
	acted := slices.ContainsFunc(t.hosts, func(w *hostWork) bool { return !w.began.IsZero() })
	switch {
	case len(t.atWork()) > 0 || t.plan != nil && t.asked == 0:
		return ""
	case t.asked == 0:
		return "Reading the inventory"
	case acted:
		return "Verifying " + count(t.asked, "host") + given(t.answers > 0, ": %d answered", t.answers)
	}
	return "Reading " + count(t.asked, "host") + ": " + listed(", ", some(t.answers, "answered"), clock(now.Sub(t.began)))
}

// clock writes a duration in a few characters: 20s, 2m10s, 1h02m.
func clock(d time.Duration) string {
	switch s := int(max(0, d).Round(time.Second).Seconds()); {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	default:
		return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
	}
}
