package app

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// recording is the record of a run that is under way.
type recording struct {
	writer *runlog.Writer
	mu     sync.Mutex
	left   []plan.Action // that were not started
}

// underRecord performs a plan and keeps a record of it. Where none can be kept,
// nothing is done: what changes machines must be told afterwards.
func (s *session) underRecord(ctx context.Context, p *plan.Plan, do func() (engine.Result, error)) error {
	rec, err := s.beginRecord(ctx, p)
	if err != nil {
		return err
	}
	s.recording = rec
	s.env.record.Store(rec.writer)
	unwatch := context.AfterFunc(s.engine.Stop, func() {
		if s.env.stop.Err() == nil {
			s.env.announce(s.env.errText(), "Stopping: "+s.stopped()+". What runs is finished, nothing new is started.")
		}
		s.engine.Between(func() {
			_ = rec.writer.Write(runlog.Entry{Event: engine.Event{Type: runlog.TypeStop, Text: s.stopped()}}) // the end tells of it too
		})
		s.env.logged(slog.LevelInfo, "stop", "why", s.stopped())
	})
	r, err := do()
	if err == nil {
		err = result(false, r.Converged())
	}
	unwatch()
	if r.Interrupted {
		s.env.outText().Remaining(rec.left, s.env.resume())
	}
	code, shown := s.env.verdict(ctx, err)
	end := runlog.End{Exit: code, Outcome: outcomeOf(code), Stopped: s.stopped(), Done: r.Done, Failed: len(r.Failures),
		NotStarted: r.NotStarted, NotWaited: r.NotWaited}
	if shown != nil {
		end.Error = shown.Error()
	}
	if r.After != nil {
		end.Left = r.After.Summarise().Changes()
	}
	if werr := rec.writer.End(end); werr != nil && err == nil {
		err = fmt.Errorf("everything was done, and the record of it could not be ended: %w", werr)
	}
	return err
}

func outcomeOf(code int) runlog.Outcome {
	switch code {
	case ExitDone:
		return runlog.Converged
	case ExitIncomplete:
		return runlog.Incomplete
	case ExitLeft:
		return runlog.LeftAtOnce
	}
	return runlog.Errored
}

func (s *session) beginRecord(ctx context.Context, p *plan.Plan) (*recording, error) {
	folder := s.env.runsDir()
	w, err := runlog.Create(runlog.Options{Folder: folder, Scrub: s.env.secrets.Scrub, Short: s.env.secrets.Short, Left: ctx}, s.head())
	if err != nil {
		return nil, err
	}
	if err := runlog.Prune(folder, runlog.Kept); err != nil {
		s.env.logged(slog.LevelWarn, "old records stay", "error", err)
	}
	plan := runlog.PlanOf(p)
	if err := w.Write(runlog.Entry{Event: engine.Event{Type: runlog.TypePlan}, Plan: &plan}); err != nil {
		return nil, fmt.Errorf("keep a record of the run: %w; nothing was changed", err)
	}
	return &recording{writer: w}, nil
}

// head says whose run this is.
func (s *session) head() runlog.Head {
	env := s.env
	h := runlog.Head{ID: env.this.ID, Who: env.this.Who, Epoch: env.this.Epoch, Started: env.this.Started, Command: env.Command, Arguments: env.words(),
		Version: fleet.Version, Configuration: s.config.Name, Environment: s.config.Environment, ConfigHash: s.config.Hash(),
		Selection: runlog.Selection{On: s.On, Exclude: s.Exclude, Steps: s.Steps, Rollback: s.Rollback},
		Limits:    runlog.Limits{Hosts: env.Parallelism, ConnectionStarts: env.Starts, Uploads: hosts.DefaultUploads, Fleets: []runlog.FleetLimits{}}}
	if at, ok := s.engine.Stop.Deadline(); ok {
		h.Limits.Deadline = at.UTC().Format(time.RFC3339)
	}
	for _, f := range s.config.Fleets {
		r := f.Rollout
		h.Limits.Fleets = append(h.Limits.Fleets, runlog.FleetLimits{Fleet: f.Name, MaxUnavailable: share(r.MaxUnavailable), Canary: r.Canary,
			Soak: r.Soak.String(), FailureBudget: r.FailureBudget, MinReady: r.MinReady})
	}
	if env.log != nil {
		h.Log, _ = env.log.Path() // the end of the command says why there is none
	}
	return h
}

func share(s fleet.Share) string {
	if s.Percent > 0 {
		return fmt.Sprintf("%d%%", s.Percent)
	}
	return fmt.Sprint(s.Count)
}

// resume is the command line that goes on where this one stopped.
func (env *Env) resume() string {
	words := []string{"macfleet"}
	for _, w := range env.Line {
		words = append(words, shellWord(w))
	}
	return strings.Join(words, " ")
}

// shellWord writes a word so that a shell takes it for one.
func shellWord(w string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=,.:/@%+", r)
	}
	if w != "" && !strings.ContainsFunc(w, func(r rune) bool { return !plain(r) }) {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// event enters an event in the log, the record, the cost and what a program reads. A
// record that takes no more ends the run: nothing happens that it does not tell.
func (s *session) event(e engine.Event) {
	s.cost.Phases.Event(e)
	s.env.logEvent(e)
	if r := s.recording; r != nil {
		if e.Type == engine.Skipped {
			r.mu.Lock()
			r.left = append(r.left, *e.Action)
			r.mu.Unlock()
		}
		if err := r.writer.Event(e); err != nil {
			s.halt(fmt.Errorf("%w: %w", engine.ErrUnrecorded, err))
		}
	}
	s.env.stream.Event(e)
}

// tellBroken says that the last run of this configuration did not come to its end.
func (s *session) tellBroken() {
	folder := s.env.runsDir()
	b, err := runlog.Newest(folder, s.config.Name, s.config.Environment)
	if err != nil || b.Path == "" || !slices.Contains([]runlog.Outcome{runlog.BrokeOff, runlog.LeftAtOnce}, b.Outcome) {
		return
	}
	r, err := runlog.Read(b.Path)
	if err != nil {
		s.env.warn(fmt.Sprintf("the last run, %s of %s, broke off, and its record cannot be read: %v", b.Head.ID, b.Head.Who, err))
		return
	}
	at := r.Entries[len(r.Entries)-1].Time.Format("2006-01-02 15:04 MST")
	during := "between two actions"
	if open := r.Open(); len(open) > 0 {
		during = "during " + opened(open)
	}
	how := "broke off"
	if b.Outcome == runlog.LeftAtOnce {
		how = "was left"
	}
	s.env.warn(fmt.Sprintf("the run %s of %s %s at %s, %s; what it left is looked at now, and apply goes on from there (macfleet show %s)",
		r.Head.ID, r.Head.Who, how, at, during, r.Head.ID))
}

// tellWithin bounds how long an action waits until its Node's event is written.
const tellWithin = 5 * time.Second

// tellNode writes an event onto the Node of a host that is about to be disturbed. One
// that cannot be written, as in a cluster that an older macfleet prepared, holds
// nothing up.
func (s *session) tellNode(ctx context.Context, n inventory.Node, a plan.Action) {
	ctx, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	x := runlog.ActionOf(a)
	err := s.kubernetes.TellNode(ctx, n, kubernetes.NodeEvent{Reason: "Macfleet", Run: s.env.this, At: time.Now(),
		Text: fmt.Sprintf("%s (%s) begins: %s", x.Label(), x.Reason, x.Disruption)})
	if err != nil {
		s.env.logged(slog.LevelWarn, "the Node was not told", "host", n.Name, "error", err)
	}
}
