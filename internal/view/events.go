package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/lipgloss"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// Live shows a run on a terminal: a line for every host at work, which goes
// away when the run ends, and above it a line for every action that ended. It
// asks the terminal nothing, so one that never answers cannot hang it.
type Live struct {
	out  io.Writer
	size func() (columns, rows int)
	now  func() time.Time

	mu    sync.Mutex
	show  progress
	drawn int // lines that are on the terminal now
	quit  chan struct{}
	clock sync.WaitGroup
}

// NewLive starts to show. size returns the terminal's size, zeros where it is not known.
func NewLive(out io.Writer, size func() (columns, rows int), now func() time.Time) *Live {
	l := &Live{out: out, size: size, now: now, show: progress{active: make(map[string]work)}, quit: make(chan struct{})}
	l.clock.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-l.quit:
				return
			case <-tick.C:
				l.Say("") // the seconds went on
			}
		}
	})
	return l
}

// Event shows an event.
func (l *Live) Event(e engine.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draw(l.show.event(e))
}

// Say prints a text above the lines at work, where it stays: what others write to
// the terminal meanwhile is cleared with them.
func (l *Live) Say(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	columns, _ := l.size()
	for _, line := range wrap(printable(text), columns) {
		l.draw(line)
	}
}

// Close removes the lines at work and leaves the terminal to others.
func (l *Live) Close() {
	close(l.quit)
	l.clock.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.show.over = true
	l.draw("")
}

// draw replaces the lines at work, below a line that stays, in one write.
func (l *Live) draw(stays string) {
	columns, rows := l.size()
	var b strings.Builder
	if l.drawn > 0 {
		fmt.Fprintf(&b, "\r\x1b[%dA\x1b[J", l.drawn) // to the first of them, and clear what is below; ^C may stand behind them
	}
	lines := l.show.lines(l.now(), rows)
	l.drawn = len(lines)
	if stays != "" {
		lines = append([]string{stays}, lines...)
	}
	for _, line := range lines {
		b.WriteString(cut(line, columns) + "\n")
	}
	_, _ = io.WriteString(l.out, b.String()) // a terminal that went away ends the show, not the run
}

// cut keeps a line within the terminal, where its width is known: a broken one would spoil
// the count of lines to clear.
func cut(text string, columns int) string {
	return lipgloss.NewStyle().MaxWidth(max(columns, 0)).Render(printable(text))
}

type work struct {
	what  string
	since time.Time
}

type progress struct {
	active        map[string]work
	asked, answer int // hosts being asked, and those that answered
	ended         int // actions
	began         time.Time
	over          bool
}

// event takes in an event, and returns the line that stays of it, if one does.
func (p *progress) event(e engine.Event) string {
	if p.began.IsZero() {
		p.began = e.Time
	}
	switch e.Type {
	case engine.Observing:
		p.asked += e.Count
	case engine.Observed:
		p.answer++
	case engine.Started, engine.Waiting:
		p.asked, p.answer = 0, 0
		p.active[e.Host] = work{EventLine(e), e.Time}
	case engine.Sending:
		if w, at := p.active[e.Host]; at {
			p.active[e.Host] = work{EventLine(e), w.since}
		}
	case engine.Soaking, engine.Closing, engine.Evicting, engine.Opened:
		return EventLine(e)
	case engine.Done, engine.Failed, engine.NodeReady:
		delete(p.active, e.Host)
		if e.Action == nil || e.Action.Kind != plan.AwaitNode {
			p.ended++
		}
		return EventLine(e)
	}
	return ""
}

