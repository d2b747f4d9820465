package runlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

const sentinel = "Sentinel-Password-0001"

func began() time.Time { return time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC) }

func head(id string) runlog.Head {
	return runlog.Head{ID: id, Who: "ana@desk", Started: began(), Command: "apply", Configuration: "acme", Environment: "production"}
}

func scrub() func(string) string {
	var s secret.Scrubber
	s.Learn(sentinel)
	return s.Scrub
}

func step(host, id string) *plan.Action {
	return &plan.Action{Kind: plan.RunStep, Host: host, ServerID: "id-" + host, Fleet: "runners", Step: plan.StepID(id)}
}

// must ends a test at an error of its set-up.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// begin starts the record of a run.
func begin(t *testing.T, o runlog.Options, h runlog.Head) *runlog.Writer {
	t.Helper()
	o.Scrub = scrub()
	w, err := runlog.Create(o, h)
	must(t, err)
	return w
}

func end(t *testing.T, w *runlog.Writer, e runlog.End) {
	t.Helper()
	must(t, w.End(e, engine.Result{}))
}

func put(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// wrote makes a record with a plan of three actions and these events.
func wrote(t *testing.T, folder string, left context.Context, events ...engine.Event) *runlog.Writer {
	t.Helper()
	w := begin(t, runlog.Options{Folder: folder, Left: left}, head("abcd2345"))
	p := runlog.PlanOf(&plan.Plan{Actions: []plan.Action{*step("one", "power"), *step("one", "hostname"), *step("two", "power")}})
	must(t, w.Write(runlog.Entry{Event: engine.Event{Type: runlog.TypePlan}, Plan: &p}))
	for i, e := range events {
		e.Time = began().Add(time.Duration(i+1) * time.Second)
		if e.Action != nil {
			e.Host = e.Action.Host
		}
		must(t, w.Event(e))
	}
	return w
}

func read(t *testing.T, path string) runlog.Record {
	t.Helper()
	r, err := runlog.Read(path)
	must(t, err)
	return r
}

func states(r runlog.Record) map[string]runlog.State {
	out := make(map[string]runlog.State)
	for _, h := range r.Reports() {
		for _, a := range h.Actions {
			out[h.Host+" "+a.Action.Label()] = a.State
		}
	}
	return out
}

// TestRecord writes a run and reads the result of each action.
func TestRecord(t *testing.T) {
	t.Parallel()
	failed := &hosts.ScriptError{Host: "one", Script: "power", Answer: plan.Answer{Exit: 2, Stdout: "set " + sentinel + "\n", Stderr: "no such\n" + sentinel + "\n"}}
	w := wrote(t, t.TempDir(), t.Context(),
		engine.Event{Type: engine.Started, Action: step("one", "power")},
		engine.Event{Type: engine.Started, Action: step("two", "power")},
		engine.Event{Type: engine.Failed, Action: step("one", "power"), Err: failed, Seconds: 1},
		engine.Event{Type: engine.Skipped, Action: step("one", "hostname")},
		engine.Event{Type: engine.Done, Action: step("two", "power"), Seconds: 2},
		engine.Event{Type: engine.Waiting, Action: &plan.Action{Kind: plan.AwaitNode, Host: "two", ServerID: "id-two"}})
	if r := read(t, w.Path()); r.Outcome() != runlog.Running || len(r.Open()) != 0 {
		t.Errorf("before its end the run is %q, with %v", r.Outcome(), r.Open())
	}
	end(t, w, runlog.End{Outcome: runlog.Incomplete, Exit: 3, Done: 1, Failed: 1, NotStarted: 1})
	r := read(t, w.Path())
	want := map[string]runlog.State{"one power": runlog.StateFailed, "one hostname": runlog.StateNotStarted, "two power": runlog.StateDone, "two ready": runlog.StateNotWaited}
	if diff := cmp.Diff(want, states(r)); diff != "" {
		t.Error(diff)
	}
	if got := r.Reports()[0].Actions[0].Output; !cmp.Equal(got, []string{"set <secret>", "no such", "<secret>"}) {
		t.Errorf("the last words are %q", got)
	}
	if got := r.Unfinished(); !cmp.Equal(got, []string{"one", "two"}) {
		t.Errorf("unfinished: %q", got)
	}
	if r.Outcome() != runlog.Incomplete || r.End.Exit != 3 || r.Head.ID != "abcd2345" {
		t.Errorf("ended as %+v of %+v", r.End, r.Head)
	}
	if strings.Contains(content(t, w.Path()), sentinel) {
		t.Error("a secret is in the record")
	}
	if info, err := os.Stat(w.Path()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// TestBrokenOff: a process that ends without a last line leaves what it had started.
func TestBrokenOff(t *testing.T) {
	t.Parallel()
	w := wrote(t, t.TempDir(), t.Context(),
		engine.Event{Type: engine.Started, Action: step("one", "power")},
		engine.Event{Type: engine.Done, Action: step("one", "power")},
		engine.Event{Type: engine.Started, Action: step("one", "hostname")})
	text := content(t, w.Path()) // the other file has no lock, as if its process were gone
	path := filepath.Join(t.TempDir(), runlog.FileName(began(), "abcd2345"))
	for _, torn := range []string{"", `{"v":1,"type":"do`, `{"v":1,"type":"done"}`} {
		put(t, path, text+torn)
		r := read(t, path)
		open := r.Open()
		if r.Outcome() != runlog.BrokeOff || r.Torn != (torn != "") || len(open) != 1 || open[0].Action.Label() != "hostname" {
			t.Errorf("behind %q: %q, torn %t, open %v", torn, r.Outcome(), r.Torn, open)
		}
		b, wrong, err := runlog.List(filepath.Dir(path))
		if err != nil || len(wrong) > 0 || len(b) != 1 || b[0].Outcome() != runlog.BrokeOff {
			t.Errorf("listed as %+v, %v, %v", b, wrong, err)
		}
	}
	put(t, path, "{\n"+text)
	if _, err := runlog.Read(path); err == nil || !strings.Contains(err.Error(), "line 1 is damaged") {
		t.Errorf("a damaged record: %v", err)
	}
	if _, wrong, err := runlog.List(filepath.Dir(path)); err != nil || len(wrong) != 1 || !errors.Is(wrong[0], runlog.ErrNoRecord) {
		t.Errorf("a damaged record in the list: %v, %v", wrong, err)
	}
}

// TestNewerRecord: what a newer macfleet wrote is refused as that, also where its
// lines have another form, and is not shown by the half that is understood.
func TestNewerRecord(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, runlog.FileName(began(), "abcd2345"))
	for _, text := range []string{
		`{"v":2,"type":"run","time":"2026-11-21T10:00:00Z","run":{"id":"abcd2345"}}` + "\n",
		`{"v":2,"type":"run","time":1,"run":["abcd2345"]}` + "\n",
		`{"v":2,"type":"run","run":["abcd2345"]}` + "\n" + `{"v":2,"type":"end","end":7}` + "\n",
	} {
		put(t, path, text)
		var newer *runlog.NewerError
		if _, err := runlog.Read(path); !errors.As(err, &newer) || newer.Version != 2 {
			t.Errorf("read %s: %v", text, err)
		}
		if runs, wrong, err := runlog.List(folder); err != nil || len(runs) != 0 || len(wrong) != 1 || !errors.As(wrong[0], &newer) {
			t.Errorf("listed %s: %+v, %v, %v", text, runs, wrong, err)
		}
		if !runlog.IsRecord(path) {
			t.Errorf("%s is not a record", text)
		}
	}
}

// ran records a run that converged.
func ran(t *testing.T, folder, id string, after time.Duration) {
	t.Helper()
	h := head(id)
	h.Started = began().Add(after)
	end(t, begin(t, runlog.Options{Folder: folder}, h), runlog.End{Outcome: runlog.Converged})
}

// listed names the runs of a folder with their outcomes.
func listed(t *testing.T, folder string) []string {
	t.Helper()
	all, wrong, err := runlog.List(folder)
	must(t, append(wrong, err)...)
	var out []string
	for _, b := range all {
		out = append(out, b.Head.ID+" "+string(b.Outcome()))
	}
	return out
}

// TestOrder: the last run is the one that started its record last, also within one second, also where its command
// started earlier and waited. A record without a complete first line has not started, which is not an error.
func TestOrder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	old := filepath.Join(folder, began().Format("20060102T150405Z")+"-eeee2222.jsonl") // as names were once
	put(t, old, `{"v":1,"type":"run","time":"2026-11-21T10:00:00Z","run":{"id":"eeee2222"}}`+"\n")
	for i, id := range []string{"dddd2222", "aaaa2222", "cccc2222", "bbbb2222"} {
		ran(t, folder, id, time.Duration(i)*-time.Minute)
	}
	for id, text := range map[string]string{"aaaa3333": "", "bbbb3333": `{"v":1,"type":"run","run":{"id":"bb`} {
		put(t, filepath.Join(folder, runlog.FileName(time.Now().Add(time.Hour), id)), text)
	}
	want := []string{"bbbb2222 converged", "cccc2222 converged", "aaaa2222 converged", "dddd2222 converged", "eeee2222 " + string(runlog.BrokeOff)}
	if got := listed(t, folder); !cmp.Equal(got, want) {
		t.Errorf("runs are %q, want %q", got, want)
	}
	if path, err := runlog.Find(folder, runlog.Last); err != nil || !strings.Contains(path, "bbbb2222") {
		t.Errorf("the last is %s, %v", path, err)
	}
	must(t, runlog.Prune(folder, 6))
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the oldest stays: %v", err)
	}
}

