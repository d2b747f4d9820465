package engine_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

// TestLostVerification loses a step's verification, as a run that is killed between a change and its verification does. An apply
// that cannot reach the host repairs another one anyway. One that can enters the verification again, and a later edit is drift
// and not pending configuration.
func TestLostVerification(t *testing.T) {
	t.Parallel()
	inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		names := w.atWork(t)
		lost, drifted := w.Member(names[0]), w.Member(names[1])
		w.want["plain"] = "b"
		w.OnCall = func(c enginetest.Call) (f enginetest.Fault) {
			if c.What == "WriteMarker" && c.Name == names[0] {
				f.Err = enginetest.ErrLost
			}
			return f
		}
		if r := apply(t, w.engine); len(r.Failures) != 1 || lost.State["plain"] != "b" {
			t.Fatalf("failures %+v", r.Failures)
		}
		w.OnCall = nil
		w.Change(func() { drifted.State["plain"] = "edited" })
		p := planned(t, w.engine)
		w.Change(func() { lost.Away = true })
		if r := performed(t, w.engine, p); len(r.Failures) != 1 || r.Failures[0].Action.Host != names[0] || r.Done != 1 {
			t.Errorf("done %d, failures %+v", r.Done, r.Failures)
		}
		w.Change(func() { lost.Away = false })
		converges(t, w.engine)
		w.Change(func() { lost.State["plain"] = "edited" })
		if s := planned(t, w.engine).Summarise(); s.Drift != 1 || s.Pending != 0 {
			t.Errorf("summary %+v", s)
		}
	})
}

// unwritable are pins that cannot be stored.
type unwritable struct{ engine.Pins }

var errReadOnly = errors.New("read-only file system")

// Update fails.
func (unwritable) Update(func([]plan.Pin) []plan.Pin) error { return errReadOnly }

// TestPinsCannotBeKept finds out before the first change.
func TestPinsCannotBeKept(t *testing.T) {
	t.Parallel()
	inMemory(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		p := planned(t, w.engine)
		w.engine.Pins = unwritable{w.engine.Pins}
		before := w.Lasting()
		if _, err := applying(t, t.Context(), w.engine, p); !errors.Is(err, errReadOnly) || strings.Join(before, "") != strings.Join(w.Lasting(), "") {
			t.Errorf("%v, %q", err, w.Lasting())
		}
	})
}

// edit changes a JSON file of a world as a person would.
func edit(t *testing.T, path, from, to string) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	if !strings.Contains(string(text), from) {
		t.Fatalf("%s lacks %q:\n%s", path, from, text)
	}
	must(t, os.WriteFile(path, []byte(strings.Replace(string(text), from, to, 1)), 0o644))
}
