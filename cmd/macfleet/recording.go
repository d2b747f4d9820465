package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/plan"
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
	if s.halt == nil {
		s.limit(0)
	}
	r, err := s.beginRecord(ctx, p)
	if err != nil {
		return err
	}
	s.recording = r
	s.app.record.Store(r.writer)
	unwatch := context.AfterFunc(s.engine.Stop, func() {
		if s.app.stop.Err() == nil {
			s.app.announce(s.app.errText(), "Stopping: "+s.stopped()+". What runs is finished, nothing new is started.")
		}
		s.engine.Between(func() {
			_ = r.writer.Write(runlog.Entry{Type: runlog.TypeStop, Text: s.stopped()}) // the end tells of it too
		})
		s.app.logged(slog.LevelInfo, "stop", "why", s.stopped())
	})
	result, err := do()
	err = outcome(result, err)
	unwatch()
	if result.Interrupted && s.app.stream == nil {
		s.app.outText().Remaining(r.left, s.app.resume())
	}
	code, shown := s.app.verdict(ctx, err)
	end := runlog.End{Exit: code, Outcome: outcomeOf(code), Stopped: s.stopped(), Done: result.Done, Failed: len(result.Failures),
		NotStarted: result.NotStarted, NotWaited: result.NotWaited}
	if shown != nil {
		end.Error = shown.Error()
	}
	if result.After != nil {
		end.Left = result.After.Summarise().Changes()
	}
	if werr := r.writer.End(end); werr != nil && err == nil {
		err = fmt.Errorf("everything was done, and the record of it could not be ended: %w", werr)
	}
	return err
}

func outcomeOf(code int) runlog.Outcome {
	switch code {
	case exitDone:
		return runlog.Converged
	case exitIncomplete:
		return runlog.Incomplete
	case exitLeft:
		return runlog.LeftAtOnce
	}
	return runlog.Errored
}

func (s *session) beginRecord(ctx context.Context, p *plan.Plan) (*recording, error) {
	folder := s.app.runsDir()
	w, err := runlog.Create(runlog.Options{Folder: folder, Scrub: s.app.secrets.Scrub, Short: s.app.secrets.Short, Left: ctx}, s.head())
	if err != nil {
		return nil, err
	}
	if err := runlog.Prune(folder, runlog.Kept); err != nil {
		s.app.logged(slog.LevelWarn, "old records stay", "error", err)
	}
	plan := runlog.PlanOf(p)
	if err := w.Write(runlog.Entry{Type: runlog.TypePlan, Plan: &plan}); err != nil {
		return nil, fmt.Errorf("keep a record of the run: %w; nothing was changed", err)
	}
	return &recording{writer: w}, nil
}

// head says whose run this is.
func (s *session) head() runlog.Head {
	a := s.app
	h := runlog.Head{ID: a.this.ID, Who: a.this.Who, Epoch: a.this.Epoch, Started: a.this.Started, Command: a.command, Arguments: given(a.given),
		Version: fleet.Version, Configuration: s.config.Name, Environment: s.config.Environment, ConfigHash: s.config.Hash(),
		Selection: runlog.Selection{On: a.on, Exclude: a.exclude, Steps: a.steps, Rollback: a.rollback},
		Limits:    runlog.Limits{Hosts: a.parallelism, ConnectionStarts: a.starts, Uploads: hosts.DefaultUploads, Fleets: []runlog.FleetLimits{}}}
	if at, ok := s.engine.Stop.Deadline(); ok {
		h.Limits.Deadline = at.UTC().Format(time.RFC3339)
	}
	for _, f := range s.config.Fleets {
		r := f.Rollout
		h.Limits.Fleets = append(h.Limits.Fleets, runlog.FleetLimits{Fleet: f.Name, MaxUnavailable: share(r.MaxUnavailable), Canary: r.Canary,
			Soak: r.Soak.String(), FailureBudget: r.FailureBudget, MinReady: r.MinReady})
	}
	if a.log != nil {
		h.Log, _ = a.log.Path() // the end of the command says why there is none
	}
	return h
}

func share(s fleet.Share) string {
	if s.Percent > 0 {
		return fmt.Sprintf("%d%%", s.Percent)
	}
	return fmt.Sprint(s.Count)
}

// given returns the words that were given, and the flags, by the command line or the
// environment. Of a variable it says the name: a value may be anybody's.
func given(flags *pflag.FlagSet) []string {
	out := []string{}
	if flags == nil {
		return out
	}
	out = append(out, flags.Args()...)
	flags.Visit(func(f *pflag.Flag) {
		switch v, many := f.Value.(pflag.SliceValue); {
		case f.Name == "var":
			for _, text := range v.GetSlice() {
				name, _, _ := strings.Cut(text, "=")
				out = append(out, "--var="+name)
			}
		case many:
			for _, text := range v.GetSlice() {
				out = append(out, "--"+f.Name+"="+text)
			}
		default:
			out = append(out, "--"+f.Name+"="+f.Value.String())
		}
	})
	return out
}

// resume is the command line that goes on where this one stopped.
func (a *app) resume() string {
	words := []string{"macfleet"}
	for _, w := range a.args {
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

// event enters an event. A record that takes no more ends the run: nothing happens
// that it does not tell.
func (s *session) event(e engine.Event) {
	s.app.logEvent(e)
	if into := s.app.into; into != nil {
		into.Event(e)
	}
	r := s.recording
	if r == nil {
		return
	}
	if e.Type == engine.Skipped {
		r.mu.Lock()
		r.left = append(r.left, *e.Action)
		r.mu.Unlock()
	}
	if err := r.writer.Event(e); err != nil {
		s.halt(&engine.UnrecordedError{Err: err})
	}
}

// tellBroken says that the last run of this configuration did not come to its end.
func (s *session) tellBroken() {
	folder := s.app.runsDir()
	b, err := runlog.Newest(folder, s.config.Name, s.config.Environment)
	if err != nil || b.Path == "" || !slices.Contains([]runlog.Outcome{runlog.BrokeOff, runlog.LeftAtOnce}, b.Outcome) {
		return
	}
	r, err := runlog.Read(b.Path)
	if err != nil {
		s.app.warn(fmt.Sprintf("the last run, %s of %s, broke off, and its record cannot be read: %v", b.Head.ID, b.Head.Who, err))
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
	s.app.warn(fmt.Sprintf("the run %s of %s %s at %s, %s; what it left is looked at now, and apply goes on from there (macfleet show %s)",
		r.Head.ID, r.Head.Who, how, at, during, r.Head.ID))
}
