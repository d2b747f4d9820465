package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/macfleet/macfleet/internal/app"
	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/view"
)

// week is a simulated world that is watched for drift, and what its watchers reported.
type week struct {
	t      *testing.T
	dir    string
	now    time.Time
	last   string          // file of the previous result
	firing map[string]bool // fingerprints of items, for a watcher that stores only these
}

func newWeek(t *testing.T) *week {
	t.Helper()
	w := &week{t: t, dir: t.TempDir(), now: time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC), firing: map[string]bool{}}
	must(t, copyExample(w.dir))
	return w
}

// macfleet runs a command on the current day.
func (w *week) macfleet(wanted int, args ...string) string {
	w.t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{"-C", w.dir, "-e", "production", "--var", "runners=2", "--sandbox=" + filepath.Join(w.dir, "world")}, args...)
	if got := run(w.t.Context(), args, app.Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Now: func() time.Time { return w.now }}); got != wanted {
		w.t.Fatalf("%s: macfleet %q: exit %d, wanted %d\n%s\n%s", w.now.Format("Mon 15:04"), args, got, wanted, &out, &errs)
	}
	return out.String()
}

// world changes the simulated world.
func (w *week) world(do func(*sandbox.World) error) {
	w.t.Helper()
	sim, err := sandbox.Open(filepath.Join(w.dir, "world"), sandbox.Seed{})
	if err == nil {
		err = do(sim)
		if cerr := sim.Close(); err == nil {
			err = cerr
		}
	}
	must(w.t, err)
}

func (w *week) inject(host, incident string) {
	w.world(func(sim *sandbox.World) error { return sim.Inject(host, incident) })
}

// broken runs do while a provider does not answer, because a file of its state is unreadable.
func (w *week) broken(pattern string, while func()) {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, "world", pattern))
	if err != nil || len(files) == 0 {
		w.t.Fatalf("no %s: %v", pattern, err)
	}
	was, err := os.ReadFile(files[0])
	must(w.t, err)
	w.write(files[0], "{")
	while()
	w.write(files[0], string(was))
}

func (w *week) write(file, text string) {
	w.t.Helper()
	must(w.t, os.WriteFile(file, []byte(text), 0o600))
}

