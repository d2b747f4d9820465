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
	type answers = map[string]plan.Answer
	settings := func(sleep, display, disk, restart int) answers {
		return answers{"power.settings": stepstest.Said(pmset(sleep, display, disk, restart))}
	}
	const restart, saver, login = "no-restart-after-power-loss power-set-restart root 1", "screensaver-enabled power-set-screensaver user 0", "screensaver-enabled power-set-login-screensaver root 0"
	const sleep = "sleep-enabled power-set-sleep root 0 0 0"
	for _, tc := range []struct {
		name      string
		facts     answers // next to those of a converged Mac
		want, run string
	}{
		{"all right", nil, "", ""},
		{"no one is ever logged out by default", answers{"power.auto-logout": stepstest.Failed(1, missing)}, "", ""},
		{"sleeps", settings(1, 0, 0, 1), "sleep: 1 min → never", sleep},
		{"three settings, one change", settings(1, 180, 10, 1), "sleep: 1 min → never, display sleep: 180 min → never, disk sleep: 10 min → never", sleep},
		{"stays off after a power loss", settings(0, 0, 0, 0), "restart after power loss: off → on", restart},
		{"restarts in a way no one knows", settings(0, 0, 0, 2), "restart after power loss: 2 → on", restart},
		{"screensaver", answers{"power.screensaver": stepstest.Said("1200\n")}, "screensaver: 1200 s → never", saver},
		{"screensaver by macOS's default", answers{"power.screensaver": stepstest.Failed(1, missing)}, "screensaver: macOS default → never", saver},
		{"screensaver at the login window", answers{"power.login-screensaver": stepstest.Failed(1, missing)}, "screensaver at the login window: macOS default → never", login},
		{"auto-logout", answers{"power.auto-logout": stepstest.Said("3600\n")}, "auto-logout: 3600 s → never", "auto-logout-enabled power-set-auto-logout root 0"},
		{"a number with white space", answers{"power.screensaver": stepstest.Said("  0 \n\n")}, "", ""},
		{"a number next to noise", answers{"power.screensaver": {Stdout: "0\n", Stderr: "noise"}}, "", ""},
		{"factory", factory(), "sleep: 1 min → never, display sleep: 10 min → never, disk sleep: 10 min → never, restart after power loss: off → on, " +
			"screensaver: macOS default → never, screensaver at the login window: macOS default → never", sleep + ", " + restart + ", " + saver + ", " + login},
	} {
		f := stepstest.Diff(t, "power", awake, stepstest.With(converged(), tc.facts))
		stepstest.Expect(t, tc.name, []string{tc.want, tc.run}, []string{stepstest.Moves(f), stepstest.Runs(f)})
		stepstest.Expect(t, tc.name+": unread", nil, stepstest.UnreadOf(f))
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
		desired   fleet.Power
		want, run string
	}{
		{fleet.Power{Sleep: new(5)}, "sleep: never → 5 min", "sleep-enabled power-set-sleep root 5 0 0"},
		{fleet.Power{DisplaySleep: new(6)}, "display sleep: never → 6 min", "sleep-enabled power-set-sleep root 0 6 0"},
		{fleet.Power{DiskSleep: new(7)}, "disk sleep: never → 7 min", "sleep-enabled power-set-sleep root 0 0 7"},
		{fleet.Power{Screensaver: new(60)}, "screensaver: never → 60 s, screensaver at the login window: never → 60 s",
			"screensaver-enabled power-set-screensaver user 60, screensaver-enabled power-set-login-screensaver root 60"},
		{fleet.Power{AutoLogout: new(90)}, "auto-logout: never → 90 s", "auto-logout-enabled power-set-auto-logout root 90"},
		{fleet.Power{RestartAfterPowerLoss: new(false)}, "restart after power loss: on → off", "no-restart-after-power-loss power-set-restart root 0"},
		{fleet.Power{Sleep: new(0), DisplaySleep: new(0), DiskSleep: new(0), Screensaver: new(0), AutoLogout: new(0), RestartAfterPowerLoss: new(true)}, "", ""},
	} {
		f := stepstest.Diff(t, "power", fleet.Spec{Power: &tc.desired}, converged())
		stepstest.Expect(t, "moved and run", []string{tc.want, tc.run}, []string{stepstest.Moves(f), stepstest.Runs(f)})
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
		want   string
	}{
		{"two sources that agree", stepstest.Said(battery + ok), false, ""},
		{"three sources that agree", stepstest.Said(battery + ok + strings.Replace(ok, "AC", "UPS", 1)), false, ""},
		{"two sources that agree on the wrong", stepstest.Said(strings.ReplaceAll(battery+ok, "disksleep            0", "disksleep            10")), false,
			"disk sleep: 10 min → never"},
		{"two sources that disagree", stepstest.Said(pmset(0, 10, 0, 1) + ok), true, ""},
		{"a source that lists less", stepstest.Said("Battery Power:\n sleep 0\n" + ok), false, ""},
		{"a remark after the value", stepstest.Said(strings.Replace(ok, "autorestart          1", "autorestart          1 (imposed by 7)", 1)), false, ""},
		{"no remark", stepstest.Said("AC Power:\n sleep 0\n displaysleep 0\n disksleep 0\n autorestart 1\n"), false, ""},
		{"tabs and carriage returns", stepstest.Said("AC Power:\r\n\tsleep\t0\r\n\tdisplaysleep\t0\r\n\tdisksleep\t0\r\n\tautorestart\t1\r\n"), false, ""},
		{"no end of the last line", stepstest.Said(strings.TrimSuffix(ok, "\n") + "\n sleep 0"), false, ""},
		{"a huge number", stepstest.Said(strings.Replace(ok, "disksleep            0", "disksleep            2147483647", 1)), false,
			"disk sleep: 2147483647 min → never"},
		{"a number that is too large", stepstest.Said(strings.Replace(ok, "disksleep            0", "disksleep            99999999999999999999", 1)), true, ""},
		{"a negative number", stepstest.Said(strings.Replace(ok, "disksleep            0", "disksleep            -1", 1)), true, ""},
		{"no number", stepstest.Said(strings.Replace(ok, "disksleep            0", "disksleep            never", 1)), true, ""},
		{"half a number", stepstest.Said(strings.Replace(ok, "disksleep            0", "disksleep            0.5", 1)), true, ""},
		{"a key without a value", stepstest.Said(strings.Replace(ok, "disksleep            0", "disksleep", 1)), true, ""},
		{"a key is missing", stepstest.Said(strings.Replace(ok, "autorestart", "autoreboot", 1)), true, ""},
		{"another case", stepstest.Said(strings.Replace(ok, " sleep ", " Sleep ", 1)), true, ""},
		{"empty", stepstest.Said(""), true, ""},
		{"garbage", stepstest.Said("\x00\xff\n\n::\n"), true, ""},
		{"usage", plan.Answer{Exit: 64, Stdout: "Usage: pmset <options>\n"}, true, ""},
		{"an exit code although all settings are printed", plan.Answer{Exit: 1, Stdout: ok}, true, ""},
		{"not found", stepstest.Failed(127, "sh: pmset: command not found\n"), true, ""},
	} {
		f := stepstest.Diff(t, "power", awake, stepstest.With(converged(), map[string]plan.Answer{"power.settings": tc.answer}))
		stepstest.Expect(t, tc.name, tc.want, stepstest.Moves(f))
		if (len(f.Unread) > 0) != tc.unread || tc.unread && (f.Unread[0].Probe != "power.settings" || f.Unread[0].Bytes != tc.answer.Stdout+tc.answer.Stderr) {
			t.Errorf("%s: unread %+v", tc.name, f.Unread)
		}
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

// FuzzPreference: whatever defaults says is a whole number, a missing key, or unread.
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