// TestUncertain: what ends after an abort has an unknown result.
func TestUncertain(t *testing.T) {
	t.Parallel()
	left, leave := context.WithCancel(t.Context())
	w := wrote(t, t.TempDir(), left, engine.Event{Type: engine.Started, Action: step("one", "power")},
		engine.Event{Type: engine.Started, Action: step("two", "power")})
	leave()
	for _, e := range []engine.Event{{Type: engine.Failed, Host: "one", Action: step("one", "power"), Err: context.Canceled},
		{Type: engine.Done, Host: "two", Action: step("two", "power")}} {
		must(t, w.Event(e))
	}
	end(t, w, runlog.End{Outcome: runlog.LeftAtOnce, Exit: 130})
	r := read(t, w.Path())
	for _, open := range [][]runlog.Entry{w.Open(), r.Open()} {
		if len(open) != 1 || open[0].Host != "one" {
			t.Errorf("uncertain: %v", open)
		}
	}
	if s := states(r); s["one power"] != runlog.StateUncertain || s["two power"] != runlog.StateDone {
		t.Errorf("states: %v", s)
	}
}

// TestUnwritable: without a record there is no run, and each failed write to a record
// is reported.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	put(t, file, "")
	_, err := runlog.Create(runlog.Options{Folder: file, Scrub: scrub()}, head("abcd2345"))
	if err == nil || !strings.Contains(err.Error(), "nothing was changed") || !strings.Contains(err.Error(), "--runs-dir") {
		t.Errorf("a folder that is none: %v", err)
	}
	w := wrote(t, t.TempDir(), t.Context())
	end(t, w, runlog.End{})
	for range 2 {
		if err := w.Event(engine.Event{Type: engine.Started, Action: step("one", "power")}); !errors.Is(err, os.ErrClosed) {
			t.Errorf("after the end: %v", err)
		}
	}
}

