package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/rollout"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/transport"
)

// underRecord performs a plan and keeps a record of it. Where none can be kept, nothing is done.
func (s *session) underRecord(ctx context.Context, p *plan.Plan, do func() (engine.Result, error)) error {
	w, err := s.beginRecord(ctx, p)
	if err != nil {
		return err
	}
	s.env.record.Store(w)
	unwatch := context.AfterFunc(s.engine.Stop, func() {
		if s.env.stop.Err() == nil {
			s.env.announce(s.env.errText(), "Stopping: "+s.stopped()+". What runs is finished, nothing new is started.")
		}
		s.engine.Between(func() {
			_ = w.Write(runlog.Entry{Event: engine.Event{Type: runlog.TypeStop, Text: s.stopped()}}) // the last entry names it too
		})
		s.env.logged(slog.LevelInfo, "stop", "why", s.stopped())
	})
	r, err := do()
	if err == nil {
		err = result(false, r.Finished() && (r.Converged() || !s.failOnDeferred))
	}
	unwatch()
	if r.Interrupted {
		s.env.outText().Remaining(s.left, p.Names(), resumeLine(s.env.Line))
	}
	code, shown := s.env.verdict(ctx, err)
	end := runlog.End{Exit: code, Outcome: cmp.Or(outcomes[code], runlog.Errored), Stopped: s.stopped(), Done: r.Done, Failed: len(r.Failures),
		NotStarted: r.NotStarted, NotWaited: r.NotWaited}
	if shown != nil {
		end.Error = shown.Error()
	}
	if r.After != nil {
		now := r.After.Summarise()
		if end.Left, end.Deferred = now.Changes(), now.Deferred; end.Deferred > 0 && end.Outcome == runlog.Converged {
			end.Outcome = runlog.Deferred
		}
	}
	if werr := w.End(end, r); werr != nil && err == nil {
		err = fmt.Errorf("the run finished, but its record could not be completed: %w", werr)
	}
	return err
}

var outcomes = map[int]runlog.Outcome{ExitDone: runlog.Converged, ExitIncomplete: runlog.Incomplete, ExitLeft: runlog.LeftAtOnce}

func (s *session) beginRecord(ctx context.Context, p *plan.Plan) (*runlog.Writer, error) {
	folder := s.env.kept("runs")
	w, err := runlog.Create(runlog.Options{Folder: folder, Scrub: s.env.secrets.Scrub, Short: s.env.secrets.Short, Left: ctx}, s.head())
	if err != nil {
		return nil, err
	}
	if err := runlog.Prune(folder, runlog.Kept); err != nil {
		s.env.logged(slog.LevelWarn, "old records were not removed", "error", err)
	}
	plan := runlog.PlanOf(p)
	if err := w.Write(runlog.Entry{Event: engine.Event{Type: runlog.TypePlan}, Plan: &plan}); err != nil {
		return nil, fmt.Errorf("keep a record of the run: %w; nothing was changed", err)
	}
	return w, nil
}

