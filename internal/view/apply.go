package view

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// Question returns what a person is asked before an apply: where, how many of each
// fleet's hosts, how many keys are taken on trust, and what it disturbs. fleets are the
// configuration's.
func Question(p *plan.Plan, fleets []fleet.Fleet) string {
	touched, have := make(map[string]int), make(map[string]int)
	for _, h := range p.Hosts {
		have[h.Fleet]++
	}
	total := 0
	objects := 0
	for _, actions := range p.Runnable() {
		if actions[0].OfCluster() {
			objects += len(actions)
			continue
		}
		touched[actions[0].Fleet]++
		total++
	}
	var parts []string
	for _, f := range p.Fleets {
		if touched[f] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d of %d", f, touched[f], have[f]))
		}
	}
	var what []string
	if total > 0 {
		what = append(what, fmt.Sprintf("change %s (%s)", count(total, "host"), strings.Join(parts, ", ")))
	}
	if objects > 0 {
		what = append(what, fmt.Sprintf("change %s of the cluster", count(objects, "object")))
	}
	if n := len(engine.Unpinned(p)); n > 0 {
		what = append(what, fmt.Sprintf("trust the host keys of %s", count(n, "member")))
	}
	return fmt.Sprintf("Apply to %s: %s.", ownerTitle(p), strings.Join(what, " and ")) + disturbs(p, fleets)
}

// Applied shows what a run came to: failures first, then what is left, then one
// line.
func (t *Text) Applied(r engine.Result) {
	if len(r.Failures) > 0 {
		t.blank()
		fmt.Fprintln(t.out, t.styles.strong.Render("Failed"))
		for _, f := range r.Failures {
			t.line(0, signRefused, subject(f.Action.Host))
			text, remedy := failure(f)
			t.line(4, "", label(f.Action)+": "+text)
			t.line(6, "", "to do: "+remedy)
		}
	}
	if r.After == nil {
		t.unproven(r)
		return
	}
	s := r.After.Summarise()
	if r.Converged() {
		t.line(0, "", fmt.Sprintf("Applied %s. %s of %s converged.", count(r.Done, "action"), all(r.After, s), ownerTitle(r.After)))
		t.held(r.After, nowhere)
		t.nodes(r)
		t.notes(r.After)
		return
	}
	t.leftHosts(r.Left)
	t.closed(r.Closed)
	if !r.Interrupted { // else it is the rest of the plan that was shown
		t.left(r.After)
	}
	t.blank()
	text := fmt.Sprintf("Applied %s; %d of %s converged", count(r.Done, "action"), s.Converged, count(s.Hosts, "host"))
	if rest := incomplete(s); rest != "" {
		text += "; " + rest
	}
	if n := len(r.Failures); n > 0 {
		text += fmt.Sprintf("; %d failed", n)
	}
	if r.NotStarted > 0 {
		text += fmt.Sprintf("; %d not started", r.NotStarted)
	}
	if r.NotWaited > 0 {
		text += fmt.Sprintf("; %s not waited for", count(r.NotWaited, "Node"))
	}
	if s.Changes() > 0 {
		text += fmt.Sprintf("; %d still to do", s.Changes())
	}
	t.line(0, "", text+".")
	t.nodes(r)
	t.lost(r.Lost)
	if r.Interrupted {
		t.line(0, "", stopped(r))
	}
}

// unproven says of a run after which nobody could look what it leaves all the same.
func (t *Text) unproven(r engine.Result) {
	t.leftHosts(r.Left)
	t.closed(r.Closed)
	t.lost(r.Lost)
}

// lost says why a run stopped that no longer had the lock.
func (t *Text) lost(why error) {
	if why != nil {
		t.line(0, "", why.Error()+". Running actions were finished, no other was started.")
	}
}

// failure says what went wrong and what to do: what is known of this very error,
// or what helps with any.
func failure(f engine.Failure) (text, remedy string) {
	text = f.Err.Error()
	remedy = "macfleet plan --on name=" + f.Action.Host + " shows what is left; apply again goes on from there"
	if f.Action.Host == "" {
		remedy = "macfleet plan shows what is left; apply again goes on from there"
	}
	var trouble *engine.TroubleError
	var lost *hosts.Error
	var advised *engine.AdvisedError
	switch {
	case errors.As(f.Err, &advised):
		return text, advised.Remedy
	case errors.As(f.Err, &trouble):
		return trouble.Code.String() + ": " + trouble.Text, trouble.Remedy
	case errors.As(f.Err, &lost):
		return lost.Code.String() + ": " + lost.Trouble().Text, lost.Remedy
	}
	return text, remedy
}

// left shows what the second observation found.
func (t *Text) left(p *plan.Plan) {
	t.blank()
	fmt.Fprintln(t.out, t.styles.strong.Render("Did not converge"))
	t.differences(p)
}

// Lines shows a run's events as plain lines, for a log or a pipe.
type Lines struct {
	text  *Text
	beat  time.Duration
	last  time.Time
	start time.Time
	open  map[string]bool // hosts at work
}

// NewLines returns a shower of events that prints a heartbeat when nothing else
// was printed for that long.
func NewLines(t *Text, beat time.Duration) *Lines {
	return &Lines{text: t, beat: beat, open: make(map[string]bool)}
}

// Event prints what a person wants to see of an event.
func (l *Lines) Event(e engine.Event) {
	if l.start.IsZero() {
		l.start, l.last = e.Time, e.Time
	}
	switch e.Type {
	case engine.Started, engine.Waiting:
		l.open[subject(e.Host)] = true
	case engine.Done, engine.Failed, engine.NodeReady, engine.Soaking, engine.Closing, engine.Evicting, engine.Opened:
		if idleEvent(e) == "" {
			delete(l.open, subject(e.Host))
		}
		l.text.line(0, "", EventLine(e))
		l.last = e.Time
	}
}

// Tick prints a heartbeat when it is due. It is called from outside, every
// second or so, never at the same time as Event.
func (l *Lines) Tick(now time.Time) {
	if l.start.IsZero() || now.Sub(l.last) < l.beat {
		return
	}
	l.last = now
	names := make([]string, 0, len(l.open))
	for name := range l.open {
		names = append(names, name)
	}
	slices.Sort(names)
	text := fmt.Sprintf("Still working, %s so far", now.Sub(l.start).Round(time.Second))
	if len(names) > 0 {
		text += ": " + strings.Join(names, ", ")
	}
	l.text.line(0, "", text)
}

// EventLine returns one event in one line.
func EventLine(e engine.Event) string {
	if text := clusterEvent(e) + rolloutEvent(e) + idleEvent(e); text != "" {
		return text
	}
	what := ""
	if e.Action != nil {
		what = string(e.Action.Kind.Sign()) + " " + label(*e.Action)
	}
	took := fmt.Sprintf("(%.1f s)", e.Elapsed.Seconds())
	switch e.Type {
	case engine.Done:
		return fmt.Sprintf("%s: %s done %s", subject(e.Host), what, took)
	case engine.Failed:
		return fmt.Sprintf("%s: %s failed %s: %v", subject(e.Host), what, took, e.Err)
	case engine.Started:
		return fmt.Sprintf("%s: %s", subject(e.Host), what)
	case engine.Skipped:
		return fmt.Sprintf("%s: %s not started", subject(e.Host), what)
	case engine.Observed:
		if e.Trouble != nil {
			return fmt.Sprintf("%s: %s: %s", subject(e.Host), e.Trouble.Code, e.Trouble.Text)
		}
		return fmt.Sprintf("%s: seen %s", subject(e.Host), took)
	}
	return fmt.Sprintf("asking %s", count(e.Count, "host"))
}
