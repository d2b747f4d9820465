package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/agents"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
	"github.com/macfleet/macfleet/internal/worldtest"
)

// lineToGitHub is the way to GitHub, on which a run can be killed before or behind a request.
type lineToGitHub struct {
	next http.RoundTripper

	mu     sync.Mutex
	armed  bool
	left   int // requests until then
	behind bool
	die    context.CancelCauseFunc
}

// RoundTrip sends a request.
func (l *lineToGitHub) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	falls := l.armed && l.left == 0
	l.left--
	l.armed = l.armed && !falls
	l.mu.Unlock()
	if falls && !l.behind {
		l.die(errDied)
		return nil, errDied
	}
	answer, err := l.next.RoundTrip(r)
	if falls && err == nil {
		l.die(errDied)
		return nil, errors.Join(errDied, answer.Body.Close())
	}
	return answer, err
}

// baker is a victim that is, or becomes, a builder.
type baker struct {
	*victim
	line *lineToGitHub
	ctx  context.Context // of the run that may be killed
}

// bakerIn opens a world, in which a configuration is about to be applied to its builder.
func bakerIn(t *testing.T, dir string, c *fleet.Config) *baker {
	t.Helper()
	v := &baker{victim: &victim{dir: dir, world: opened(t, dir)}, line: &lineToGitHub{}, ctx: t.Context()}
	v.engine = installs(t, v.world, runBuilders(t, v.world, c, func(o *agents.Options) {
		v.line.next = o.HTTP.Transport
		o.HTTP.Transport = v.line
	}))
	v.is(t, planned(t, v.engine).Hosts[0].Server.ID)
	return v
}

// bakersWorld returns the folder of a world in which a configuration was applied, unless it is fresh, and an incident happened.
func bakersWorld(t *testing.T, c *fleet.Config, fresh bool, incident string) string {
	t.Helper()
	if fresh {
		w, dir := world(t, 3)
		must(t, w.Close())
		return dir
	}
	dir := prepared(t, 3, c)
	if incident != "" {
		w := opened(t, dir)
		inject(t, w, member(t, w), incident)
		must(t, w.Close())
	}
	return dir
}

// onRequest kills the run before or behind a request.
func onRequest(behind bool) func(v *baker, n int) func() bool {
	return func(v *baker, n int) func() bool {
		l := v.line
		v.ctx, l.die = context.WithCancelCause(v.ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.armed, l.left, l.behind = true, n, behind
		return func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			fell := !l.armed
			l.armed = false
			return fell
		}
	}
}

// bakerInterruptions are those on the host and those at GitHub.
func bakerInterruptions() map[string]func(v *baker, n int) func() bool {
	all := map[string]func(v *baker, n int) func() bool{"killed before a request": onRequest(false), "killed behind a request": onRequest(true)}
	for name, on := range interruptions() {
		all[name] = func(v *baker, n int) func() bool { return on(v.victim, n) }
	}
	return all
}

// bakerScenes are changes of a builder: what happens before, and the configuration that is applied.
var bakerScenes = map[string]struct {
	incident  string
	fresh     bool // there is no builder before
	tart      bool // it has Tart
	configure func(*fleet.Config)
}{
	"set up":           {fresh: true, configure: func(*fleet.Config) {}},
	"registered again": {incident: "runner-deregistered", configure: func(*fleet.Config) {}},
	"updated":          {incident: "runner-below-floor", configure: func(*fleet.Config) {}},
	"fenced":           {tart: true, configure: needIdle["tart"]},
	"removed":          {configure: needIdle["removal"]},
	"released":         {configure: needIdle["release"]},
}

// TestBuilderInterrupted interrupts each change of a builder anywhere: at each command and tool on the host, with the tools
// of the runner, and before and behind each request to GitHub. The next run converges. Then GitHub has one entry of a builder
// and none of one that was released; nothing is fenced, doubled or half done.
func TestBuilderInterrupted(t *testing.T) {
	t.Parallel()
	scenes, kinds := slices.Sorted(maps.Keys(bakerScenes)), slices.Sorted(maps.Keys(bakerInterruptions()))
	for _, row := range pairs(t, len(scenes), len(kinds)) {
		scene, interruption := scenes[row[0]], bakerInterruptions()[kinds[row[1]]]
		s := bakerScenes[scene]
		parallel(t, scene+", "+kinds[row[1]], func(t *testing.T) {
			c := bakery()
			if !s.tart {
				c.Fleets[0].Groups[0].Spec.Tart = nil
			}
			before := bakersWorld(t, c, s.fresh, s.incident)
			s.configure(c)
			everywhere(t, 0, 1, func(t *testing.T, n int) bool {
				v := bakerIn(t, worldtest.Copied(t, before), c)
				fell := v.interrupted(t, n, interruption)
				v.isRight(t, scene)
				return fell
			})
		})
	}
}

