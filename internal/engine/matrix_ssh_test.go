package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/runcheck"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/internal/worldtest"
	"github.com/macfleet/macfleet/plan"
)

// tally counts the points of the matrix, and what the plans after them say.
type tally struct {
	points atomic.Int64
	parts  atomic.Int64 // scenarios with a fault
	left   atomic.Int64 // cordons that runs left behind
	mu     sync.Mutex
	said   map[string]map[string]int // by fault: what the next plan says of the host, and how often
}

func (c *tally) add(fault string, said []string) {
	c.points.Add(1)
	text := strings.Join(said, ", ")
	if text == "" {
		text = "nothing is left"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.said[fault] == nil {
		c.said[fault] = make(map[string]int)
	}
	c.said[fault][text]++
}

// report prints what was tried.
func (c *tally) report(t *testing.T) {
	var out strings.Builder
	for _, fault := range slices.Sorted(maps.Keys(c.said)) {
		for _, text := range slices.Sorted(maps.Keys(c.said[fault])) {
			fmt.Fprintf(&out, "%5d  %s: %s\n", c.said[fault][text], fault, text)
		}
	}
	t.Logf("%d points; the next plan says:\n%s", c.points.Load(), out.String())
}

// sampled is how many points of the fault matrix are tried over SSH, where not all are.
const sampled = 150

// TestFaultMatrixOverSSH lets each fault hit a roll on a Mac at places where it can: at
// words to the host, at calls of a provider, at events of the run record. The run ends;
// what it kept of itself keeps its limits; the next plan is complete; the next apply
// converges, and then everything is as after a run without a fault, once. The places are
// drawn by -seed; with -all it is each place.
func TestFaultMatrixOverSSH(t *testing.T) {
	t.Parallel()
	declares(t, 9, "three applies prepare each roll")
	count := &tally{said: make(map[string]map[string]int)}
	t.Cleanup(func() { count.report(t) })
	random := rand.New(rand.NewPCG(drawn(), 0))
	t.Logf("-seed %d", drawn())
	scenarios := slices.Sorted(maps.Keys(rollsOf()))
	if plain() {
		scenarios = scenarios[len(scenarios)-1:] // of Tart, which closes the Node
		t.Log("one roll and one fault of each kind are tried (MACFLEET_TEST_SHARD=0 to 6 draws 150, -all tries all)")
	}
	for _, scenario := range scenarios {
		configure := rollsOf()[scenario]
		before, want := rolled(t, prepared(t, 3, nodes(1)), configure)
		if *all {
			for name := range faults() {
				parallel(t, scenario+", "+name, func(t *testing.T) {
					declares(t, 1000, "one Mac is rolled to and fro")
					r := roller{arena: arenaIn(t, worldtest.Copied(t, before)), configure: configure, want: want, count: count}
					for n := 0; r.point(t, name, n) && !faults()[name].once && !t.Failed(); n++ {
					}
				})
			}
			continue
		}
		draw := rand.New(rand.NewPCG(random.Uint64(), 0))
		parallel(t, scenario, func(t *testing.T) {
			r := roller{arena: arenaIn(t, worldtest.Copied(t, before)), configure: configure, want: want, count: count}
			r.sample(t, draw)
		})
	}
}

// roller rolls to and fro in an arena.
type roller struct {
	*arena
	configure func(*fleet.Spec, bool)
	want      map[bool][]string
	count     *tally
	second    bool
}

// other configures what the arena does not have now.
func (r *roller) other() {
	r.epoch = max(r.epoch, rolledEpochs)
	r.configure(r.spec, r.second)
	r.second = !r.second
}

// point rolls once, with a fault at the nth place, and reports whether it fell.
func (r *roller) point(t *testing.T, name string, n int) bool {
	t.Helper()
	r.other()
	return r.arena.point(t, r.count, name, n, faults()[name], r.want[!r.second])
}

// sample tries this scenario's part of the points: each fault once, and then some more, at
// drawn places of as many as a roll has that nothing hits.
func (r *roller) sample(t *testing.T, draw *rand.Rand) {
	t.Helper()
	declares(t, 1000, "one Mac is rolled to and fro")
	r.faultless(t)
	names := slices.Sorted(maps.Keys(faults()))
	points := sampled / len(rollsOf())
	draw.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	if plain() || testing.Short() { // under the race detector
		names = oneOfAKind(names)
		points = len(names)
	}
	for i := range points {
		name := names[i%len(names)]
		r.point(t, name, draw.IntN(max(1, r.places[faults()[name].at])))
		if t.Failed() {
			t.Logf("again: -run '%s' -seed %d", t.Name(), drawn())
			return
		}
	}
}

// oneOfAKind keeps the first name of each kind of fault, which is its part before the colon.
func oneOfAKind(names []string) []string {
	seen := make(map[string]bool)
	return slices.DeleteFunc(names, func(name string) bool {
		kind, _, _ := strings.Cut(name, ":")
		had := seen[kind]
		seen[kind] = true
		return had
	})
}

// faultless rolls once and counts the places.
func (r *roller) faultless(t *testing.T) {
	t.Helper()
	r.other()
	r.asRun()
	p := planned(t, r.engine)
	r.records(t, p)
	r.mu.Lock()
	r.seen = make(map[place]int)
	r.mu.Unlock()
	if done := performed(t, r.engine, p); !done.Converged() {
		t.Fatal(whatFailed(done))
	}
	r.mu.Lock()
	r.places, r.seen = r.seen, nil
	r.mu.Unlock()
}

// rollsOf are what is rolled to and fro.
func rollsOf() map[string]func(s *fleet.Spec, second bool) {
	return map[string]func(s *fleet.Spec, second bool){
		"flags": func(s *fleet.Spec, second bool) {
			pods := map[bool]int{false: 3, true: 4}[second]
			s.TartKubelet.MaxPods = &pods
		},
		"kubelet": func(s *fleet.Spec, second bool) {
			version := map[bool]string{false: "0.4.0", true: "0.5.0"}[second]
			s.TartKubelet.Artifact = sample("kubelet", version, "tart-kubelet-"+version)
		},
		"tart": func(s *fleet.Spec, second bool) { // below a Node that is closed and opened for it
			version := map[bool]string{false: "2.32.1", true: "2.33.0"}[second]
			s.Tart.Artifact = sample("tart", version, "tart-"+version+".tar.gz")
		},
	}
}

// rolledEpochs is more than the runs that rolled has made.
const rolledEpochs = 100

// rolled rolls a world to and fro, and returns it with the state after each.
func rolled(t *testing.T, dir string, configure func(*fleet.Spec, bool)) (string, map[bool][]string) {
	t.Helper()
	a := arenaIn(t, dir)
	want := make(map[bool][]string)
	for i := range 3 { // the first knows no version from before
		second := i%2 == 0
		configure(a.spec, second)
		a.asRun()
		converges(t, a.engine)
		want[second] = a.lasting(t)
	}
	a.close()
	must(t, a.world.Close())
	return dir, want
}

// lasting is what remains, but for the notes of which runs entered the host.
func (a *arena) lasting(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(a.remains(t), func(line string) bool { return strings.Contains(line, "etc/macfleet/runs") })
}

// point rolls with a fault at the nth place, and again without. It reports whether the
// fault fell.
func (a *arena) point(t *testing.T, count *tally, name string, n int, f fault, want []string) bool {
	t.Helper()
	a.later(t)
	a.asRun()
	p := planned(t, a.engine)
	record := a.records(t, p)
	ctx, die := context.WithCancelCause(t.Context())
	defer die(nil)
	a.arm(n, f, die)
	r, err := applying(t, ctx, a.engine, p)
	fell := a.disarm(t)
	broke := errors.Is(err, errDied)
	if !broke {
		record.end(t, r)
	}
	if !fell || f.once { // a clock that is wrong keeps no run from converging
		if err != nil || !r.Converged() {
			t.Errorf("%s after %d (fell: %t): %v, failures %q", name, n, fell, err, whatFailed(r))
		}
	}
	if !fell {
		return false
	}
	record.check(t, n, broke)
	next := a.asRun()
	p = planned(t, a.engine)
	said := codesOf(p, p.Hosts[0].Name)
	count.add(name, said)
	if f.repair != nil {
		f.repair(t, a)
		p = planned(t, a.engine)
	}
	if s := p.Summarise(); s.Unknown+s.Unread+s.Refused > 0 {
		t.Errorf("%s after %d: the next plan is not complete: %q", name, n, said)
	}
	r = performed(t, a.engine, p)
	if !r.Converged() {
		t.Errorf("%s after %d: run %s leaves %q, failures %q, lost %v", name, n, next.ID, codesOf(r.After, r.After.Hosts[0].Name), whatFailed(r), r.Lost)
	}
	if got := a.lasting(t); !slices.Equal(got, want) {
		t.Errorf("%s after %d: (-want +got)\n%s", name, n, cmp.Diff(want, got))
	}
	a.freshProcess(t, n)
	isOpen(t, a.engine, a.name, 0)
	return true
}

// asRun begins another run, with its own client, as another process has it.
func (a *arena) asRun() plan.Run {
	a.epoch++
	a.engine.Run = named(fmt.Sprintf("run%d", a.epoch), a.epoch)
	a.engine.Hosts, a.engine.Guard, a.engine.Now, a.engine.Stop = a.patient, nil, a.now, context.Background()
	a.ahead.Store(0)
	a.engine.Emit = func(engine.Event) {}
	return a.engine.Run
}

// now is the clock here.
func (a *arena) now() time.Time { return time.Now().Add(time.Duration(a.ahead.Load())) }

// records lets the events of the next apply be written to a record.
func (a *arena) records(t *testing.T, p *plan.Plan) *recorded {
	t.Helper()
	stop, halt := context.WithCancelCause(t.Context())
	t.Cleanup(func() { halt(nil) })
	a.engine.Stop, a.halt = stop, halt
	return recordOf(t, a.engine, p, func(before bool) bool {
		if a.dead.Load() {
			return true
		}
		f, falls := a.hits(map[bool]place{true: atEvent, false: afterEvent}[before])
		return falls && f.instead
	})
}

// recorded is the record of a point's run.
type recorded struct {
	writer *runlog.Writer
	done   int
}

// recordOf lets the events of an engine's next apply be written to a record. hits is
// called before and after each; if it returns true before, the event is not written.
func recordOf(t *testing.T, e *engine.Engine, p *plan.Plan, hits func(before bool) bool) *recorded {
	t.Helper()
	limits := runlog.Limits{Hosts: e.Parallelism, Uploads: hosts.DefaultUploads}
	for _, f := range e.Config.Fleets {
		share := fmt.Sprint(max(1, f.Rollout.MaxUnavailable.Count))
		if f.Rollout.MaxUnavailable.Percent > 0 {
			share = fmt.Sprintf("%d%%", f.Rollout.MaxUnavailable.Percent)
		}
		limits.Fleets = append(limits.Fleets, runlog.FleetLimits{Fleet: f.Name, MaxUnavailable: share, Canary: f.Rollout.Canary,
			Soak: f.Rollout.Soak.String(), FailureBudget: f.Rollout.FailureBudget, MinReady: f.Rollout.MinReady})
	}
	w, err := runlog.Create(runlog.Options{Folder: t.TempDir(), Scrub: func(s string) string { return s }},
		runlog.Head{ID: e.Run.ID, Started: time.Now(), Command: "apply", Limits: limits})
	must(t, err)
	short := runlog.PlanOf(p)
	must(t, w.Write(runlog.Entry{Event: engine.Event{Type: runlog.TypePlan}, Plan: &short}))
	rec := &recorded{writer: w}
	e.Emit = func(ev engine.Event) {
		if hits(true) {
			return // it died before the line was written, or the line could not be
		}
		if err := w.Event(ev); err != nil {
			t.Error(err)
		}
		if ev.Type == engine.Done {
			rec.done++
		}
		hits(false)
	}
	return rec
}

// end ends the record of a run that finished.
func (r *recorded) end(t *testing.T, result engine.Result) {
	t.Helper()
	end := runlog.End{Outcome: runlog.Incomplete, Done: r.done}
	if result.Interrupted {
		end.Stopped = "stopped by the test"
	}
	if err := r.writer.End(end, engine.Result{}); err != nil {
		t.Error(err)
	}
	if result.Done != r.done {
		t.Errorf("%d actions were done, but %d events report it", result.Done, r.done)
	}
}

// check reads only the record.
func (r *recorded) check(t *testing.T, n int, broke bool) {
	t.Helper()
	read, err := runlog.Read(r.writer.Path())
	must(t, err)
	for _, v := range runcheck.Violations(read) {
		t.Errorf("after %d: %s", n, v)
	}
	if broke == (read.End != nil) {
		t.Errorf("after %d: it was interrupted (%t), and its record ends with %+v", n, broke, read.End)
	}
}

var (
	errDied = errors.New("the process died")
	errFull = fmt.Errorf("%w: %w", engine.ErrUnrecorded, syscall.ENOSPC)
)

// whatFailed is what happened to actions.
func whatFailed(r engine.Result) []string {
	var out []string
	for _, f := range r.Failures {
		out = append(out, fmt.Sprintf("%s %s: %v", f.Action.Kind, f.Action.Step, f.Err))
	}
	return out
}
