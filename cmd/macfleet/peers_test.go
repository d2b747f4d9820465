package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/app"
	"github.com/macfleet/macfleet/internal/sandbox"
)

// ambush forwards an apply's JSON lines, and injects an incident when a host's step
// starts: before the action itself, which waits for the line.
type ambush struct {
	bytes.Buffer
	host, step string
	spring     func()
}

func (a *ambush) Write(line []byte) (int, error) {
	var m struct {
		Type string
		Hook struct{ Host, Step string }
	}
	if json.Unmarshal(line, &m) == nil && m.Type == "apply_start" && m.Hook.Host == a.host && m.Hook.Step == a.step {
		a.spring()
	}
	return a.Buffer.Write(line)
}

// TestApplyCutInChange breaks the connection in the command that changes a host, in the
// middle of an apply of the real main. The change is made and its answer is lost. The run
// reports it, and applying again after the healing converges.
func TestApplyCutInChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, copyExample(dir))
	folder := filepath.Join(dir, "world")
	macfleet := func(wanted int, out *ambush, args ...string) {
		t.Helper()
		var errs bytes.Buffer
		args = append([]string{"-C", dir, "-e", "production", "--sandbox=" + folder}, args...)
		if got := run(t.Context(), args, app.Streams{In: strings.NewReader(""), Out: out, Err: &errs}); got != wanted {
			t.Fatalf("macfleet %q: exit %d, wanted %d\n%s\n%s", args, got, wanted, out, &errs)
		}
	}
	world := func(do func(*sandbox.World) error) {
		t.Helper()
		w, err := sandbox.Open(folder, sandbox.Seed{})
		if err != nil {
			t.Error(err)
			return
		}
		if err := do(w); err != nil {
			t.Error(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	inject := func(host, incident string) {
		t.Helper()
		world(func(w *sandbox.World) error { return w.Inject(host, incident) })
	}
	macfleet(app.ExitDone, &ambush{}, "apply", "--auto-approve")
	var names ambush
	macfleet(app.ExitDone, &names, "hosts", "-o", "name", "--on", "fleet=runners")
	one := strings.Fields(names.String())[0]
	// The first step opens the connection, the second one loses it.
	inject(one, "hostname-edited")
	inject(one, "sleep-enabled")
	sprung := 0
	out := &ambush{host: one, step: "power", spring: func() { sprung++; inject(one, "dies-in-command") }}
	macfleet(app.ExitIncomplete, out, "apply", "--auto-approve", "--json")
	if sprung != 1 || !strings.Contains(out.String(), "the host closed the connection") {
		t.Errorf("the incident happened %d times:\n%s", sprung, out)
	}
	world(func(w *sandbox.World) error { return w.Heal(one, "dies-in-command") })
	var drift ambush
	macfleet(app.ExitDone, &drift, "drift") // the change was made
	macfleet(app.ExitDone, &ambush{}, "apply", "--auto-approve")
	var plan ambush
	macfleet(app.ExitDone, &plan, "plan", "--detailed-exitcode")
	has(t, plan.String(), "No changes")
}
