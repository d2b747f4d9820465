package runlog

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/rollout"
	"github.com/macfleet/macfleet/plan"
)

// The limits of what Timing reads, so that a plan stays fast in a folder of large records.
const (
	timedRuns   = 20
	timedOfEach = 1 << 20 // bytes
)

// Timing returns how long tasks typically took in the latest runs of a folder that a caller wants: the medians.
// What cannot be read is left out.
func Timing(folder string, wanted func(Head) bool) rollout.Timing {
	all, _ := stamped(folder, suffix)
	took := make(map[rollout.Task][]time.Duration)
	t := rollout.Timing{Recorded: make(map[rollout.Task]time.Duration)}
	for _, name := range all {
		path := filepath.Join(folder, name)
		if h, err := headOf(path); err != nil || !wanted(h) {
			continue
		}
		of := timesOf(path)
		for k, times := range of {
			took[k] = append(took[k], times...)
		}
		if len(of) > 0 {
			t.Runs++
		}
		if t.Runs == timedRuns {
			break
		}
	}
	for k, times := range took {
		slices.Sort(times)
		t.Recorded[k] = times[len(times)/2]
	}
	return t
}

// timed is what the durations need of a line.
type timed struct {
	Version int       `json:"v"`
	Type    Type      `json:"type"`
	Time    time.Time `json:"time"`
	Host    string    `json:"host"`
	Seconds float64   `json:"seconds"`
	Lane    string    `json:"lane"`
	Action  *Action   `json:"action"`
}

// timesOf returns how long the finished tasks of a run took, as far as its record can be read.
func timesOf(path string) map[rollout.Task][]time.Duration {
	out := make(map[rollout.Task][]time.Duration)
	f, _, err := open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, timedOfEach))
	lanes := make(map[string]string) // by host
	var over time.Time               // when the last host was done
	for line := range bytes.Lines(text) {
		var e timed
		if json.Unmarshal(line, &e) != nil || e.Version > Version {
			break
		}
		took := time.Duration(e.Seconds * float64(time.Second))
		switch {
		case e.Type == engine.HostStarted:
			lanes[e.Host] = e.Lane
		case e.Type == engine.HostEnded:
			over = e.Time
		case e.Type == TypeEnd && !over.IsZero():
			out[rollout.Check] = append(out[rollout.Check], e.Time.Sub(over))
		case e.Action == nil || e.Action.Forced:
		case e.Type == engine.NodeReady:
			k := rollout.Task{Kind: plan.AwaitNode, Lane: lanes[e.Host]}
			out[k] = append(out[k], took)
		case e.Type == engine.Done:
			if k, known := e.Action.task(); known {
				out[k] = append(out[k], took)
			}
		}
	}
	return out
}

// task returns what kind of work an action is.
func (a Action) task() (rollout.Task, bool) {
	k := rollout.Task{Kind: plan.Kind(a.Kind), Step: plan.StepID(a.Step), Drains: a.Drains}
	return k, k.Disruption.UnmarshalText([]byte(a.Disruption)) == nil
}