// interrupted applies with an interruption, and once more if it fell.
func (v *baker) interrupted(t *testing.T, n int, interruption func(*baker, int) func() bool) bool {
	t.Helper()
	p := planned(t, v.engine)
	whole := v.ctx
	happened := interruption(v, n)
	r, err := applying(t, v.ctx, v.engine, p)
	v.ctx = whole
	fell := happened()
	switch {
	case !fell && (err != nil || !r.Converged()):
		t.Errorf("not interrupted after %d: %v, failures %q", n, err, failed(r))
	case fell:
		must(t, v.machine.Advance(2*time.Minute)) // what was cut off has ended on the host
		v.engine.Run = named("sam", 2)
		if r := apply(t, v.engine); !r.Converged() {
			t.Errorf("interrupted after %d: failures %q, of the host %q, fenced %v", n, failed(r), codesOf(r.After, r.After.Hosts[0].Name), r.LeftFenced)
		}
	}
	return fell
}

// failed are the errors of a run.
func failed(r engine.Result) (out []string) {
	for _, f := range r.Failures {
		out = append(out, f.Err.Error())
	}
	return out
}

// isRight finds what a scene ends with.
func (v *baker) isRight(t *testing.T, scene string) {
	t.Helper()
	if scene == "released" {
		all, err := v.world.GitHub().Runners()
		if got := names(t, v.world); !slices.Equal(got, []string{"acme-pool-01", "acme-pool-02", "acme-pool-03"}) || len(all) > 0 || err != nil {
			t.Errorf("the pool has %q; GitHub has %+v, %v", got, all, err)
		}
		return
	}
	b := builderOf(t, v.world, member(t, v.world))
	if scene != "removed" {
		b.takesJobs(t)
		if state, err := b.machine.Runner(); err != nil || state.Version != "2.337.0" {
			t.Errorf("the runner is %+v, %v", state, err)
		}
		return
	}
	b.clean(t, 0)
	if _, err := b.machine.Runner(); !errors.Is(err, mac.ErrNoRunner) || len(b.entries(t)) > 0 {
		t.Errorf("the runner: %v; GitHub has %+v", err, b.entries(t))
	}
}

// TestRegistrationInterrupted kills config.sh in each of its states: before its key, before the entry at GitHub, and before
// each file behind that. The next run registers the builder once.
func TestRegistrationInterrupted(t *testing.T) {
	t.Parallel()
	states := make([]string, 5)
	t.Cleanup(func() {
		want := []string{"0 entries:", "0 entries: .credentials_rsaparams", "1 entries: .credentials_rsaparams", "1 entries: .credentials_rsaparams .credentials",
			"1 entries: .credentials_rsaparams .credentials .runner"}
		for k, state := range states {
			if !t.Failed() && state != want[k] && (state != "" || !testing.Short()) { // short: a share of the worlds is left out
				t.Errorf("config.sh was killed in the state %q, want %q", state, want[k])
			}
		}
	})
	for k := range states {
		for _, again := range []bool{false, true} {
			parallel(t, fmt.Sprintf("%d, again %t", k, again), func(t *testing.T) {
				c := builders(1)
				v := bakerIn(t, bakersWorld(t, c, !again, map[bool]string{true: "runner-deregistered"}[again]), c)
				var once sync.Once
				v.machine.Watch(func(argv []string, _ map[string]string) {
					if strings.HasSuffix(argv[0], "Runner.Listener") && slices.Contains(argv, "configure") {
						once.Do(func() { v.machine.InterruptAfter(k, mac.Killed) })
					}
				})
				performed(t, v.engine, planned(t, v.engine))
				if !v.machine.Interrupted() {
					t.Fatal("it was not killed")
				}
				said, err := v.machine.Run(t.Context(), "root", "cd /Users/m1/actions-runner; for name in .credentials_rsaparams .credentials .runner svc.sh; do [ ! -e $name ] || echo $name; done")
				must(t, err)
				all, err := v.world.GitHub().Runners()
				must(t, err)
				if !again {
					states[k] = strings.TrimSpace(fmt.Sprintf("%d entries: %s", len(all), strings.Join(strings.Fields(string(said.Stdout)), " ")))
				}
				must(t, v.machine.Advance(2*time.Minute))
				converges(t, v.engine)
				v.isRight(t, "")
			})
		}
	}
}