// head describes this run.
func (s *session) head() runlog.Head {
	env := s.env
	h := runlog.Head{ID: env.this.ID, Who: env.this.Who, Epoch: env.this.Epoch, Started: env.this.Started, Command: env.Command, Arguments: env.words(),
		Version: fleet.Version, Configuration: s.config.Name, Environment: s.config.Environment, Directory: s.env.directory(), Sandbox: env.Sandbox != "", ConfigHash: s.config.Hash(),
		Selection: runlog.Selection{On: s.On, Exclude: s.Exclude, Steps: s.Steps, Decisions: s.Decisions},
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

// outlook is what a forecast needs of this command, and of the runs of this configuration before it.
func (env *Env) outlook(owner fleet.Owner) engine.Outlook {
	simulated := env.Sandbox != ""
	return engine.Outlook{Parallelism: env.Parallelism, Timing: func() rollout.Timing {
		t := runlog.Timing(env.kept("runs"), func(h runlog.Head) bool {
			return h.Configuration == owner.Name && h.Environment == owner.Environment && h.Sandbox == simulated
		})
		t.Simulated = simulated
		return t
	}}
}

func share(s fleet.Share) string {
	if s.Percent > 0 {
		return fmt.Sprintf("%d%%", s.Percent)
	}
	return fmt.Sprint(s.Count)
}

var plainWord = regexp.MustCompile(`^[-\w=,.:/@%+]+$`)

// shellWord writes a word so that a shell takes it for one.
func shellWord(w string) string {
	if plainWord.MatchString(w) {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// resumeLine is the command that resumes a stopped run: the same without its deadline, which would stop it again.
func resumeLine(line []string) string {
	out := []string{"macfleet"}
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == "--deadline":
			i++ // its value
		case !strings.HasPrefix(line[i], "--deadline="):
			out = append(out, shellWord(line[i]))
		}
	}
	return strings.Join(out, " ")
}

// event enters an event in the log, the record, the cost and what a program reads. A
// record that cannot be written ends the run: nothing happens without a record.
func (s *session) event(e engine.Event) {
	s.cost.Phases.Event(e)
	s.env.logEvent(e)
	if w := s.env.record.Load(); w != nil {
		if e.Type == engine.Skipped {
			s.mu.Lock()
			s.left = append(s.left, *e.Action)
			s.mu.Unlock()
		}
		if err := w.Event(e); err != nil {
			s.halt(fmt.Errorf("%w: %w", engine.ErrUnrecorded, err))
		}
	}
	s.env.stream.Event(e)
}

// warnInterrupted warns that the last run of this configuration was killed or aborted.
func (s *session) warnInterrupted() {
	b, err := runlog.Newest(s.env.kept("runs"), s.config.Name, s.config.Environment)
	if err != nil || b.Path == "" || !slices.Contains([]runlog.Outcome{runlog.BrokeOff, runlog.LeftAtOnce}, b.Outcome()) {
		return
	}
	r, err := runlog.Read(b.Path)
	if err != nil {
		s.env.warn(fmt.Sprintf("the last run, %s of %s, was killed, and its record cannot be read: %v", b.Head.ID, b.Head.Who, err))
		return
	}
	at := r.Entries[len(r.Entries)-1].Time.Format("2006-01-02 15:04 MST")
	during := "between two actions"
	if open := r.Open(); len(open) > 0 {
		during = "during " + opened(open)
	}
	how := "was interrupted"
	if b.Outcome() == runlog.LeftAtOnce {
		how = "was aborted"
	}
	s.env.warn(fmt.Sprintf("run %s of %s %s at %s, %s; apply resumes from there (macfleet show %s)",
		r.Head.ID, r.Head.Who, how, at, during, r.Head.ID))
}

// nodeEventTimeout bounds how long an action waits until its Node's event is written.
const nodeEventTimeout = 5 * time.Second

// addNodeEvent writes an event onto the Node of a host that is about to be disrupted. Where that fails, as in a cluster that an
// older macfleet prepared, the run continues.
func (s *session) addNodeEvent(ctx context.Context, n inventory.Node, a plan.Action) {
	ctx, cancel := context.WithTimeout(ctx, nodeEventTimeout)
	defer cancel()
	x := runlog.ActionOf(a)
	err := s.kubernetes.AddNodeEvent(ctx, n, s.env.this, fmt.Sprintf("%s (%s) begins: %s", x.Label(), x.Reason, x.Disruption))
	if err != nil {
		s.env.logged(slog.LevelWarn, "no event was written on the Node", "host", n.Name, "error", err)
	}
}

// Runs lists the runs that were made from here.
func Runs(env *Env, asJSON bool) error {
	all, wrong, err := runlog.List(env.kept("runs"))
	if err != nil {
		return err
	}
	for _, err := range wrong {
		env.errText().Warn(err.Error())
	}
	return env.answer(asJSON, func(w io.Writer) error { return view.WriteRuns(w, all) }, func(t *view.Text) { t.Runs(all) })
}

// failedFrom narrows an apply to the hosts on which an earlier run left something.
func (env *Env) failedFrom(run string, sel *Selection) (*failedRun, error) {
	switch {
	case run == "":
		return nil, nil
	case len(sel.On)+len(sel.Exclude) > 0:
		return nil, errors.New("--failed-from selects the hosts itself: remove --on and --exclude")
	}
	var r runlog.Record
	path, err := runlog.Find(env.kept("runs"), run)
	if err == nil {
		r, err = runlog.Read(path)
	}
	if err != nil {
		return nil, fmt.Errorf("--failed-from: %w", err)
	}
	left := r.Unfinished()
	if len(left) == 0 {
		return nil, fmt.Errorf("--failed-from: run %s finished all its hosts%s; fix: macfleet plan shows what is left now", r.Head.ID, otherwiseLeft(r))
	}
	*sel = sel.and(left...)
	return &failedRun{r.Head, left}, nil
}

// otherwiseLeft says that a run which finished all its hosts was still incomplete, as with missing servers or work on the cluster.
func otherwiseLeft(r runlog.Record) string {
	if r.End == nil || r.End.Exit == ExitDone {
		return ""
	}
	return fmt.Sprintf(" (its exit code %d is not about a host)", r.End.Exit)
}

// failedRun is the run that --failed-from names.
type failedRun struct {
	runlog.Head
	hosts []string // on which it left something
}

// sayGone says which of those hosts no plan knows any more: released ones, and servers that others claimed.
func (s *session) sayGone(p *plan.Plan) {
	of := s.failed
	if of == nil {
		return
	}
	gone := slices.DeleteFunc(slices.Clone(of.hosts), func(name string) bool {
		return slices.ContainsFunc(p.Hosts, func(h plan.Host) bool { return h.Name == name }) ||
			slices.ContainsFunc(p.Lost, func(l plan.Lost) bool { return l.Name == name }) ||
			slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.Host == name })
	})
	if len(gone) > 0 {
		s.env.warn(fmt.Sprintf("these hosts of run %s no longer exist and are skipped: %s",
			of.ID, strings.Join(gone, ", ")))
	}
}