// lines returns the hosts at work, as many as fit, and a line that sums up.
func (p *progress) lines(now time.Time, rows int) []string {
	if p.over {
		return nil
	}
	out := mapped(slices.Sorted(maps.Keys(p.active)), func(name string) string {
		return fmt.Sprintf("  %s  %.0f s", p.active[name].what, max(0, now.Sub(p.active[name].since).Seconds()))
	})
	if room := rows - 2; rows > 2 && len(out) > room {
		out = append(out[:room-1], fmt.Sprintf("  and %d more", len(p.active)-room+1))
	}
	switch {
	case len(p.active) > 0 || p.ended > 0 && p.asked == 0:
		return append(out, fmt.Sprintf("%s done, %s at work", count(p.ended, "action"), count(len(p.active), "host")))
	case p.asked > 0 && p.ended > 0:
		return append(out, fmt.Sprintf("%s done; looking again: %d of %s answered", count(p.ended, "action"), p.answer, count(p.asked, "host")))
	case p.asked > 0:
		return append(out, fmt.Sprintf("Asking %s, %d answered, %.0f s", count(p.asked, "host"), p.answer, max(0, now.Sub(p.began).Seconds())))
	}
	return append(out, "Reading the inventory")
}

// Lines shows a run's events as plain lines, for a log or a pipe.
type Lines struct {
	text *Text
	beat time.Duration
	last time.Time // when something was printed
	show progress
}

// NewLines returns a printer of events with a heartbeat after so long a silence.
func NewLines(t *Text, beat time.Duration) *Lines {
	return &Lines{text: t, beat: beat, show: progress{active: make(map[string]work)}}
}

// Event prints what a person wants to see of an event.
func (l *Lines) Event(e engine.Event) {
	if l.last.IsZero() {
		l.last = e.Time
	}
	if line := l.show.event(e); line != "" {
		l.text.Say(line)
		l.last = e.Time
	}
}

// Tick prints a heartbeat when it is due. It is never called at the same time as Event.
func (l *Lines) Tick(now time.Time) {
	if l.last.IsZero() || now.Sub(l.last) < l.beat {
		return
	}
	names := joined(slices.Sorted(maps.Keys(l.show.active)), subject)
	l.text.sayf("Still working, %s so far%s", now.Sub(l.show.began).Round(time.Second), given(names != "", ": %s", names))
	l.last = now
}

// EventLine returns one event in one line.
func EventLine(e engine.Event) string {
	who, took := subject(e.Host)+": ", fmt.Sprintf("(%.1f s)", e.Seconds)
	what := ""
	if e.Action != nil {
		what = string(e.Action.Kind.Sign()) + " " + label(*e.Action)
	}
	seen := "seen " + took
	if e.Trouble != nil {
		seen = e.Trouble.Code.String() + ": " + e.Trouble.Text
	}
	text, known := map[engine.EventType]string{
		engine.Done:      what + " done " + took,
		engine.Failed:    fmt.Sprintf("%s failed %s: %v", what, took, e.Err),
		engine.Started:   what,
		engine.Skipped:   what + " not started",
		engine.Observed:  seen,
		engine.Waiting:   "waiting until its Node is Ready",
		engine.NodeReady: "its Node is Ready " + took,
		engine.Sending:   fmt.Sprintf("%s sent, %s of %s", e.Artifact, bytes(e.Bytes), bytes(e.Size)),
		engine.HostBegun: fmt.Sprintf("begins (%s, %s)", e.Lane, e.Worst),
		engine.HostEnded: "ended",
		engine.Closing:   "its Node takes no new Pods",
		engine.Opened:    "its Node takes Pods again",
		engine.Evicting:  fmt.Sprintf("Pod %s %s%s", e.Pod, e.What, given(e.Text != "", ": %s", e.Text)),
	}[e.Type]
	switch {
	case known:
		return who + text
	case e.Type == engine.Soaking:
		return fmt.Sprintf("%s: the canary is Ready and watched until %s; then the others start", e.Fleet, e.Until.UTC().Format("15:04:05 UTC"))
	}
	return fmt.Sprintf("asking %s", count(e.Count, "host"))
}

// Stream prints an apply as JSON, one object a line. A nil Stream is one that nobody reads.
type Stream struct {
	enc *json.Encoder
	now func() time.Time
}

