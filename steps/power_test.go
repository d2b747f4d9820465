package steps_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

func ptr[T any](v T) *T { return &v }

var awake = fleet.Spec{Power: &fleet.Power{}}

// pmset prints settings as `pmset -g custom` does.
func pmset(sleep, display, disk, restart int) string {
	return fmt.Sprintf("AC Power:\n Sleep On Power Button 1\n autorestart          %d\n powernap             1\n networkoversleep     0\n"+
		" disksleep            %d\n sleep                %d (sleep prevented by powerd, sharingd)\n ttyskeepawake        1\n displaysleep         %d (display sleep prevented by WindowServer)\n"+
		" tcpkeepalive         1\n womp                 1\n", restart, disk, sleep, display)
}

const missing = "2026-11-21 10:00:00.000 defaults[411:5012] \nThe domain/default pair of (com.apple.screensaver, idleTime) does not exist\n"

// converged are the facts of a Mac that never sleeps.
func converged() plan.Facts {
	return stepstest.With(nil, map[string]plan.Answer{"power.settings": stepstest.Said(pmset(0, 0, 0, 1)), "power.screensaver": stepstest.Said("0\n"),
		"power.login-screensaver": stepstest.Said("0\n"), "power.auto-logout": stepstest.Said("0\n")})
}

func TestPower(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		facts map[string]plan.Answer // next to those of a converged Mac
		want  []plan.Field
		run   [][]string
	}{
		{"all right", nil, nil, nil},
		{"no one is ever logged out by default", map[string]plan.Answer{"power.auto-logout": stepstest.Failed(1, missing)}, nil, nil},
		{"sleeps", map[string]plan.Answer{"power.settings": stepstest.Said(pmset(1, 0, 0, 1))},
			[]plan.Field{{Name: "sleep", Before: "1 min", After: "never"}}, [][]string{{"sleep-enabled", "power-set-sleep", "root", "0", "0", "0"}}},
		{"three settings, one change", map[string]plan.Answer{"power.settings": stepstest.Said(pmset(1, 180, 10, 1))},
			[]plan.Field{{Name: "sleep", Before: "1 min", After: "never"}, {Name: "display sleep", Before: "180 min", After: "never"}, {Name: "disk sleep", Before: "10 min", After: "never"}},
			[][]string{{"sleep-enabled", "power-set-sleep", "root", "0", "0", "0"}}},
		{"stays off after a power loss", map[string]plan.Answer{"power.settings": stepstest.Said(pmset(0, 0, 0, 0))},
			[]plan.Field{{Name: "restart after power loss", Before: "off", After: "on"}}, [][]string{{"no-restart-after-power-loss", "power-set-restart", "root", "1"}}},
		{"restarts in a way no one knows", map[string]plan.Answer{"power.settings": stepstest.Said(pmset(0, 0, 0, 2))},
			[]plan.Field{{Name: "restart after power loss", Before: "2", After: "on"}}, [][]string{{"no-restart-after-power-loss", "power-set-restart", "root", "1"}}},
		{"screensaver", map[string]plan.Answer{"power.screensaver": stepstest.Said("1200\n")},
			[]plan.Field{{Name: "screensaver", Before: "1200 s", After: "never"}}, [][]string{{"screensaver-enabled", "power-set-screensaver", "user", "0"}}},
		{"screensaver by macOS's default", map[string]plan.Answer{"power.screensaver": stepstest.Failed(1, missing)},
			[]plan.Field{{Name: "screensaver", Before: "macOS default", After: "never"}}, [][]string{{"screensaver-enabled", "power-set-screensaver", "user", "0"}}},
		{"screensaver at the login window", map[string]plan.Answer{"power.login-screensaver": stepstest.Failed(1, missing)},
			[]plan.Field{{Name: "screensaver at the login window", Before: "macOS default", After: "never"}}, [][]string{{"screensaver-enabled", "power-set-login-screensaver", "root", "0"}}},
		{"auto-logout", map[string]plan.Answer{"power.auto-logout": stepstest.Said("3600\n")},
			[]plan.Field{{Name: "auto-logout", Before: "3600 s", After: "never"}}, [][]string{{"auto-logout-enabled", "power-set-auto-logout", "root", "0"}}},
		{"a number with white space", map[string]plan.Answer{"power.screensaver": stepstest.Said("  0 \n\n")}, nil, nil},
		{"a number next to noise", map[string]plan.Answer{"power.screensaver": {Stdout: "0\n", Stderr: "noise"}}, nil, nil},
		{"factory", factory(), []plan.Field{
			{Name: "sleep", Before: "1 min", After: "never"}, {Name: "display sleep", Before: "10 min", After: "never"}, {Name: "disk sleep", Before: "10 min", After: "never"},
			{Name: "restart after power loss", Before: "off", After: "on"}, {Name: "screensaver", Before: "macOS default", After: "never"},
			{Name: "screensaver at the login window", Before: "macOS default", After: "never"}},
			[][]string{{"sleep-enabled", "power-set-sleep", "root", "0", "0", "0"}, {"no-restart-after-power-loss", "power-set-restart", "root", "1"},
				{"screensaver-enabled", "power-set-screensaver", "user", "0"}, {"screensaver-enabled", "power-set-login-screensaver", "root", "0"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := stepstest.Diff(t, "power", awake, stepstest.With(converged(), tc.facts))
			stepstest.Expect(t, "fields", tc.want, stepstest.FieldsOf(f))
			stepstest.Expect(t, "changes", tc.run, stepstest.ChangesOf(f))
			stepstest.Expect(t, "unread", nil, stepstest.UnreadOf(f))
		})
	}
}