// TestFolder finds runs by how their ids begin, and keeps the newest and those that
// live.
func TestFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	living := wrote(t, folder, t.Context()) // the oldest
	for i, id := range []string{"aaaa2222", "aabb3333", "cccc4444"} {
		ran(t, folder, id, time.Duration(i+1)*time.Hour)
	}
	for run, want := range map[string]string{"last": "cccc4444", "AAB": "aabb3333", "cccc4444": "cccc4444", "aa": "2 runs start", "zz": "no run", "": "no run"} {
		path, err := runlog.Find(folder, run)
		if err == nil && !strings.Contains(path, want) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q finds %s, %v; want %s", run, path, err, want)
		}
	}
	if b, err := runlog.Newest(folder, "acme", "production"); err != nil || b.Head.ID != "cccc4444" {
		t.Errorf("the newest is %+v, %v", b, err)
	}
	if b, err := runlog.Newest(folder, "acme", "staging"); err != nil || b.Path != "" {
		t.Errorf("another environment's newest is %+v, %v", b, err)
	}
	must(t, runlog.Prune(folder, 1))
	if got, want := listed(t, folder), []string{"cccc4444 converged", "abcd2345 running"}; !cmp.Equal(got, want) {
		t.Errorf("kept %q, want %q", got, want)
	}
	end(t, living, runlog.End{Outcome: runlog.Converged})
	if _, err := runlog.Find(t.TempDir(), "last"); err == nil || !strings.Contains(err.Error(), "--runs-dir") {
		t.Errorf("an empty folder: %v", err)
	}
}

