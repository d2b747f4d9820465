package runlog_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/rollout"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/plan"
)

// TestRecordedTimes: the medians of the selected runs count, only of finished actions. What cannot be read is skipped.
func TestRecordedTimes(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	add := func(h runlog.Head, seconds ...float64) {
		w := begin(t, runlog.Options{Folder: folder}, h)
		at := began()
		write := func(e engine.Event) {
			at = at.Add(time.Second)
			e.Time, e.Host = at, "one"
			must(t, w.Event(e))
		}
		write(engine.Event{Type: engine.HostStarted, Lane: "disrupt"})
		for _, s := range seconds {
			write(engine.Event{Type: engine.Done, Action: step("one", "tart"), Seconds: s})
		}
		write(engine.Event{Type: engine.Failed, Action: step("one", "tart"), Seconds: 600})
		write(engine.Event{Type: engine.NodeReady, Action: &plan.Action{Kind: plan.AwaitNode, Host: "one"}, Seconds: 12})
		write(engine.Event{Type: engine.HostEnded})
		must(t, w.Write(runlog.Entry{Event: engine.Event{Type: runlog.TypeEnd, Time: at.Add(3 * time.Second)}, End: &runlog.End{}}))
	}
	simulated := head("c")
	simulated.Sandbox = true
	add(head("a"), 10, 30)
	add(head("b"), 20)
	add(simulated, 1, 1, 1, 1, 1)
	put(t, filepath.Join(folder, runlog.FileName(began(), "d")), "not a record\n")
	want := rollout.Timing{Runs: 2, Recorded: map[rollout.Task]time.Duration{
		rollout.TaskOf(*step("one", "tart")): 20 * time.Second, rollout.Await(rollout.Disrupt): 12 * time.Second, rollout.Check: 3 * time.Second}}
	if diff := cmp.Diff(want, runlog.Timing(folder, func(h runlog.Head) bool { return !h.Sandbox })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := runlog.Timing(filepath.Join(folder, "missing"), func(runlog.Head) bool { return true }); got.Runs+len(got.Recorded) > 0 {
		t.Errorf("of a missing folder: %+v", got)
	}
}