func factory() map[string]plan.Answer {
	out := make(map[string]plan.Answer)
	for id, seen := range stepstest.FactoryFacts() {
		if a, ok := seen.Get(); ok && strings.HasPrefix(id, "power.") {
			out[id] = a
		}
	}
	return out
}

// TestPowerSettings: the configuration overrides the defaults, and zero is a setting too.
func TestPowerSettings(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		desired fleet.Power
		want    []plan.Field
		run     [][]string
	}{
		{"sleep", fleet.Power{Sleep: ptr(5)}, []plan.Field{{Name: "sleep", Before: "never", After: "5 min"}}, [][]string{{"sleep-enabled", "power-set-sleep", "root", "5", "0", "0"}}},
		{"display sleep", fleet.Power{DisplaySleep: ptr(6)}, []plan.Field{{Name: "display sleep", Before: "never", After: "6 min"}}, [][]string{{"sleep-enabled", "power-set-sleep", "root", "0", "6", "0"}}},
		{"disk sleep", fleet.Power{DiskSleep: ptr(7)}, []plan.Field{{Name: "disk sleep", Before: "never", After: "7 min"}}, [][]string{{"sleep-enabled", "power-set-sleep", "root", "0", "0", "7"}}},
		{"screensaver", fleet.Power{Screensaver: ptr(60)}, []plan.Field{{Name: "screensaver", Before: "never", After: "60 s"}, {Name: "screensaver at the login window", Before: "never", After: "60 s"}},
			[][]string{{"screensaver-enabled", "power-set-screensaver", "user", "60"}, {"screensaver-enabled", "power-set-login-screensaver", "root", "60"}}},
		{"auto-logout", fleet.Power{AutoLogout: ptr(90)}, []plan.Field{{Name: "auto-logout", Before: "never", After: "90 s"}}, [][]string{{"auto-logout-enabled", "power-set-auto-logout", "root", "90"}}},
		{"restart", fleet.Power{RestartAfterPowerLoss: ptr(false)}, []plan.Field{{Name: "restart after power loss", Before: "on", After: "off"}}, [][]string{{"no-restart-after-power-loss", "power-set-restart", "root", "0"}}},
		{"the defaults, written", fleet.Power{Sleep: ptr(0), DisplaySleep: ptr(0), DiskSleep: ptr(0), Screensaver: ptr(0), AutoLogout: ptr(0), RestartAfterPowerLoss: ptr(true)}, nil, nil},
	} {
		f := stepstest.Diff(t, "power", fleet.Spec{Power: &tc.desired}, converged())
		stepstest.Expect(t, tc.name+": fields", tc.want, stepstest.FieldsOf(f))
		stepstest.Expect(t, tc.name+": changes", tc.run, stepstest.ChangesOf(f))
	}
}