// message is one line of a stream.
type message struct {
	Level     string             `json:"@level"`
	Message   string             `json:"@message"`
	Timestamp time.Time          `json:"@timestamp"`
	Type      string             `json:"type"`
	Version   string             `json:"macfleet_version,omitempty"`
	Format    string             `json:"format_version,omitempty"`
	Change    *wire.Action       `json:"change,omitempty"`
	Hook      *hook              `json:"hook,omitempty"`
	Host      *wire.TroubledHost `json:"host,omitempty"`
	Summary   *plan.Summary      `json:"summary,omitempty"`
	Outcome   *outcome           `json:"outcome,omitempty"`
	Hosts     int                `json:"hosts,omitempty"`
	Progress  *progressed        `json:"progress,omitempty"`
	Fault     *Diagnostic        `json:"diagnostic,omitempty"`
}

// progressed is an artifact on its way to a host.
type progressed struct {
	Artifact string `json:"artifact"`
	Bytes    int64  `json:"bytes"` // that have left
	Size     int64  `json:"size"`
}

// hook is an action at work.
type hook struct {
	Address string  `json:"address"`
	Host    string  `json:"host"`
	Step    string  `json:"step,omitempty"`
	Action  string  `json:"action,omitempty"` // absent while the host is looked at
	Lane    string  `json:"lane,omitempty"`   // of a host that begins or ends
	Pod     string  `json:"pod,omitempty"`    // NAMESPACE/NAME that a drain moves
	Seconds float64 `json:"elapsed_seconds"`
	Error   string  `json:"error,omitempty"`
}

// outcome is what an apply came to.
type outcome struct {
	Done        int  `json:"done"`
	Failed      int  `json:"failed"`
	NotStarted  int  `json:"not_started"`
	NotWaited   int  `json:"not_waited"`
	Interrupted bool `json:"interrupted"`
	// Stopped is why: interrupted, deadline or record; absent where it came to its end.
	Stopped   string        `json:"stopped,omitempty"`
	Lost      string        `json:"lock_lost,omitempty"` // why the lock was lost, and the run stopped
	Converged bool          `json:"converged"`
	Left      []engine.Left `json:"left,omitempty"`
	// Closed are the hosts whose Nodes stay closed to new Pods.
	Closed []string `json:"closed,omitempty"`
}

// NewStream returns a stream and prints its first line.
func NewStream(out io.Writer, now func() time.Time) *Stream {
	s := &Stream{enc: json.NewEncoder(out), now: now}
	s.enc.SetEscapeHTML(false)
	s.write(message{Type: "version", Message: "macfleet " + fleet.Version, Version: fleet.Version, Format: wire.Format})
	return s
}

// write prints one line. A reader that went away ends the process elsewhere.
func (s *Stream) write(m message) {
	if s == nil {
		return
	}
	m.Level, m.Timestamp = cmp.Or(m.Level, "info"), s.now().UTC()
	_ = s.enc.Encode(m)
}

// Plan prints every action that is planned, what can't be done, and the counts.
func (s *Stream) Plan(p *plan.Plan) {
	if s == nil {
		return // a big plan takes a while to encode
	}
	d := wire.PlanOf(p)
	for _, c := range d.ResourceChanges {
		m := message{Type: "planned_change", Message: c.Address + ": " + c.ActionReason.String(), Change: &c}
		if c.Refused != nil {
			m.Level, m.Type = "warn", "refused_change"
		}
		s.write(m)
	}
	for _, h := range append(d.UnknownHosts, d.RefusedHosts...) {
		s.write(message{Level: "warn", Type: "host_trouble", Message: h.Name + ": " + h.Code.String() + ": " + h.Text, Host: &h})
	}
	s.write(message{Type: "change_summary", Message: summary(p.Summarise()), Summary: &d.Summary})
}

