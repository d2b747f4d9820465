package steps_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// sudoer is a host whose sudo gives root for a password, for a good drop-in, or by
// other means. Its tools are this machine's, each behind a stub that may kill the
// script before the tool runs or after it.
type sudoer struct{ *scripttest.Mac }

const sudoPassword = "acme-Sentinel-1"

func newSudoer(t *testing.T, shell []string) sudoer {
	t.Helper()
	h := sudoer{scripttest.New(t, shell, "/etc/sudoers.d")}
	h.Folders("/etc/sudoers.d")
	h.Set("right", sudoPassword+"\n")
	h.Set("want", dropIn)
	tools := map[string]string{"chown": `[ "$1" = 0:0 ]`, "id": "echo m1", "sync": ":", "visudo": `! read -r _ && [ "$1" = -cf ] && cmp -s "$STATE/want" "$2"`}
	for _, name := range []string{"rm", "mktemp", "chmod", "mv"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		tools[name] = path + ` "$@"`
	}
	for name, text := range tools {
		h.Stub(text+scripttest.AfterCall, name)
	}
	h.Stub(scripttest.Text(t, "testdata/sudo.sh"), "sudo") // which becomes what it runs
	return h
}

// run runs a change's script and kills it before or after its nth tool; 0 is
// never. It returns the exit code, -1 when killed, and how many tools ran.
func (h sudoer) run(c plan.Command, input string, before, after int) (exit, tools int) {
	h.T.Helper()
	h.ForgetCalls()
	if h.KillAt(before); after > 0 {
		h.KillAfter(after)
	}
	a := h.Run(c, input)
	if all := h.Calls() + a.Stdout + a.Stderr; strings.Contains(all, "Sentinel") {
		h.T.Errorf("the password was seen:\n%s", all)
	}
	return a.Exit, h.Count()
}

// folder returns what counts in sudoers.d, and how many files there are that sudo skips because of the dot.
func (h sudoer) folder() (counts string, others int) {
	h.T.Helper()
	for name, text := range h.Files(h.Path("/etc/sudoers.d")) {
		if strings.Contains(name, ".") {
			others++
			continue
		}
		counts += name[1:] + ":" + text
	}
	return counts, others
}

func installation(t *testing.T) plan.Command {
	t.Helper()
	f := stepstest.Step(t, "sudo", wantsSudo()).Diff(sudoView(false, map[string]plan.Answer{"sudo.root": stepstest.Failed(1, needsWord)}))
	return f.Changes[0].Command
}

func removal(t *testing.T) plan.Command {
	t.Helper()
	v := sudoView(true, nil)
	v.Verified = true
	return stepstest.Step(t, "sudo", fleet.Spec{}).Diff(v).Changes[0].Command
}

func TestSudoInstall(t *testing.T) {
	t.Parallel()
	scripttest.InShells(t, func(t *testing.T, shell []string) {
		const whole = "macfleet:" + dropIn
		for name, c := range map[string]struct {
			edit  func(sudoer)
			input string
			exit  int
			want  string
		}{
			"right password":            {func(sudoer) {}, sudoPassword + "\n", 0, whole},
			"wrong password":            {func(sudoer) {}, "another\n", 1, ""},
			"no password":               {func(sudoer) {}, "", 1, ""},
			"root by other means":       {func(h sudoer) { h.Set("free", "") }, "", 0, whole},
			"sudo asks for none":        {func(h sudoer) { h.Set("nopasswd", "") }, "touch " + t.TempDir() + "/x\n", 0, whole},
			"an older one":              {func(h sudoer) { h.Put("/etc/sudoers.d/macfleet", "garbage") }, sudoPassword + "\n", 0, whole},
			"what a killed one left":    {func(h sudoer) { h.Put("/etc/sudoers.d/.macfleet.abc123", "half") }, sudoPassword + "\n", 0, whole},
			"another rule overrides it": {func(h sudoer) { h.Set("useless", "") }, sudoPassword + "\n", 1, whole},
			"refused by visudo": {func(h sudoer) { h.Set("want", "something else"); h.Put("/etc/sudoers.d/macfleet", "as it was") },
				sudoPassword + "\n", 1, "macfleet:as it was"},
		} {
			h := newSudoer(t, shell)
			c.edit(h)
			exit, _ := h.run(installation(t), c.input, 0, 0)
			if got, others := h.folder(); exit != c.exit || got != c.want || others != 0 {
				t.Errorf("%s: exit %d, want %d; %d other files besides %q", name, exit, c.exit, others, got)
			}
			if info, err := os.Stat(h.Path("/etc/sudoers.d/macfleet")); c.want == whole && (err != nil || info.Mode() != 0o440) {
				t.Errorf("%s: %+v, %v", name, info, err)
			}
		}
	})
}

// places are where the scripts of tests are killed: before and after each tool that one called.
func (h sudoer) places() (kinds []string) {
	for _, tool := range h.Tools() {
		kinds = append(kinds, "before "+tool, "after "+tool)
	}
	return kinds
}

// killed runs a change's script, which is killed at a place.
func (h sudoer) killed(c plan.Command, input string, place int) {
	h.T.Helper()
	if n := (place + 1) / 2; place%2 == 1 {
		h.run(c, input, n, 0)
	} else {
		h.run(c, input, 0, n)
	}
}

func TestSudoRemove(t *testing.T) {
	t.Parallel()
	scripttest.InShells(t, func(t *testing.T, shell []string) {
		for free, want := range map[bool]string{true: "", false: "macfleet:" + dropIn} {
			h := newSudoer(t, shell)
			h.Put("/etc/sudoers.d/macfleet", dropIn)
			h.Set("cached", "")
			if free {
				h.Set("free", "")
			}
			exit, _ := h.run(removal(t), "", 0, 0)
			if got, others := h.folder(); (exit == 0) != free || got != want || others != 0 {
				t.Errorf("root by other means %t: exit %d, %d other files besides %q", free, exit, others, got)
			}
		}
	})
}

// TestSudoKilled ends both scripts before and after each tool: the drop-in is whole or absent at every moment, and the next run finishes
// and cleans up.
func TestSudoKilled(t *testing.T) {
	t.Parallel()
	const whole = "macfleet:" + dropIn
	for name, tc := range map[string]struct {
		c           plan.Command
		input, want string
		least       int // tools that run
		ready       func(sudoer)
	}{
		"install": {installation(t), sudoPassword + "\n", whole, 8, func(sudoer) {}},
		"remove":  {removal(t), "", "", 1, func(h sudoer) { h.Put("/etc/sudoers.d/macfleet", dropIn); h.Set("free", "") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fresh := func(shell ...string) sudoer {
				h := newSudoer(t, shell)
				tc.ready(h)
				return h
			}
			all := fresh("dash")
			if _, tools := all.run(tc.c, tc.input, 0, 0); tools < tc.least {
				t.Fatalf("%d tools ran", tools)
			}
			for place, shell := range scripttest.Places(t, all.places(), scripttest.Shells...) {
				h := fresh(shell...)
				h.killed(tc.c, tc.input, place)
				if got, _ := h.folder(); got != "" && got != whole {
					t.Errorf("%s, killed at place %d: %q", shell, place, got)
				}
				exit, _ := h.run(tc.c, tc.input, 0, 0)
				if got, others := h.folder(); exit != 0 || got != tc.want || others != 0 {
					t.Errorf("%s, killed at place %d, and run again: exit %d, %d other files besides %q", shell, place, exit, others, got)
				}
			}
		})
	}
}
