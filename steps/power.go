package steps

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
)

// The codes that are raised here.
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
	all := powerSettings(powerState{}, p.wanted())
	return kit.Wanted(all[:])
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

// powerState is every setting in normal form. An idle time is in the unit of
// the tool that sets it: minutes for pmset, seconds for the others.
type powerState struct {
	sleep, displaySleep, diskSleep int
	restart                        int // 1 = restarts after a power loss
	screensaver, loginScreensaver  int // unset where macOS uses its own default
	autoLogout                     int
}

// unset stands for a setting that nobody made; macOS then uses a default of its
// own that is not 0.
const unset = -1

func (p power) Diff(v plan.View) plan.Finding {
	if p.wish == nil {
		return plan.Finding{} // the settings from before are not known, so none are restored
	}
	seen, unread := readPower(v.Facts)
	if len(unread) > 0 {
		return plan.Finding{Unread: unread}
	}
	want := p.wanted()
	all := powerSettings(seen, want)
	var f plan.Finding
	groups, rest := powerGroups(want), all[:]
	for _, g := range groups {
		n := len(g.values)
		if diff := kit.Fields(rest[:n]...); len(diff) > 0 {
			if f.Changes == nil {
				f.Changes = make([]plan.Change, 0, len(groups))
			}
			f.Changes = append(f.Changes, plan.Change{
				Reason: plan.Reason{Code: g.code, Text: kit.IsNot(diff)}, Fields: diff, Command: g.command()})
		}
		rest = rest[n:]
	}
	f.Facts = kit.Facts(all[:])
	return f
}

// powerGroup is the settings that one script makes: one an argument.
type powerGroup struct {
	code   plan.Code // of the reason, when one of them differs
	script string
	as     plan.User
	values []int // the script's arguments
}

func (g powerGroup) command() plan.Command {
	args := make([]string, 0, len(g.values))
	for _, v := range g.values {
		args = append(args, strconv.Itoa(v))
	}
	return scripts.Command(g.script, g.as, args...)
}

func powerSettings(seen, want powerState) [7]kit.Setting {
	return [...]kit.Setting{
		minutes("sleep", seen.sleep, want.sleep),
		minutes("display sleep", seen.displaySleep, want.displaySleep),
		minutes("disk sleep", seen.diskSleep, want.diskSleep),
		kit.Compare("restart after power loss", onOff(seen.restart), onOff(want.restart)),
		seconds("screensaver", seen.screensaver, want.screensaver),
		seconds("screensaver at the login window", seen.loginScreensaver, want.loginScreensaver),
		seconds("auto-logout", seen.autoLogout, want.autoLogout),
	}
}

// powerGroups lists the scripts, whose arguments together are the settings of
// powerSettings, in that order.
func powerGroups(want powerState) []powerGroup {
	return []powerGroup{
		{codeSleepEnabled, "power-set-sleep", plan.Root, []int{want.sleep, want.displaySleep, want.diskSleep}},
		{codeNoRestartAfterPowerLoss, "power-set-restart", plan.Root, []int{want.restart}},
		{codeScreensaverEnabled, "power-set-screensaver", plan.Login, []int{want.screensaver}},
		{codeScreensaverEnabled, "power-set-login-screensaver", plan.Root, []int{want.loginScreensaver}},
		{codeAutoLogoutEnabled, "power-set-auto-logout", plan.Root, []int{want.autoLogout}},
	}
}

// wanted is the wish as a state.
func (p power) wanted() powerState {
	w := p.wish
	state := powerState{
		sleep: *w.Sleep, displaySleep: *w.DisplaySleep, diskSleep: *w.DiskSleep,
		screensaver: *w.Screensaver, loginScreensaver: *w.Screensaver, autoLogout: *w.AutoLogout,
	}
	if *w.RestartAfterPowerLoss {
		state.restart = 1
	}
	return state
}

func readPower(facts plan.Facts) (powerState, []plan.Unread) {
	r := kit.Reader{Facts: facts}
	var s powerState
	readPmset(&r, "power.settings", map[string]*int{
		"sleep": &s.sleep, "displaysleep": &s.displaySleep, "disksleep": &s.diskSleep, "autorestart": &s.restart})
	s.screensaver = r.Preference("power.screensaver", unset)
	s.loginScreensaver = r.Preference("power.login-screensaver", unset)
	s.autoLogout = r.Preference("power.auto-logout", 0) // macOS logs nobody out by itself
	return s, r.Unread
}

// pmset reads the wanted keys of `pmset -g custom`: a section per power source,
// lines of key and value, and after the value perhaps a remark. A Mac mini has
// mains alone; where another source is listed too, both must agree, because
// pmset -a sets both.
func readPmset(r *kit.Reader, id string, into map[string]*int) {
	a, ok := r.Answer(id)
	if !ok {
		return
	}
	found := make(map[string]bool)
	for line := range strings.Lines(a.Stdout) {
		var words [2]string // key and value
		i := 0
		for word := range strings.FieldsSeq(line) {
			if words[i] = word; i == 1 {
				break
			}
			i++
		}
		key, value := words[0], words[1]
		if value == "" || into[key] == nil {
			continue
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || found[key] && *into[key] != n {
			r.Odd(id, fmt.Sprintf("pmset -g custom says %q", strings.TrimSpace(line)), a)
			return
		}
		*into[key], found[key] = n, true
	}
	if a.Exit != 0 || len(found) < len(into) {
		r.Odd(id, fmt.Sprintf("pmset -g custom ended with exit %d and %d of %d settings", a.Exit, len(found), len(into)), a)
	}
}

func minutes(name string, seen, wanted int) kit.Setting {
	return kit.Compare(name, span(seen, "min"), span(wanted, "min"))
}

func seconds(name string, seen, wanted int) kit.Setting {
	return kit.Compare(name, span(seen, "s"), span(wanted, "s"))
}

func span(n int, unit string) string {
	switch n {
	case unset:
		return "macOS default"
	case 0:
		return "never"
	}
	return strconv.Itoa(n) + " " + unit
}

func onOff(n int) string {
	switch n {
	case 0:
		return "off"
	case 1:
		return "on"
	}
	return strconv.Itoa(n)
}