// TestFormerRecord reads lines as they were written before events and lines were one type:
// their keys are the same, in another order.
func TestFormerRecord(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "former")
	const text = `{"v":1,"type":"run","time":"2026-11-21T10:00:00Z","run":{"id":"abcd2345","who":"ann@desk","epoch":3}}
{"v":1,"type":"plan","time":"2026-11-21T10:00:01Z","plan":{"add":0,"change":1,"hosts":[],"actions":[{"kind":"step","host":"one","server_id":"id-one","step":"power","reason":"sleep-enabled","disruption":"none"}]}}
{"v":1,"type":"begun","time":"2026-11-21T10:00:02Z","host":"one","fleet":"f","lane":"plain","disruption":"none"}
{"v":1,"type":"evicting","time":"2026-11-21T10:00:03Z","host":"one","text":"its budget","pod":"ci/a","what":"held"}
{"v":1,"type":"failed","time":"2026-11-21T10:00:04Z","host":"one","action":{"kind":"step","host":"one","server_id":"id-one","step":"power","disruption":"none"},"seconds":1.25,"code":"sleep-enabled","text":"it failed","remedy":"look","output":["no such"],"uncertain":true}
{"v":1,"type":"soaking","time":"2026-11-21T10:00:05Z","fleet":"f","until":"2026-11-21T10:05:00Z"}
{"v":1,"type":"rise","time":"2026-11-21T10:00:06Z","epoch":4}
{"v":1,"type":"stop","time":"2026-11-21T10:00:07Z","text":"a signal"}
{"v":1,"type":"end","time":"2026-11-21T10:00:08Z","end":{"outcome":"incomplete","exit":3,"done":0,"failed":1,"not_started":0,"not_waited":0,"left":1}}
`
	put(t, path, text)
	r := read(t, path)
	var again bytes.Buffer
	for _, e := range r.Entries {
		must(t, json.NewEncoder(&again).Encode(e))
	}
	former, now := lines(t, text), lines(t, again.String())
	if diff := cmp.Diff(former[2:len(former)-1], now[2:len(now)-1]); diff != "" { // the others hold lists that are always there now
		t.Errorf("what is read is not what was written (-want +got):\n%s", diff)
	}
	if r.Head.Epoch != 4 || r.Plan.Change != 1 || r.Outcome() != runlog.Incomplete || r.Reports()[0].Actions[0].State != runlog.StateUncertain {
		t.Errorf("%+v", r)
	}
}

// lines reads each line of a text as JSON.
func lines(t *testing.T, text string) []any {
	t.Helper()
	var out []any
	for line := range strings.Lines(text) {
		var v any
		must(t, json.Unmarshal([]byte(line), &v))
		out = append(out, v)
	}
	return out
}

// TestMet says on which hosts the runs of a folder have started something.
func TestMet(t *testing.T) {
	t.Parallel()
	release := &plan.Action{Kind: plan.ReleaseServer, Host: "two", ServerID: "id-two"}
	start, done := engine.Started, engine.Done
	for name, tc := range map[string]struct {
		events []engine.Event
		ours   bool
		want   string
	}{
		"only a plan":  {nil, true, ""},
		"done":         {[]engine.Event{{Type: start, Action: step("one", "power")}, {Type: done, Action: step("one", "power")}}, true, "id-one"},
		"interrupted":  {[]engine.Event{{Type: start, Action: step("one", "power")}}, true, "id-one"},
		"skipped":      {[]engine.Event{{Type: engine.Skipped, Action: step("one", "power")}}, true, ""},
		"of another":   {[]engine.Event{{Type: start, Action: step("one", "power")}}, false, ""},
		"both":         {[]engine.Event{{Type: start, Action: step("two", "power")}, {Type: start, Action: step("one", "power")}}, true, "id-one id-two"},
		"released":     {[]engine.Event{{Type: start, Action: release}, {Type: done, Action: release}}, true, ""},
		"not released": {[]engine.Event{{Type: start, Action: release}, {Type: engine.Failed, Action: release, Err: errors.New("no")}}, true, "id-two"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, older := t.TempDir(), head("earlierrun")
			older.Started = began().Add(-time.Hour)
			earlier := begin(t, runlog.Options{Folder: folder}, older) // what it released was claimed again since
			must(t, earlier.Event(engine.Event{Type: done, Action: &plan.Action{Kind: plan.ReleaseServer, ServerID: "id-one"}}))
			end(t, earlier, runlog.End{})
			w := wrote(t, folder, t.Context(), tc.events...)
			if got := runlog.Worked(folder, func(runlog.Head) bool { return true }); len(got) != 1 || got[0].ID != "abcd2345" {
				t.Errorf("a run that has not ended has worked, and one that ended without a change has not: %+v", got)
			}
			got := runlog.Met(folder, func(h runlog.Head) bool { return tc.ours && h.Configuration == "acme" }, []string{"id-one", "id-two", "id-three"})
			if diff := cmp.Diff(strings.Fields(tc.want), got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			end(t, w, runlog.End{})
		})
	}
}
