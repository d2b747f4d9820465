package view

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// Stream prints an apply as JSON, one object a line. Readers must show at least
// "@message" of a type they do not know. A nil Stream is one that nobody reads.
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
	Stopped   string     `json:"stopped,omitempty"`
	Lost      string     `json:"lock_lost,omitempty"` // why the lock was lost, and the run stopped
	Converged bool       `json:"converged"`
	Left      []leftHost `json:"left,omitempty"`
	// Closed are the hosts whose Nodes stay closed to new Pods.
	Closed []string `json:"closed,omitempty"`
}

// leftHost is a host that a limit of its fleet kept from starting.
type leftHost struct {
	Host   string `json:"host"`
	Fleet  string `json:"fleet"`
	Reason string `json:"reason"`
}

// NewStream returns a stream and prints its first line.
func NewStream(out io.Writer, now func() time.Time) *Stream {
	s := &Stream{enc: json.NewEncoder(out), now: now}
	s.enc.SetEscapeHTML(false)
	s.write(message{Level: "info", Type: "version", Message: "macfleet " + fleet.Version, Version: fleet.Version, Format: wire.Format})
	return s
}

// write prints one line. A reader that went away ends the process elsewhere.
func (s *Stream) write(m message) {
	if s == nil {
		return
	}
	m.Timestamp = s.now().UTC()
	_ = s.enc.Encode(m)
}

// Plan prints every action that is planned, what can't be done, and the counts.
func (s *Stream) Plan(p *plan.Plan) {
	if s == nil {
		return // a big plan takes a while to encode
	}
	d := wire.PlanOf(p)
	for i := range d.ResourceChanges {
		c := &d.ResourceChanges[i]
		m := message{Level: "info", Type: "planned_change", Message: c.Address + ": " + c.ActionReason.String(), Change: c}
		if c.Refused != nil {
			m.Level, m.Type = "warn", "refused_change"
		}
		s.write(m)
	}
	for _, group := range [][]wire.TroubledHost{d.UnknownHosts, d.RefusedHosts} {
		for i := range group {
			h := &group[i]
			s.write(message{Level: "warn", Type: "host_trouble", Message: h.Name + ": " + h.Code.String() + ": " + h.Text, Host: h})
		}
	}
	s.write(message{Level: "info", Type: "change_summary", Message: summary(p.Summarise()), Summary: &d.Summary})
}

// Event prints an action's start and end, and each host that was looked at.
func (s *Stream) Event(e engine.Event) {
	m := message{Level: "info", Message: EventLine(e)}
	switch e.Type {
	case engine.Started:
		m.Type = "apply_start"
	case engine.Done:
		m.Type = "apply_complete"
	case engine.Failed:
		m.Level, m.Type = "error", "apply_errored"
	case engine.Skipped:
		m.Level, m.Type = "warn", "apply_skipped"
	case engine.Waiting:
		m.Type = "node_waiting"
	case engine.NodeReady:
		m.Type = "node_ready"
	case engine.Sending:
		m.Type = "artifact_progress"
		m.Hook = &hook{Address: wire.HostAddress(e.Host), Host: e.Host}
		m.Progress = &progressed{Artifact: e.Artifact, Bytes: e.Bytes, Size: e.Size}
		s.write(m)
		return
	case engine.HostBegun, engine.HostEnded:
		m.Type = map[engine.EventType]string{engine.HostBegun: "host_start", engine.HostEnded: "host_complete"}[e.Type]
		m.Hook = &hook{Address: wire.HostAddress(e.Host), Host: e.Host, Lane: e.Lane}
		s.write(m)
		return
	case engine.Closing, engine.Evicting, engine.Opened:
		m.Type = map[engine.EventType]string{engine.Closing: "node_closing", engine.Evicting: "pod_evicting", engine.Opened: "node_opened"}[e.Type]
		m.Hook = &hook{Address: wire.HostAddress(e.Host), Host: e.Host, Pod: e.Pod}
		s.write(m)
		return
	case engine.Soaking:
		m.Type = "canary_soak"
		s.write(m)
		return
	case engine.Observing:
		m.Type, m.Hosts = "observe_start", e.Count
		s.write(m)
		return
	case engine.Observed:
		m.Type = "observe_complete"
		m.Hook = &hook{Address: wire.HostAddress(e.Host), Host: e.Host, Seconds: e.Elapsed.Seconds()}
		if e.Trouble != nil {
			h := wire.Troubled(e.Host, "", *e.Trouble)
			m.Level, m.Host = "warn", &h
		}
		s.write(m)
		return
	default:
		return
	}
	c := wire.ActionOf(*e.Action)
	m.Hook = &hook{Address: c.Address, Host: c.Host, Step: string(c.Step), Action: string(c.Kind), Seconds: e.Elapsed.Seconds()}
	if e.Err != nil {
		m.Hook.Error = e.Err.Error()
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
	o := outcome{Done: r.Done, Failed: len(r.Failures), NotStarted: r.NotStarted, NotWaited: r.NotWaited, Interrupted: r.Interrupted, Converged: r.Converged()}
	for _, l := range r.Left {
		o.Left = append(o.Left, leftHost{l.Host, l.Fleet, string(l.Why)})
	}
	for _, c := range r.Closed {
		o.Closed = append(o.Closed, c.Host)
	}
	_, o.Stopped = stoppedBy(r)
	if r.Lost != nil {
		o.Lost = r.Lost.Error()
	}
	m := message{Level: "info", Type: "apply_summary", Outcome: &o, Message: fmt.Sprintf("%s done, converged", count(r.Done, "action"))}
	if !o.Converged {
		m.Level, m.Message = "error", fmt.Sprintf("%s done, did not converge", count(r.Done, "action"))
	}
	if r.After != nil {
		c := r.After.Summarise()
		m.Summary = &c
	}
	s.write(m)
}

// Error prints an error that ended the command. It is the last line.
func (s *Stream) Error(err error) {
	s.diagnostic(Diagnostic{Severity: "error", Summary: err.Error()})
}

// Diagnostics prints the faults of a configuration, a line each.
func (s *Stream) Diagnostics(all []Diagnostic) {
	for _, d := range all {
		s.diagnostic(d)
	}
}

func (s *Stream) diagnostic(d Diagnostic) {
	m := message{Level: "error", Type: "diagnostic", Message: d.Summary, Fault: &d}
	if d.Severity != "error" {
		m.Level = "warn"
	}
	if d.Detail != "" {
		m.Message += ": " + d.Detail
	}
	s.write(m)
}