// streamed are the types of lines that tell of events. Other events have none.
var streamed = map[engine.EventType]string{
	engine.Started: "apply_start", engine.Done: "apply_complete", engine.Failed: "apply_errored", engine.Skipped: "apply_skipped",
	engine.Waiting: "node_waiting", engine.NodeReady: "node_ready", engine.Sending: "artifact_progress",
	engine.HostBegun: "host_start", engine.HostEnded: "host_complete", engine.Soaking: "canary_soak",
	engine.Closing: "node_closing", engine.Evicting: "pod_evicting", engine.Opened: "node_opened",
	engine.Observing: "observe_start", engine.Observed: "observe_complete",
}

// levels are those of lines that tell of events, where they are not for information.
var levels = map[engine.EventType]string{engine.Failed: "error", engine.Skipped: "warn"}

// Event prints an action's start and end, and each host that was looked at.
func (s *Stream) Event(e engine.Event) {
	m := message{Level: levels[e.Type], Type: streamed[e.Type], Message: EventLine(e), Hosts: e.Count}
	if m.Type == "" {
		return
	}
	switch {
	case e.Action != nil:
		a := e.Action
		m.Hook = &hook{Address: a.Address(), Host: a.Host, Step: string(a.Step), Action: string(a.Kind), Seconds: e.Seconds}
	case e.Host != "":
		m.Hook = &hook{Address: wire.HostAddress(e.Host), Host: e.Host, Lane: e.Lane, Pod: e.Pod, Seconds: e.Seconds}
	}
	if e.Type == engine.Sending {
		m.Progress = &progressed{Artifact: e.Artifact, Bytes: e.Bytes, Size: e.Size}
	}
	if e.Err != nil {
		m.Hook.Error = e.Err.Error()
	}
	if e.Trouble != nil {
		m.Level, m.Host = "warn", wire.Troubled(e.Host, "", e.Trouble)
	}
	s.write(m)
}

// Applied prints what is left after a run, and then what the run came to.
func (s *Stream) Applied(r engine.Result) {
	if r.After != nil && !r.Converged() {
		s.Plan(r.After)
	}
	s.Outcome(r)
}

// Outcome prints what a run came to.
func (s *Stream) Outcome(r engine.Result) {
	o := outcome{Done: r.Done, Failed: len(r.Failures), NotStarted: r.NotStarted, NotWaited: r.NotWaited, Interrupted: r.Interrupted,
		Converged: r.Converged(), Left: r.Left, Closed: mapped(r.Closed, func(c engine.Closed) string { return c.Host })}
	_, o.Stopped = stoppedBy(r)
	if r.Lost != nil {
		o.Lost = r.Lost.Error()
	}
	m := message{Type: "apply_summary", Outcome: &o, Message: fmt.Sprintf("%s done, converged", count(r.Done, "action"))}
	if !o.Converged {
		m.Level, m.Message = "error", fmt.Sprintf("%s done, did not converge", count(r.Done, "action"))
	}
	if r.After != nil {
		m.Summary = new(r.After.Summarise())
	}
	s.write(m)
}

// Waiting prints that another one's lock is waited for.
func (s *Stream) Waiting(line string) { s.write(message{Type: "lock_waiting", Message: line}) }

// Approved prints by whose approval an apply goes on.
func (s *Stream) Approved(name string, f wire.PlanFile, now *plan.Plan) {
	s.write(message{Type: "plan_file", Message: strings.Join(approved(name, f, now), " ")})
}

// Error prints an error that ended the command. It is the last line.
func (s *Stream) Error(err error) {
	s.Diagnostics([]Diagnostic{{Severity: "error", Summary: err.Error()}})
}

// Diagnostics prints the faults of a configuration, a line each.
func (s *Stream) Diagnostics(all []Diagnostic) {
	for _, d := range all {
		m := message{Level: "error", Type: "diagnostic", Message: listed(": ", d.Summary, d.Detail), Fault: &d}
		if d.Severity != "error" {
			m.Level = "warn"
		}
		s.write(m)
	}
}

