package steps

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
)

var (
	codeSleepEnabled            = plan.NewCode("sleep-enabled", plan.Warning, "the Mac sleeps when idle, which stops its virtual machines")
	codeNoRestartAfterPowerLoss = plan.NewCode("no-restart-after-power-loss", plan.Warning, "the Mac stays off after a power loss")
	codeScreensaverEnabled      = plan.NewCode("screensaver-enabled", plan.Warning, "the screen saver is on")
	codeAutoLogoutEnabled       = plan.NewCode("auto-logout-enabled", plan.Warning, "macOS logs the idle user out, which stops all virtual machines")
)

// power keeps a Mac awake and its session open, and restarts it after a power loss.
// Without a live, unlocked session no virtual machine starts: VZErrorDomain code -9.
type power struct{ desired *fleet.Power }

func (power) ID() plan.StepID { return "power" }

func (p power) Wanted() string {
	if p.desired == nil {
		return ""
	}
	return kit.Wanted(p.settings(nil))
}

func (p power) Probes() []plan.Probe {
	if p.desired == nil {
		return nil
	}
	return []plan.Probe{
		scripts.Probe(p.ID(), "settings", plan.Login),
		scripts.Probe(p.ID(), "screensaver", plan.Login),
		scripts.Probe(p.ID(), "login-screensaver", plan.Login),
		scripts.Probe(p.ID(), "auto-logout", plan.Login),
	}
}

// settings compares seen and wanted values. seen is keyed by the tools' own names; idle
// times are in the unit of the tool that sets them.
func (p power) settings(seen map[string]int) []kit.Setting {
	w := p.desired
	setting := func(name, key, unit string, wanted int) kit.Setting {
		return kit.Compare(name, powerText(seen[key], unit), powerText(wanted, unit))
	}
	return []kit.Setting{
		setting("sleep", "sleep", "min", *w.Sleep),
		setting("display sleep", "displaysleep", "min", *w.DisplaySleep),
		setting("disk sleep", "disksleep", "min", *w.DiskSleep),
		setting("restart after power loss", "autorestart", "", kit.Choose(*w.RestartAfterPowerLoss, 1, 0)),
		setting("screensaver", "power.screensaver", "s", *w.Screensaver),
		setting("screensaver at the login window", "power.login-screensaver", "s", *w.Screensaver),
		setting("auto-logout", "power.auto-logout", "s", *w.AutoLogout),
	}
}

// unset marks a missing setting: macOS then uses its own default, which is not 0.
const unset = -1

func (p power) Diff(v plan.View) plan.Finding {
	if p.desired == nil {
		return plan.Finding{} // the earlier settings are unknown, so nothing is restored
	}
	r := kit.Reader{Facts: v.Facts}
	seen := readPmset(&r, "power.settings", "sleep", "displaysleep", "disksleep", "autorestart")
	// macOS defaults: the screen saver is on, auto-logout is off.
	seen["power.screensaver"] = r.Preference("power.screensaver", unset)
	seen["power.login-screensaver"] = r.Preference("power.login-screensaver", unset)
	seen["power.auto-logout"] = r.Preference("power.auto-logout", 0)
	all, w := p.settings(seen), p.desired
	set := func(name string, as plan.User, code plan.Code, settings []kit.Setting, wanted ...int) plan.Change {
		diff := kit.Fields(settings...)
		if len(diff) == 0 {
			return plan.Change{}
		}
		var args []string
		for _, n := range wanted {
			args = append(args, strconv.Itoa(n))
		}
		return plan.Change{Reason: plan.Reason{Code: code}, Fields: diff, Command: scripts.Command("power-set-"+name, as, args...)}
	}
	return r.Found(all,
		set("sleep", plan.Root, codeSleepEnabled, all[:3], *w.Sleep, *w.DisplaySleep, *w.DiskSleep),
		set("restart", plan.Root, codeNoRestartAfterPowerLoss, all[3:4], kit.Choose(*w.RestartAfterPowerLoss, 1, 0)),
		set("screensaver", plan.Login, codeScreensaverEnabled, all[4:5], *w.Screensaver),
		set("login-screensaver", plan.Root, codeScreensaverEnabled, all[5:6], *w.Screensaver),
		set("auto-logout", plan.Root, codeAutoLogoutEnabled, all[6:], *w.AutoLogout))
}

// readPmset reads some keys of `pmset -g custom`: one section per power source, lines of
// key, value and an optional remark. Values of several sources must agree, because
// pmset -a sets all of them.
func readPmset(r *kit.Reader, id string, keys ...string) map[string]int {
	found := make(map[string]int)
	a, ok := r.Answer(id)
	if !ok {
		return found
	}
	for line := range strings.Lines(a.Stdout) {
		words := strings.Fields(line)
		if len(words) < 2 || !slices.Contains(keys, words[0]) {
			continue
		}
		n, err := strconv.Atoi(words[1])
		if before, twice := found[words[0]]; err != nil || n < 0 || twice && before != n {
			r.Unexpected(id, fmt.Sprintf("unexpected line in pmset -g custom: %q", strings.TrimSpace(line)), a)
			return found
		}
		found[words[0]] = n
	}
	if a.Exit != 0 || len(found) < len(keys) {
		r.Unexpected(id, fmt.Sprintf("pmset -g custom: exit code %d, %d of %d settings printed", a.Exit, len(found), len(keys)), a)
	}
	return found
}

// powerText formats a value for display.
func powerText(n int, unit string) string {
	switch {
	case unit == "" && (n == 0 || n == 1):
		return kit.Switched(n == 1)
	case unit == "":
		return strconv.Itoa(n)
	case n == unset:
		return "macOS default"
	case n == 0:
		return "never"
	}
	return strconv.Itoa(n) + " " + unit
}