// Show shows a file where there is one of that name, by what is in it, else a run.
func Show(env *Env, o Form) error {
	name := env.Args[0]
	if err := o.check(env.Call); err != nil {
		return err
	}
	path := name
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		if path, err = runlog.Find(env.kept("runs"), name); err != nil {
			return fmt.Errorf("%w; there is no file %s either", err, name)
		}
	} else if !runlog.IsRecord(name) {
		return env.showPlanFile(name, o)
	}
	if o.Format == formatMarkdown {
		return errors.New("a run is shown as text or JSON: remove --format markdown")
	}
	r, err := runlog.Read(path)
	if err != nil {
		return fmt.Errorf("show the run: %w", err)
	}
	return env.answer(o.Format == formatJSON, func(w io.Writer) error { return view.WriteRun(w, r) }, func(t *view.Text) { t.Run(r) })
}

// kept is the folder of what is kept of runs and commands: runs or logs.
func (env *Env) kept(name string) string { return cmp.Or(env.RunsDir, env.localPath(name)) }

// openLog begins the log of this command. Only one that --log-file names
// ends the command when it cannot be written.
func (env *Env) openLog() error {
	if env.LogLevel == "off" {
		return nil
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(cmp.Or(env.LogLevel, "debug"))); err != nil {
		return fmt.Errorf("--log-level %s: write debug, info, warn, error or off", env.LogLevel)
	}
	path := env.LogFile
	if path == "" {
		folder := env.kept("logs")
		_ = runlog.PruneLogs(folder, env.Command, runlog.LogsKept-1) // old ones may stay
		path = filepath.Join(folder, runlog.LogName(env.this.Started, env.Command, env.this.ID))
	}
	env.log = runlog.NewLog(path, env.secrets.Scrub)
	env.logger = env.log.Logger(level)
	if env.LogFile != "" {
		if err := env.log.Open(); err != nil {
			return fmt.Errorf("--log-file: %w", err)
		}
	}
	env.logged(slog.LevelInfo, "begin", "who", env.this.Who, "run", env.this.ID, "command", env.Command, "arguments", strings.Join(env.words(), " "),
		"version", fleet.Version)
	return nil
}

// logged adds a line to the log, where there is one.
func (env *Env) logged(level slog.Level, text string, attrs ...any) {
	if env.logger != nil {
		env.logger.Log(env.stop, level, text, attrs...)
	}
}

// endLog ends the log and, where a command failed that a person reads, says where it is.
func (env *Env) endLog(code int, failed bool) {
	if env.log == nil {
		return
	}
	path, err := env.log.Path()
	if path == "" && err == nil {
		return // nothing was requested
	}
	env.logged(slog.LevelInfo, "end", "exit", code)
	err = errors.Join(err, env.log.Close())
	switch {
	case !failed || env.mute:
	case path == "":
		env.errText().Say(err.Error())
	default:
		env.errText().Say("Log: " + path)
	}
}

// reportRequests returns the function that logs the requests to a provider.
func (env *Env) reportRequests(provider string) func(transport.Request) {
	return func(r transport.Request) {
		attrs := []any{"provider", provider, "method", r.Method, "path", r.Path, "ms", r.Took.Milliseconds()}
		if r.ID != "" {
			attrs = append(attrs, "request_id", r.ID)
		}
		switch {
		case r.Err != nil:
			env.logged(slog.LevelWarn, "request", append(attrs, "error", r.Err)...)
		case r.Status >= 400 && r.Status != http.StatusNotFound: // requests for missing objects are normal
			env.logged(slog.LevelWarn, "request", append(attrs, "status", r.Status)...)
		default:
			env.logged(slog.LevelDebug, "request", append(attrs, "status", r.Status)...)
		}
	}
}

// reportWaiting returns the function that logs that a request to a provider is sent again after a pause, and why.
func (env *Env) reportWaiting(provider string) func(transport.Waiting) {
	return func(w transport.Waiting) {
		env.logged(slog.LevelWarn, "request is sent again", "provider", provider, "method", w.Method, "path", w.Path, "why", w.Why,
			"try", w.Try, "wait_ms", w.For.Milliseconds(), "request_id", w.RequestID)
	}
}

// logEvent notes an event of a run.
func (env *Env) logEvent(e engine.Event) {
	attrs := []any{"host", e.Host, "ms", int64(e.Seconds * 1000)}
	if e.Action != nil {
		x := runlog.ActionOf(*e.Action)
		attrs = append(attrs, "action", strings.TrimSpace(x.Kind+" "+x.Step+x.Object))
	}
	level := slog.LevelInfo
	switch {
	case e.Type == engine.Sending:
		return
	case e.Err != nil:
		level, attrs = slog.LevelError, append(attrs, "error", e.Err)
	case e.Trouble != nil:
		level, attrs = slog.LevelWarn, append(attrs, "code", e.Trouble.Code, "error", e.Trouble.Text)
	}
	env.logged(level, string(e.Type), attrs...)
}