// Stats is what a command cost.
type Stats struct {
	Hosts         hosts.Stats
	Spent         []hosts.Spent // by host
	Requests      []Requests
	Configuration time.Duration // until it was read and checked
	Credentials   time.Duration // until secrets were resolved and clients made
	Phases        Phases
	Total         time.Duration
}

// Requests is how often a provider was asked.
type Requests struct {
	Provider string
	Count    int64
}

// Phases adds up from a run's events how long its phases took, by the clock on the wall.
type Phases struct {
	Lists   time.Duration // the providers' lists
	Hosts   time.Duration // observing hosts, all at once
	Compute time.Duration // planning
	Actions time.Duration // performing

	asked, acted time.Time // until when Hosts and Actions are counted
}

// Event takes in an event.
func (p *Phases) Event(e engine.Event) {
	switch e.Type {
	case engine.Listed:
		p.Lists += duration(e.Seconds)
		p.acted = time.Time{} // what follows is another observation
	case engine.Observing:
		p.asked = e.Time
	case engine.Observed:
		p.Hosts += e.Time.Sub(p.asked)
		p.asked = e.Time
	case engine.Computed:
		p.Compute += duration(e.Seconds)
	case engine.Started:
		if p.acted.IsZero() {
			p.acted = e.Time
		}
	case engine.Done, engine.Failed:
		p.Actions += e.Time.Sub(p.acted)
		p.acted = e.Time
	}
}

// Stats shows what a command cost, and the hosts that took longest.
func (t *Text) Stats(s Stats) {
	asked := joined(s.Requests, func(r Requests) string { return fmt.Sprintf("%s %d", r.Provider, r.Count) })
	t.sayf("Stats: %s, %s, %s, %.1f kB sent, %.1f kB received; requests: %s; %s.",
		count(int(s.Hosts.Connections), "SSH connection"), count(int(s.Hosts.Execs), "exec"), count(int(s.Hosts.Turns), "round trip"),
		float64(s.Hosts.Sent)/1000, float64(s.Hosts.Received)/1000, asked, inSeconds(s.Total))
	t.line(2, "", fmt.Sprintf("By the clock: configuration %s, credentials %s, lists %s, hosts %s, compute %s%s.", inSeconds(s.Configuration), inSeconds(s.Credentials),
		inSeconds(s.Phases.Lists), inSeconds(s.Phases.Hosts), inSeconds(s.Phases.Compute), given(s.Phases.Actions > 0, ", actions %s", inSeconds(s.Phases.Actions))))
	if len(s.Spent) == 0 {
		return
	}
	var sum hosts.Spent
	for _, h := range s.Spent {
		sum.Dial += h.Dial
		sum.Handshake += h.Handshake
		sum.Exec += h.Exec
	}
	t.line(2, "", fmt.Sprintf("Summed over %s: dial %s, handshake %s, exec %s.", count(len(s.Spent), "host"),
		inSeconds(sum.Dial), inSeconds(sum.Handshake), inSeconds(sum.Exec)))
	slowest := slices.SortedFunc(slices.Values(s.Spent), func(a, b hosts.Spent) int {
		return cmp.Or(cmp.Compare(b.Total(), a.Total()), strings.Compare(a.Host, b.Host))
	})
	rows := [][]string{{"SLOWEST HOSTS", "TOOK", "MOST OF IT"}}
	for _, h := range slowest[:min(len(slowest), 5)] {
		most, phase := max(h.Dial, h.Handshake, h.Exec), "exec " // of equal ones the first
		switch most {
		case h.Dial:
			phase = "dial "
		case h.Handshake:
			phase = "handshake "
		}
		rows = append(rows, []string{h.Host, inSeconds(h.Total()), phase + inSeconds(most)})
	}
	t.Table(rows)
}

func duration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second))
}

func inSeconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
