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
	codeSleepEnabled            = plan.NewCode("sleep-enabled", plan.Warning, "the Mac sleeps when it is idle, which stops virtual machines")
	codeNoRestartAfterPowerLoss = plan.NewCode("no-restart-after-power-loss", plan.Warning, "the Mac stays off after a power loss")
	codeScreensaverEnabled      = plan.NewCode("screensaver-enabled", plan.Warning, "a screen saver is on")
	codeAutoLogoutEnabled       = plan.NewCode("auto-logout-enabled", plan.Warning, "macOS logs the user out after a while, which ends all virtual machines")
)

// power keeps a Mac awake, its session open, and brings it back after a power
// loss. A sleeping Mac, a locked or ended session cannot start a virtual
// machine: VZErrorDomain code -9.
type power struct{ wish *fleet.Power }

func (power) ID() plan.StepID { return "power" }

func (p power) Wanted() string {
	if p.wish == nil {
		return ""
	}
	return kit.Wanted(p.settings(nil))
}

func (p power) Probes() []plan.Probe {
	if p.wish == nil {
		return nil
	}
	return []plan.Probe{
		scripts.Probe(p.ID(), "settings", plan.Login),
		scripts.Probe(p.ID(), "screensaver", plan.Login),
		scripts.Probe(p.ID(), "login-screensaver", plan.Login),
		scripts.Probe(p.ID(), "auto-logout", plan.Login),
	}
}

// settings are both sides in normal form; what was seen is by the names that the tools
// have for it. An idle time is in the unit of the tool that sets it.
func (p power) settings(seen map[string]int) []kit.Setting {
	w := p.wish
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

// unset stands for a setting that nobody made; macOS then uses a default of its
// own that is not 0.
const unset = -1

func (p power) Diff(v plan.View) plan.Finding {
	if p.wish == nil {
		return plan.Finding{} // the settings from before are not known, so none are restored
	}
	r := kit.Reader{Facts: v.Facts}
	seen := readPmset(&r, "power.settings", "sleep", "displaysleep", "disksleep", "autorestart")
	// macOS has a screen saver of its own, and logs nobody out by itself.
	seen["power.screensaver"] = r.Preference("power.screensaver", unset)
	seen["power.login-screensaver"] = r.Preference("power.login-screensaver", unset)
	seen["power.auto-logout"] = r.Preference("power.auto-logout", 0)
	all, w := p.settings(seen), p.wish
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

// readPmset reads some keys of `pmset -g custom`: a section per power source,
// lines of key and value, and after the value perhaps a remark. A Mac mini has
// mains alone; where another source is listed too, both must agree, because
// pmset -a sets both.
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
			r.Odd(id, fmt.Sprintf("pmset -g custom says %q", strings.TrimSpace(line)), a)
			return found
		}
		found[words[0]] = n
	}
	if a.Exit != 0 || len(found) < len(keys) {
		r.Odd(id, fmt.Sprintf("pmset -g custom ended with exit %d and %d of %d settings", a.Exit, len(found), len(keys)), a)
	}
	return found
}

// powerText is a value as a person reads it.
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
