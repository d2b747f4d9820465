package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// Lines shows a run for a log or a pipe: a line for each host that ended, and at times one that sums up.
type Lines struct {
	text     *Text
	beat     time.Duration
	last     time.Time // when something was summed up
	verbose  bool
	progress *progress
}

// NewLines returns a printer of a run in which p is applied, nil where hosts are only asked. It sums up at every beat. verbose
// prints every action that begins or ends too.
func NewLines(t *Text, p *plan.Plan, beat time.Duration, verbose bool) *Lines {
	return &Lines{text: t, beat: beat, verbose: verbose, progress: newProgress(p)}
}

// Event prints what a person wants to see of an event.
func (l *Lines) Event(e engine.Event) {
	if l.last.IsZero() {
		l.last = e.Time
	}
	if l.verbose && telling[e.Type] {
		l.text.Say(EventLine(e))
	}
	if w := l.progress.event(e); w != nil {
		l.text.ended(l.progress, w)
	}
}

// ended prints how the work on a host ended.
func (t *Text) ended(of *progress, w *hostWork) {
	mark, text, until := w.state(w.ended)
	if mark == markDone { // which actions these were, the plan has said
		text = ""
	}
	took := "0s"
	if !w.began.IsZero() {
		took = clock(until.Sub(w.began))
	}
	c := of.columns()
	line := fmt.Sprintf("%-*s  %*s actions  %6s", c.name, of.name(w), c.count, w.steps(), took)
	t.styled(2, mark, printable(line+given(w.canary, "  (canary)")+given(text != "", "  %s", text)))
}

// Tick sums up when it is due. It is never called at the same time as Event.
func (l *Lines) Tick(now time.Time) {
	if l.last.IsZero() || now.Sub(l.last) < l.beat {
		return
	}
	l.last = now
	l.text.Say(l.progress.heartbeat(now))
}

// namedAtWork is how many hosts a heartbeat names.
const namedAtWork = 8

// heartbeat sums up in one line.
func (t *progress) heartbeat(now time.Time) string {
	if asking := t.asking(now); asking != "" {
		return asking
	}
	work := t.atWork()
	names := mapped(work, t.name)
	if more := len(names) - namedAtWork; more > 0 {
		names = append(names[:namedAtWork], fmt.Sprintf("%d more", more))
	}
	slowest := ""
	if len(work) > 0 {
		first := work[0]
		for _, w := range work {
			if w.began.Before(first.began) {
				first = w
			}
		}
		slowest = fmt.Sprintf("slowest %s: %s, %s", t.name(first), first.now, clock(now.Sub(first.began)))
	}
	return listed(" · ", t.counts(now), given(len(names) > 0, "running: %s", strings.Join(names, ", ")), slowest, strings.Join(t.waiting(now), ", "))
}

// telling are the events that --verbose prints.
var telling = map[engine.EventType]bool{engine.Done: true, engine.Failed: true, engine.NodeReady: true, engine.Soaking: true, engine.Cordoning: true,
	engine.Evicting: true, engine.Uncordoned: true, engine.Deferred: true, engine.HostStarted: true, engine.Installing: true,
	engine.Fencing: true, engine.Idling: true, engine.Unfenced: true, engine.KeyMade: true, engine.KeyRevoked: true}

// EventLine returns one event in one line, "" where it says nothing to a person.
func EventLine(e engine.Event) string {
	who, took := subject(e.Host)+": ", fmt.Sprintf("(%.1f s)", e.Seconds)
	what := ""
	if e.Action != nil {
		what = string(e.Action.Kind.Sign()) + " " + label(*e.Action)
	}
	answered := "answered " + took
	if e.Trouble != nil {
		answered = e.Trouble.Code.String() + ": " + e.Trouble.Text
	}
	text, known := map[engine.EventType]string{
		engine.Done:        what + " done " + took,
		engine.Failed:      fmt.Sprintf("%s failed %s: %v", what, took, e.Err),
		engine.Started:     what,
		engine.Skipped:     what + " not started",
		engine.Observed:    answered,
		engine.Waiting:     "waiting until its Node is Ready",
		engine.NodeReady:   "Node Ready " + took,
		engine.Installing:  e.Text,
		engine.Sending:     fmt.Sprintf("%s sent, %s of %s", e.Artifact, bytes(e.Bytes), bytes(e.Size)),
		engine.Deferred:    what + " deferred to a later run: " + answered,
		engine.HostStarted: fmt.Sprintf("started (%s, %s%s)", e.Lane, e.Worst, given(e.Wave > 0, ", wave %d", e.Wave)),
		engine.HostEnded:   "finished",
		engine.Cordoning:   "Node cordoned",
		engine.Uncordoned:  "Node uncordoned",
		engine.Fencing:     "CI agent fenced",
		engine.Idling:      e.Text,
		engine.Unfenced:    "CI agent may get jobs again",
		engine.KeyMade:     "key " + e.Text + " for the tailnet made",
		engine.KeyRevoked:  "key " + e.Text + " for the tailnet revoked",
		engine.Evicting:    fmt.Sprintf("Pod %s %s%s", e.Pod, e.What, given(e.Text != "", ": %s", e.Text)),
	}[e.Type]
	switch {
	case known:
		return who + text
	case e.Type == engine.Soaking:
		return fmt.Sprintf("%s: the canary is Ready and watched until %s; then the others start", e.Fleet, e.Until.UTC().Format("15:04:05 UTC"))
	case e.Type == engine.Observing:
		return fmt.Sprintf("asking %s", count(e.Count, "host"))
	}
	return ""
}