func TestPmset(t *testing.T) {
	t.Parallel()
	battery := strings.Replace(pmset(0, 0, 0, 1), "AC Power", "Battery Power", 1)
	ok := pmset(0, 0, 0, 1)
	for _, tc := range []struct {
		name   string
		answer plan.Answer
		unread bool
		want   []plan.Field
	}{
		{"two sources that agree", stepstest.Said(battery + ok), false, nil},
		{"three sources that agree", stepstest.Said(battery + ok + strings.Replace(ok, "AC", "UPS", 1)), false, nil},
		{"two sources that agree on the wrong", stepstest.Said(strings.ReplaceAll(battery+ok, "disksleep            0", "disksleep            10")), false,
			[]plan.Field{{Name: "disk sleep", Before: "10 min", After: "never"}}},
		{"two sources that disagree", stepstest.Said(pmset(0, 10, 0, 1) + ok), true, nil},
		{"a source that lists less", stepstest.Said("Battery Power:\n sleep 0\n" + ok), false, nil},
		{"a remark after the value", stepstest.Said(strings.Replace(ok, "autorestart          1", "autorestart          1 (imposed by 7)", 1)), false, nil},
		{"no remark", stepstest.Said("AC Power:\n sleep 0\n displaysleep 0\n disksleep 0\n autorestart 1\n"), false, nil},
		{"tabs and carriage returns", stepstest.Said("AC Power:\r\n\tsleep\t0\r\n\tdisplaysleep\t0\r\n\tdisksleep\t0\r\n\tautorestart\t1\r\n"), false, nil},
		{"no end of the last line", stepstest.Said(strings.TrimSuffix(ok, "\n") + "\n sleep 0"), false, nil},
		{"a huge number", stepstest.Said(strings.Replace(ok, "disksleep            0", "disksleep            2147483647", 1)), false,
			[]plan.Field{{Name: "disk sleep", Before: "2147483647 min", After: "never"}}},
		{"a number that is too large", stepstest.Said(strings.Replace(ok, "disksleep            0", "disksleep            99999999999999999999", 1)), true, nil},
		{"a negative number", stepstest.Said(strings.Replace(ok, "disksleep            0", "disksleep            -1", 1)), true, nil},
		{"no number", stepstest.Said(strings.Replace(ok, "disksleep            0", "disksleep            never", 1)), true, nil},
		{"half a number", stepstest.Said(strings.Replace(ok, "disksleep            0", "disksleep            0.5", 1)), true, nil},
		{"a key without a value", stepstest.Said(strings.Replace(ok, "disksleep            0", "disksleep", 1)), true, nil},
		{"a key is missing", stepstest.Said(strings.Replace(ok, "autorestart", "autoreboot", 1)), true, nil},
		{"another case", stepstest.Said(strings.Replace(ok, " sleep ", " Sleep ", 1)), true, nil},
		{"empty", stepstest.Said(""), true, nil},
		{"garbage", stepstest.Said("\x00\xff\n\n::\n"), true, nil},
		{"usage", plan.Answer{Exit: 64, Stdout: "Usage: pmset <options>\n"}, true, nil},
		{"an exit code although all settings are printed", plan.Answer{Exit: 1, Stdout: ok}, true, nil},
		{"not found", stepstest.Failed(127, "sh: pmset: command not found\n"), true, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := stepstest.Diff(t, "power", awake, stepstest.With(converged(), map[string]plan.Answer{"power.settings": tc.answer}))
			stepstest.Expect(t, "fields", tc.want, stepstest.FieldsOf(f))
			if tc.unread {
				stepstest.Expect(t, "unread", []string{"power.settings"}, stepstest.UnreadOf(f))
				stepstest.Expect(t, "what was printed", tc.answer.Stdout+tc.answer.Stderr, f.Unread[0].Bytes)
			} else {
				stepstest.Expect(t, "unread", nil, stepstest.UnreadOf(f))
			}
		})
	}
}

func TestPreferenceUnread(t *testing.T) {
	t.Parallel()
	for _, probe := range []string{"power.screensaver", "power.login-screensaver", "power.auto-logout"} {
		for what, a := range map[string]plan.Answer{
			"empty":                      stepstest.Said(""),
			"garbage":                    stepstest.Said("\x00\xff"),
			"a word":                     stepstest.Said("never\n"),
			"half a number":              stepstest.Said("0.5\n"),
			"hexadecimal":                stepstest.Said("0x10\n"),
			"two numbers":                stepstest.Said("0\n0\n"),
			"a list":                     stepstest.Said("(\n    0\n)\n"),
			"negative":                   stepstest.Said("-1\n"),
			"too large":                  stepstest.Said("99999999999999999999\n"),
			"a number with an exit":      {Exit: 1, Stdout: "0\n"},
			"silent failure":             stepstest.Failed(1, ""),
			"another failure":            stepstest.Failed(1, "defaults: could not open\n"),
			"missing with another exit":  stepstest.Failed(2, missing),
			"missing, but with exit 0":   stepstest.Failed(0, missing),
			"not found":                  stepstest.Failed(127, "sh: defaults: command not found\n"),
			"missing, said in the wrong": {Exit: 1, Stdout: missing},
		} {
			f := stepstest.Diff(t, "power", awake, stepstest.With(converged(), map[string]plan.Answer{probe: a}))
			stepstest.Expect(t, probe+" "+what, []string{probe}, stepstest.UnreadOf(f))
		}
		lost := converged()
		lost[probe] = inventory.Unread[plan.Answer]("needs root")
		f := stepstest.Diff(t, "power", awake, lost)
		if len(f.Unread) != 1 || f.Unread[0] != (plan.Unread{Probe: probe, Why: "needs root"}) {
			t.Errorf("%s lost: %+v", probe, f.Unread)
		}
	}
}

