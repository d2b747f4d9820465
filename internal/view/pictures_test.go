package view_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

// picture is one output for people. Two goldens keep it: NAME-80-colour.txt, a
// terminal of 80 columns, and NAME-pipe.txt.
type picture struct {
	name string
	draw func(terminal) string
}

// shown is a picture of what one writer prints.
func shown(name string, show func(*view.Text)) picture {
	return picture{name, func(k terminal) string {
		var b bytes.Buffer
		show(view.NewText(&b, k.width, k.colour))
		return b.String()
	}}
}

// narrow and wide are the two tables of hosts.
var (
	narrow = view.HostsOptions{Now: time.Date(2026, 11, 22, 5, 19, 0, 0, time.UTC)}
	wide   = view.HostsOptions{Now: narrow.Now, Wide: true}
)

// pictures are all outputs that goldens keep.
func pictures(t *testing.T) []picture {
	t.Helper()
	unproven := engine.Result{Done: 1, NotStarted: 1, LeftCordoned: []engine.LeftCordoned{{Host: memberOf, Fleet: "runners"}},
		LeftFenced: []engine.LeftFenced{{Host: memberOf, Fleet: "runners", Err: errors.New("lock-lost: the run stopped")}},
		Lost:       errors.New("lock-lost: the run stopped: the lock is lost: not renewed for 30s")}
	stopped := engine.Result{Done: 1, NotStarted: 2, Interrupted: true, After: everything()}
	failed := engine.Result{Done: 1, NotStarted: 2, After: everything(),
		Failures: []engine.Failure{{Action: power(member(2, "runners")), Err: errors.New("power-set-sleep failed with exit code 1: 'pmset' must be run as root...")}}}
	shows := map[string]func(*view.Text){
		"plan": func(v *view.Text) { v.Plan(everything(), view.PlanForm{}) },
		"full": func(v *view.Text) {
			v.Plan(everything(), view.PlanForm{Full: true})
			v.Plan(joining(), view.PlanForm{Full: true})
			v.Plan(nodes(), view.PlanForm{Full: true})
			v.Plan(clean(), view.PlanForm{Full: true})
		},
		"clean": func(v *view.Text) { v.Plan(clean(), view.PlanForm{}) },
		"limited": func(v *view.Text) {
			v.Plan(limited(clean()), view.PlanForm{})
			v.Plan(limited(everything()), view.PlanForm{})
			showApplied(v, engine.Result{Done: 4, After: limited(clean())})
			v.Hosts(limited(clean()), narrow)
		},
		"silent": func(v *view.Text) {
			v.Plan(silent(), view.PlanForm{})
			showApplied(v, engine.Result{Done: 4, After: silent()})
			v.Hosts(silent(), narrow)
		},
		"joining":      func(v *view.Text) { v.Plan(joining(), view.PlanForm{}) },
		"joininghosts": func(v *view.Text) { v.Hosts(joining(), narrow) },
		"joined":       func(v *view.Text) { showApplied(v, waited()) },
		"nodes":        func(v *view.Text) { v.Plan(nodes(), view.PlanForm{}) },
		"crashing":     crashing,
		"hosts":        func(v *view.Text) { v.Hosts(everything(), narrow) },
		"wide":         func(v *view.Text) { v.Hosts(everything(), wide) },
		"applied": func(v *view.Text) {
			showApplied(v, failed)
			v.Result(view.Ending{Changed: true, Result: failed, Left: runlog.Record{}.LeftBy(failed), Took: 192 * time.Second, Exit: 3})
		},
		"stopped": func(v *view.Text) {
			showApplied(v, stopped)
			v.Remaining(everything().Actions, everything().Names(), "macfleet apply")
			v.Result(view.Ending{What: "stopped", Changed: true, Result: stopped, Left: runlog.Record{}.LeftBy(stopped), Took: time.Hour, Exit: 3})
		},
		"stats": func(v *view.Text) { v.Stats(cost()) },
		"done": func(v *view.Text) {
			done := engine.Result{Done: 4, After: clean()}
			showApplied(v, done)
			v.Result(view.Ending{Changed: true, Result: done, Took: 2 * time.Second})
			v.Result(view.Ending{What: "cancelled", Took: time.Second, Exit: 1})
			v.Cancelled(errors.New(`cancelled: you typed "y"; nothing was changed`))
		},
		"unproven": func(v *view.Text) { showApplied(v, unproven) },
		"explain": func(v *view.Text) {
			for _, x := range explanations() {
				v.Explain(x, "")
				v.Explain(x, "power")
				v.Scripts(x, "")
			}
		},
		"scripts": func(v *view.Text) { v.PlanScripts(everything()) },
		"drains":  drains,
		"doctor": func(v *view.Text) {
			v.Checkup(sick(), false)
			v.Checkup(doctor.Checkup{Name: "acme-pool-03", Server: "acme-pool-03", Healthy: true, Checks: sick().Checks[1:3]}, true)
			v.Checkup(doctor.Checkup{Name: "acme-pool-03", Server: "acme-pool-03", Checks: sick().Checks[1:4]}, false)
		},
		"planfile": func(v *view.Text) {
			f := kept()
			v.Kept("plan.json", f)
			v.PlanFile(f, view.PlanForm{}, f.MadeAt)
			v.PlanFile(f, view.PlanForm{}, f.ExpiresAt)
			v.Approved("plan.json", f, clean(), func(a plan.Action) string {
				if a.Kind == plan.RunStep {
					return "k3h7w2mq5a"
				}
				return ""
			})
		},
	}
	for name, of := range drifts() {
		p, r := of()
		exit := 0
		if len(r.Items) > 0 {
			exit = 2
		} else if !r.Complete {
			exit = 3
		}
		shows["drift-"+name] = func(v *view.Text) { v.Drift(p, r, exit) }
	}
	out := []picture{errorBlocks(disturbed(t))}
	for name, show := range shows {
		out = append(out, shown(name, show))
	}
	return out
}

