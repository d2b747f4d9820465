package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// Stream prints an apply as JSON, one object a line. A nil Stream prints nothing.
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

// hook is an action in progress.
type hook struct {
	Address string  `json:"address"`
	Host    string  `json:"host"`
	Step    string  `json:"step,omitempty"`
	Action  string  `json:"action,omitempty"` // absent while the host is observed
	Lane    string  `json:"lane,omitempty"`   // of a host that begins or ends
	Wave    int     `json:"wave,omitempty"`   // of it in the lane disrupt, from 1
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
	// Stopped is why: interrupted, deadline or record; absent if it finished.
	Stopped   string `json:"stopped,omitempty"`
	Lost      string `json:"lock_lost,omitempty"` // why the lock was lost, and the run stopped
	Converged bool   `json:"converged"`
	// Deferred counts the hosts of which a limit left something for a later run.
	Deferred int           `json:"deferred"`
	Left     []engine.Left `json:"left,omitempty"`
	// Closed are the hosts whose Nodes stay cordoned.
	Closed []string `json:"closed,omitempty"`
	// Fenced are the hosts whose CI agents get no new jobs.
	Fenced []string `json:"fenced,omitempty"`
}

// NewStream returns a stream and prints its first line.
func NewStream(out io.Writer, now func() time.Time) *Stream {
	s := &Stream{enc: json.NewEncoder(wire.VisibleLines(out)), now: now}
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
		switch {
		case c.Refused != nil:
			m.Level, m.Type = "warn", "refused_change"
		case c.Deferral != nil:
			m.Type = "deferred_change"
		}
		s.write(m)
	}
	for _, h := range append(d.UnknownHosts, d.RefusedHosts...) {
		s.write(message{Level: "warn", Type: "host_trouble", Message: h.Name + ": " + h.Code.String() + ": " + h.Text, Host: &h})
	}
	s.write(message{Type: "change_summary", Message: planLine(p), Summary: &d.Summary})
}

// streamed are the types of lines that tell of events. Other events have none.
var streamed = map[engine.EventType]string{
	engine.Started: "apply_start", engine.Done: "apply_complete", engine.Failed: "apply_errored", engine.Skipped: "apply_skipped", engine.Deferred: "apply_deferred",
	engine.Waiting: "node_waiting", engine.NodeReady: "node_ready", engine.Sending: "artifact_progress",
	engine.Installing: "server_waiting", engine.HostStarted: "host_start", engine.HostEnded: "host_complete", engine.Soaking: "canary_soak",
	engine.Cordoning: "node_closing", engine.Evicting: "pod_evicting", engine.Uncordoned: "node_opened",
	engine.Fencing: "agent_fencing", engine.Idling: "agent_waiting", engine.Unfenced: "agent_unfenced", engine.KeyMade: "key_made", engine.KeyRevoked: "key_revoked",
	engine.Observing: "observe_start", engine.Observed: "observe_complete",
}

// levels are those of lines that tell of events, where they are not for information.
var levels = map[engine.EventType]string{engine.Failed: "error", engine.Skipped: "warn"}

// Event prints an action's start and end, and each host that was observed.
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
		m.Hook = &hook{Address: wire.HostAddress(e.Host), Host: e.Host, Lane: e.Lane, Wave: e.Wave, Pod: e.Pod, Seconds: e.Seconds}
	}
	if e.Type == engine.Sending {
		m.Progress = &progressed{Artifact: e.Artifact, Bytes: e.Bytes, Size: e.Size}
	}
	if e.Err != nil {
		m.Hook.Error = e.Err.Error()
	}
	if e.Trouble != nil && e.Type == engine.Observed {
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
		Converged: r.Converged(), Left: r.Left, Closed: mapped(r.LeftCordoned, func(c engine.LeftCordoned) string { return c.Host }),
		Fenced: mapped(r.LeftFenced, func(f engine.LeftFenced) string { return f.Host })}
	_, o.Stopped = stoppedBy(r)
	if r.Lost != nil {
		o.Lost = r.Lost.Error()
	}
	m := message{Type: "apply_summary", Outcome: &o, Message: fmt.Sprintf("%s done, converged", count(r.Done, "action"))}
	if r.After != nil {
		m.Summary = new(r.After.Summarise())
		o.Deferred = m.Summary.Deferred
	}
	switch {
	case !r.Finished():
		m.Level, m.Message = "error", fmt.Sprintf("%s done, did not converge", count(r.Done, "action"))
	case o.Deferred > 0:
		m.Message = fmt.Sprintf("%s done, %s deferred", count(r.Done, "action"), count(o.Deferred, "host"))
	}
	s.write(m)
}

// Waiting prints that another one's lock is waited for.
func (s *Stream) Waiting(line string) { s.write(message{Type: "lock_waiting", Message: line}) }

// Approved prints whose approval an apply uses.
func (s *Stream) Approved(name string, f wire.PlanFile, now *plan.Plan, doneBy func(plan.Action) string) {
	s.write(message{Type: "plan_file", Message: strings.Join(approved(name, f, now, doneBy), " ")})
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