// TestEveryUnreadAnswerIsNamed: one lost answer does not hide another.
func TestEveryUnreadAnswerIsNamed(t *testing.T) {
	t.Parallel()
	stepstest.Expect(t, "unread", []string{"power.settings", "power.screensaver", "power.login-screensaver", "power.auto-logout"},
		stepstest.UnreadOf(stepstest.Diff(t, "power", awake, nil)))
}

// FuzzPmset: whatever pmset says is four settings or unread.
func FuzzPmset(f *testing.F) {
	for _, seed := range []string{pmset(0, 0, 0, 1), pmset(1, 10, 10, 0), pmset(0, 1, 0, 1) + pmset(0, 0, 0, 1), "", "AC Power:\n",
		"sleep 0\ndisplaysleep 0\ndisksleep 0\nautorestart 1", "sleep -1\n", "sleep 99999999999999999999\n", "sleep\n", "sleep 0 (sleep prevented by x)\r\n",
		" sleep\x000\n", "sleep +0\n", "sleep 007\n"} {
		f.Add(0, seed)
		f.Add(1, seed)
	}
	f.Fuzz(func(t *testing.T, exit int, stdout string) {
		found := stepstest.Diff(t, "power", awake, stepstest.With(converged(), map[string]plan.Answer{"power.settings": {Exit: exit, Stdout: stdout}}))
		if len(found.Unread) > 0 {
			return
		}
		if exit != 0 {
			t.Errorf("exit %d is a reading", exit)
		}
		for _, key := range []string{"sleep", "displaysleep", "disksleep", "autorestart"} {
			if !strings.Contains(stdout, key) {
				t.Errorf("%q says nothing of %s", stdout, key)
			}
		}
		for _, field := range stepstest.FieldsOf(found) {
			if strings.Contains(field.Before, "-") || field.Before == "macOS default" {
				t.Errorf("%q gives %+v", stdout, field)
			}
		}
	})
}

// FuzzPreference: whatever defaults says is a whole number, a missing key, or
// unread.
func FuzzPreference(f *testing.F) {
	for _, seed := range []struct {
		exit           int
		stdout, stderr string
	}{
		{0, "0\n", ""}, {0, "1200\n", ""}, {1, "", missing}, {0, "", ""}, {1, "0\n", ""}, {0, "-1\n", ""}, {0, "99999999999999999999\n", ""},
		{0, "true\n", ""}, {2, "", missing}, {0, "+5\n", "noise"}, {0, "(\n 1\n)\n", ""}, {127, "", "sh: defaults: not found"},
	} {
		f.Add(seed.exit, seed.stdout, seed.stderr)
	}
	f.Fuzz(func(t *testing.T, exit int, stdout, stderr string) {
		answer := plan.Answer{Exit: exit, Stdout: stdout, Stderr: stderr}
		found := stepstest.Diff(t, "power", awake, stepstest.With(converged(), map[string]plan.Answer{"power.screensaver": answer}))
		if len(found.Unread) > 0 {
			return
		}
		before := "never"
		if moved := stepstest.FieldsOf(found); len(moved) > 0 {
			before = moved[0].Before
		}
		switch {
		case before == "macOS default":
			if exit != 1 || !strings.Contains(stderr, "does not exist") {
				t.Errorf("exit %d, %q counts as a missing key", exit, stderr)
			}
		case exit != 0 || strings.Contains(before, "-") || strings.TrimSpace(stdout) == "":
			t.Errorf("exit %d, %q counts as %q", exit, stdout, before)
		}
	})
}
