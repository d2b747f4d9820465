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
	all := powerSettings(p.table())
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

// powerSetting is one setting: where it is read, what sets it, and both sides. An idle
// time is in the unit of the tool that sets it.
type powerSetting struct {
	name         string
	unit         string // of an idle time; none: it is on or off
	key          string // of `pmset -g custom`; none: a preference
	probe        string
	group        *powerGroup
	wanted, seen int
}

// powerGroup is settings that one script makes: one an argument, in the order of the table.
type powerGroup struct {
	code   plan.Code // of the reason, when one of them differs
	script string
	as     plan.User
}

// unset stands for a setting that nobody made; macOS then uses a default of its
// own that is not 0.
const unset = -1

var (
	setSleep            = &powerGroup{codeSleepEnabled, "power-set-sleep", plan.Root}
	setRestart          = &powerGroup{codeNoRestartAfterPowerLoss, "power-set-restart", plan.Root}
	setScreensaver      = &powerGroup{codeScreensaverEnabled, "power-set-screensaver", plan.Login}
	setLoginScreensaver = &powerGroup{codeScreensaverEnabled, "power-set-login-screensaver", plan.Root}
	setAutoLogout       = &powerGroup{codeAutoLogoutEnabled, "power-set-auto-logout", plan.Root}
)

// table lists the settings with what is wanted; what one group sets stands together.
func (p power) table() [7]powerSetting {
	w := p.wish
	return [...]powerSetting{
		{name: "sleep", unit: "min", key: "sleep", group: setSleep, wanted: *w.Sleep},
		{name: "display sleep", unit: "min", key: "displaysleep", group: setSleep, wanted: *w.DisplaySleep},
		{name: "disk sleep", unit: "min", key: "disksleep", group: setSleep, wanted: *w.DiskSleep},
		{name: "restart after power loss", key: "autorestart", group: setRestart, wanted: kit.Choose(*w.RestartAfterPowerLoss, 1, 0)},
		{name: "screensaver", unit: "s", probe: "power.screensaver", group: setScreensaver, wanted: *w.Screensaver},
		{name: "screensaver at the login window", unit: "s", probe: "power.login-screensaver", group: setLoginScreensaver, wanted: *w.Screensaver},
		{name: "auto-logout", unit: "s", probe: "power.auto-logout", group: setAutoLogout, wanted: *w.AutoLogout},
	}
}

// powerSettings are both sides in normal form.
func powerSettings(table [7]powerSetting) (out [7]kit.Setting) {
	for i, s := range table {
		out[i] = kit.Compare(s.name, powerText(s.seen, s.unit), powerText(s.wanted, s.unit))
	}
	return out
}

func (p power) Diff(v plan.View) plan.Finding {
	if p.wish == nil {
		return plan.Finding{} // the settings from before are not known, so none are restored
	}
	r := kit.Reader{Facts: v.Facts}
	table := p.table()
	readPower(&r, table[:])
	if len(r.Unread) > 0 {
		return plan.Finding{Unread: r.Unread}
	}
	all := powerSettings(table)
	f := plan.Finding{Facts: kit.Facts(all[:])}
	for i := 0; i < len(table); {
		g, from := table[i].group, i
		for i < len(table) && table[i].group == g {
			i++
		}
		diff := kit.Fields(all[from:i]...)
		if len(diff) == 0 {
			continue
		}
		var args []string
		for _, s := range table[from:i] {
			args = append(args, strconv.Itoa(s.wanted))
		}
		f.Changes = append(f.Changes, plan.Change{
			Reason: plan.Reason{Code: g.code, Text: kit.IsNot(diff)}, Fields: diff, Command: scripts.Command(g.script, g.as, args...)})
	}
	return f
}

// readPower fills in what was seen.
func readPower(r *kit.Reader, table []powerSetting) {
	keys := make(map[string]*int, len(table))
	for i := range table {
		if table[i].key != "" {
			keys[table[i].key] = &table[i].seen
		}
	}
	readPmset(r, "power.settings", keys)
	for i, s := range table {
		if s.probe != "" {
			// macOS has a screen saver of its own, and logs nobody out by itself.
			table[i].seen = r.Preference(s.probe, kit.Choose(s.group == setAutoLogout, 0, unset))
		}
	}
}

// readPmset reads the wanted keys of `pmset -g custom`: a section per power source,
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
