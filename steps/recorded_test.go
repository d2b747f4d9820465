package steps_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
	"github.com/macfleet/macfleet/steps/stepstest"
)

const recorded = "testdata/recorded"

// TestRecorded reads what hosts were recorded to answer, by `macfleet doctor
// HOST --record FILE`: each step must be able to read every answer. Where it
// cannot, a file of the same name that ends in .unread lists those probes, one
// a line. A recording from a Mac becomes a test when it is put into the folder.
func TestRecorded(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(recorded, "*.json"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%d recordings in %s, %v", len(files), recorded, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			got := unreadable(t, decoded(t, file))
			want := excused(t, strings.TrimSuffix(file, ".json")+".unread")
			if !slices.Equal(got, want) {
				t.Errorf("unread: %v, expected: %v", got, want)
			}
		})
	}
}

// decoded returns the answers of a recording.
func decoded(t *testing.T, file string) plan.Facts {
	t.Helper()
	var r struct {
		Format  int `json:"recording"`
		Answers map[string]json.RawMessage
	}
	err := json.Unmarshal([]byte(scripttest.Text(t, file)), &r)
	if r.Format != 1 || len(r.Answers) == 0 {
		err = errors.Join(err, fmt.Errorf("format %d with %d answers", r.Format, len(r.Answers)))
	}
	facts := make(plan.Facts)
	for id, content := range r.Answers {
		var a plan.Answer
		var none struct{ Unread string }
		err = errors.Join(err, json.Unmarshal(content, &a), json.Unmarshal(content, &none))
		facts[id] = inventory.Present(a)
		if none.Unread != "" {
			facts[id] = inventory.Unread[plan.Answer](none.Unread)
		}
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return facts
}

// unreadable lists the probes whose answers no step could use. A probe that the
// recording does not hold was not read by the macfleet that made it: its step
// is skipped.
func unreadable(t *testing.T, facts plan.Facts) []string {
	t.Helper()
	var out []string
	read := 0
	for _, s := range steps.For(stepstest.Host(everything)) {
		if !holds(facts, s) {
			continue
		}
		out = append(out, stepstest.UnreadOf(stepstest.Find(t, s.ID(), plan.View{Host: stepstest.Host(everything), Facts: facts}))...)
		read++
	}
	if read == 0 {
		t.Error("it holds the answers of no step")
	}
	slices.Sort(out)
	return out
}

// holds reports whether a recording holds all answers of a step.
func holds(facts plan.Facts, s plan.Step) bool {
	return len(s.Probes()) > 0 && !slices.ContainsFunc(s.Probes(), func(p plan.Probe) bool {
		_, held := facts[p.ID]
		return !held
	})
}

// excused lists the probes of a file, which may be missing.
func excused(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return out
}

// TestRecordedStates insists that the recordings are of what they say.
func TestRecordedStates(t *testing.T) {
	t.Parallel()
	for name, differs := range map[string]bool{"simulated-factory": true, "simulated-converged": false} {
		facts := decoded(t, filepath.Join(recorded, name+".json"))
		h := stepstest.Host(everything)
		h.Name = "acme-sample" // as a recording calls its host
		for _, s := range steps.For(h) {
			if !holds(facts, s) {
				continue
			}
			if f := s.Diff(plan.View{Host: h, Facts: facts}); (len(f.Changes) > 0) != differs {
				t.Errorf("%s: %s has %d changes: %+v", name, s.ID(), len(f.Changes), stepstest.FieldsOf(f))
			}
		}
	}
}