// passes advances the clocks by half a day, here and on the hosts.
func (w *week) passes(hosts []string) {
	w.now = w.now.Add(12 * time.Hour)
	w.world(func(sim *sandbox.World) error {
		for _, h := range hosts {
			m, err := sim.Mac(h)
			if err == nil {
				err = m.Advance(12 * time.Hour)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// looks runs drift, and returns what each watcher reports: one that passes the previous result
// to macfleet, and one that only uses the fingerprints of items.
func (w *week) looks(exit int) (told []string, fingerprint string, complete bool, notices []string) {
	w.t.Helper()
	args := []string{"drift", "--format", "json"}
	if w.last != "" {
		args = append(args, "--since", w.last)
	}
	text := w.macfleet(exit, args...)
	w.last = filepath.Join(w.dir, "last.json")
	w.write(w.last, text)
	var d view.DriftDocument
	if err := json.Unmarshal([]byte(text), &d); err != nil || d.Drift == nil {
		w.t.Fatalf("%v: %s", err, text)
	}
	told = []string{}
	if d.Drift.Since != nil {
		for _, i := range d.Drift.Since.New {
			told = append(told, "new "+i.Step)
		}
		for _, i := range d.Drift.Since.Recovered {
			told = append(told, "recovered "+i.Step)
		}
	}
	slices.Sort(told)
	if alone := w.watched(*d.Drift); d.Drift.Since != nil && !slices.Equal(told, alone) {
		w.t.Errorf("%s: with the previous result %q, without %q", w.now.Format("Mon 15:04"), told, alone)
	}
	for _, n := range d.Drift.Remarks {
		notices = append(notices, n.Code.String())
	}
	return told, d.Drift.Fingerprint, d.Drift.Complete, notices
}

// watched is the rule of docs/drift.md for alarms: an item that is not firing fires;
// one that is gone recovers, unless unknown names its host.
func (w *week) watched(d drift.Report) (told []string) {
	told = []string{}
	there := map[string]bool{}
	for _, i := range d.Items {
		key := i.Fingerprint + " " + i.Host + " " + i.Step
		there[key] = true
		if !w.firing[key] {
			told = append(told, "new "+i.Step)
			w.firing[key] = true
		}
	}
	for key := range w.firing {
		parts := strings.Fields(key)
		unknown := slices.ContainsFunc(d.Unseen, func(u drift.Unseen) bool {
			return u.Host == "" || u.Host == parts[1] && (u.Step == "" || u.Step == parts[2])
		})
		if !there[key] && !unknown {
			told = append(told, "recovered "+parts[2])
			delete(w.firing, key)
		}
	}
	slices.Sort(told)
	return told
}

// TestDriftOverAWeek runs drift twice a day. Watchers report each drift once when it appears
// and once when it ends, and nothing while hosts or providers do not answer.
func TestDriftOverAWeek(t *testing.T) {
	t.Parallel()
	w := newWeek(t)
	w.write(filepath.Join(w.dir, "ignore.fleet.hcl"), `ignore "vendor" {
  step   = "power"
  on     = "fleet=builders"
  owner  = "team-ci"
  reason = "the vendor examines it"
  until  = "2026-11-28"
}
`)
	w.macfleet(app.ExitDone, "apply", "--auto-approve")
	runners := strings.Fields(w.macfleet(app.ExitDone, "hosts", "-o", "name", "--on", "fleet=runners"))
	builder := strings.Fields(w.macfleet(app.ExitDone, "hosts", "-o", "name", "--on", "fleet=builders"))[0]
	a, b := runners[0], runners[1]
	all := strings.Fields(w.macfleet(app.ExitDone, "hosts", "-o", "name"))
	same := map[string]string{} // fingerprints by the known drift
	ask := func(exit int, complete bool, known string, want ...string) {
		t.Helper()
		at := w.now.Format("Mon 15:04")
		told, print, whole, notices := w.looks(exit)
		if diff := cmp.Diff(append([]string{}, want...), told); diff != "" || whole != complete {
			t.Errorf("%s: complete %t; reported (-want +got):\n%s", at, whole, diff)
		}
		if before, there := same[known]; there && before != print {
			t.Errorf("%s: the fingerprint of %q was %s and is %s", at, known, before, print)
		}
		if same[known] = print; (print == drift.Clean) != (known == "") {
			t.Errorf("%s: the fingerprint of %q is %s", at, known, print)
		}
		expired := w.now.After(time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC))
		equal(t, slices.Contains(notices, "ignore-expired"), expired, at, "notices", notices)
	}
	look := func(exit int, complete bool, known string, want ...string) {
		t.Helper()
		w.passes(all)
		ask(exit, complete, known, want...)
	}
	look(app.ExitDone, true, "") // Monday
	look(app.ExitDone, true, "")
	w.inject(a, "sleep-enabled") // Tuesday
	w.inject(builder, "sleep-enabled")
	look(app.ExitDifferent, true, "A", "new power")
	look(app.ExitDifferent, true, "A")
	w.inject(b, "hostname-edited") // Wednesday
	look(app.ExitDifferent, true, "A B", "new hostname")
	look(app.ExitDifferent, true, "A B")
	w.inject(a, "unreachable") // Thursday: its drift is kept, and B's stays
	look(app.ExitDifferent, false, "A B")
	w.passes(all)
	w.broken("scaleway/servers/*.json", func() { ask(app.ExitIncomplete, false, "A B") })
	w.passes(all)
	w.broken("kubernetes/namespaces/kube-system.json", func() { ask(app.ExitIncomplete, false, "A B") }) // Friday
	w.world(func(sim *sandbox.World) error { return sim.Heal(a, "unreachable") })
	look(app.ExitDifferent, true, "A B")
	w.macfleet(app.ExitDone, "apply", "--auto-approve", "--on", "name="+b) // Saturday
	look(app.ExitDifferent, true, "A", "recovered hostname")
	w.inject(b, "unreachable")
	look(app.ExitDifferent, false, "A")
	w.world(func(sim *sandbox.World) error { return sim.Heal(b, "unreachable") }) // Sunday: the ignore block has expired
	look(app.ExitDifferent, true, "A builder", "new power")
	look(app.ExitDifferent, true, "A builder")
	w.macfleet(app.ExitDone, "apply", "--auto-approve") // Monday
	look(app.ExitDone, true, "", "recovered power", "recovered power")
	w.inject(a, "unreachable") // without known drift
	told, print, _, _ := w.looks(app.ExitIncomplete)
	if len(told) > 0 || print != drift.Unknown {
		t.Errorf("in the end %q, %s", told, print)
	}
}

// dayFromNow VARIABLE N sets a variable to the day that is in N days, in UTC.
func dayFromNow(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: day VARIABLE N")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Setenv(args[0], time.Now().UTC().AddDate(0, 0, n).Format(time.DateOnly))
}
