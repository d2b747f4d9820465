package engine_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/engine"
)

// fault is one that hits a run at one place.
type fault struct {
	at      place
	line    lineFault
	status  int                          // the answer of a provider; 0: there is none
	err     error                        // where there is none
	unheard bool                         // the provider has not heard the request
	hasty   bool                         // a host that says nothing is given up soon
	once    bool                         // where it falls makes no difference
	instead bool                         // what was about to happen does not
	before  func(a *arena)               // the run begins
	happens func(a *arena) error         // there
	repair  func(t *testing.T, a *arena) // what a person does before the next apply
}

// lineFault is what hits a connection.
type lineFault int

const (
	dropped       lineFault = iota + 1 // before a word has left
	droppedBehind                      // behind a word, before the answer
	halfOpen                           // both ends are silent
	slow
	cut // the end of an answer is missing
)

// whole reports whether the fault has not fallen yet.
func (a *arena) whole() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.left >= 0
}

// runOf returns an engine of a later run on the same arena, with lines of its kind.
func runOf(a *arena) *engine.Engine {
	a.epoch++
	other := &engine.Engine{Config: a.engine.Config, Steps: a.engine.Steps, Servers: a.engine.Servers, Cluster: a.engine.Cluster,
		Passwords: a.engine.Passwords, Input: a.engine.Input, Pins: a.engine.Pins, Artifacts: a.engine.Artifacts, Ready: a.engine.Ready,
		Parallelism: 1, Hosts: a.patient, Run: named("other", a.epoch), Now: time.Now, Stop: context.Background(), Emit: func(engine.Event) {}}
	return other
}

// faults are what may hit a run, by name.
func faults() map[string]fault {
	out := map[string]fault{
		"ssh: dropped":               {at: atWord, line: dropped},
		"ssh: dropped behind a word": {at: atWord, line: droppedBehind},
		"ssh: half-open":             {at: atWord, line: halfOpen, hasty: true},
		"ssh: slow":                  {at: atWord, line: slow},
		"host: reboots": {at: atWord, happens: func(a *arena) error { return a.machine.Reboot(context.Background()) },
			repair: func(t *testing.T, a *arena) { must(t, a.machine.Advance(20*time.Second)) }}, // its kubelet reports every 10 s
		"host: clock leaps ahead": {at: atWord, happens: func(a *arena) error { return a.machine.Advance(time.Hour) }},
		"host: full disk": {at: atWord, happens: func(a *arena) error { return a.world.Inject(a.name, "disk-full") },
			repair: func(t *testing.T, a *arena) { must(t, a.world.Heal(a.name, "disk-full")) }},
		"kill -9 before an event":         {at: atEvent, instead: true, happens: (*arena).kill},
		"kill -9 after an event":          {at: afterEvent, happens: (*arena).kill},
		"record: full disk":               {at: afterEvent, happens: halts(errFull)},
		"stopped":                         {at: afterEvent, happens: halts(errors.New("interrupted"))},
		"lock: stolen, and it knows":      {at: afterEvent, before: func(a *arena) { a.engine.Guard = heldWhile(a.whole) }},
		"lock: stolen while it is asleep": {at: afterEvent, happens: (*arena).takeOver},
		"operator: clock is ahead":        {at: afterEvent, once: true, before: skewed(48 * time.Hour)},
		"operator: clock is behind":       {at: afterEvent, once: true, before: skewed(-48 * time.Hour)},
	}
	for name, at := range map[string]place{"scaleway": atCloud, "kubernetes": atCluster} {
		for _, status := range []int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusTooManyRequests} {
			out[name+": "+http.StatusText(status)] = fault{at: at, status: status, unheard: true}
		}
		out[name+": dropped"] = fault{at: at, err: errBroken, unheard: true}
		out[name+": answer is lost"] = fault{at: at, err: errBroken}
		out[name+": answer is cut"] = fault{at: at, line: cut}
		out[name+": timeout"] = fault{at: at, err: os.ErrDeadlineExceeded, unheard: true}
		out[name+": timeout, and it was heard"] = fault{at: at, err: os.ErrDeadlineExceeded}
	}
	return out
}

// kill ends the process: nothing leaves it any more.
func (a *arena) kill() error {
	a.dead.Store(true)
	a.die(errDied)
	return nil
}

// skewed lets the clock of the machine that macfleet runs on be wrong in one run.
func skewed(d time.Duration) func(a *arena) {
	return func(a *arena) { a.ahead.Store(int64(d)) }
}

// halts stops the run.
func halts(why error) func(a *arena) error {
	return func(a *arena) error { a.halt(why); return nil }
}