// terminal is what is written to.
type terminal struct {
	name   string
	width  int
	colour bool
}

// kinds are the terminals that people use.
func kinds() []terminal {
	return []terminal{{"80", 80, false}, {"80-colour", 80, true}, {"200", 200, false}, {"200-colour", 200, true}, {"pipe", 0, false}}
}

// TestGolden keeps each picture as a terminal with colour and as a pipe show it. A
// file that no picture is compared with keeps nothing.
func TestGolden(t *testing.T) {
	t.Parallel()
	stale := make(map[string]bool)
	files, err := filepath.Glob("testdata/*-*.txt")
	must(t, err)
	for _, file := range files {
		stale[filepath.Base(file)] = true
	}
	for _, p := range pictures(t) {
		for _, k := range kinds() {
			if name := p.name + "-" + k.name + ".txt"; k.name == "80-colour" || k.name == "pipe" {
				golden(t, name, p.draw(k))
				delete(stale, name)
			}
		}
	}
	for name := range stale {
		t.Errorf("testdata/%s belongs to no picture: remove it", name)
	}
}

// TestEveryTerminal holds for all pictures and for all that plan, drift, hosts and
// explain say of each trouble: colour adds nothing but colour, no line of more than one
// word or command is wider than the terminal, and a terminal of any width shows the same
// words in the same order, but for tables, which drop columns.
func TestEveryTerminal(t *testing.T) {
	t.Parallel()
	all := pictures(t)
	for _, d := range disturbed(t) {
		for _, p := range d.pictures {
			all = append(all, picture{d.code + " in " + p.name, p.draw})
		}
	}
	for _, p := range all {
		text := make(map[string]string)
		for _, k := range kinds() {
			text[k.name] = p.draw(k)
			fits(t, p.name+" at "+k.name, k, text[k.name])
		}
		for _, width := range []string{"80", "200"} {
			if diff := cmp.Diff(text[width], escapes.ReplaceAllString(text[width+"-colour"], "")); diff != "" {
				t.Errorf("%s: colour changes what %s columns show:\n%s", p.name, width, diff)
			}
		}
		table := strings.Contains(text["200"], "NAME  ") || strings.Contains(text["200"], "FLEET  ")
		if diff := cmp.Diff(letters(text["pipe"]), letters(text["200"])); diff != "" && !table {
			t.Errorf("%s: 200 columns show other words than a pipe:\n%s", p.name, diff)
		}
		if table {
			continue // it drops columns, and shortens the last
		}
		if diff := cmp.Diff(letters(text["200"]), letters(text["80"])); diff != "" {
			t.Errorf("%s: 80 columns show other words than 200:\n%s", p.name, diff)
		}
	}
}

var escapes = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// letters returns a text without its spaces.
func letters(text string) string { return strings.Join(strings.Fields(text), "") }

// fits checks that nothing but whole words and commands is wider than the terminal, and
// that there is no escape code without colour.
func fits(t *testing.T, name string, k terminal, text string) {
	t.Helper()
	if !k.colour && strings.Contains(text, "\x1b") {
		t.Errorf("%s: an escape code without colour", name)
	}
	for line := range strings.Lines(text) {
		if w := lipgloss.Width(strings.TrimSuffix(line, "\n")); k.width > 0 && w > k.width && len(view.Pieces(line)) > 1 {
			t.Errorf("%s: a line of %d columns: %s", name, w, line)
		}
	}
}

// golden compares a text with the file of testdata that keeps it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (run with -update to accept):\n%s", name, diff)
	}
}
