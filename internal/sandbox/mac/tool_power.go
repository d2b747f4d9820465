package mac

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	powerPlist = "/Library/Preferences/com.apple.PowerManagement.plist"
	mains      = "AC Power" // the only power source of a Mac mini
)

// powerSetting is a setting with its names in pmset and on disk.
type powerSetting struct {
	name, key string
	factory   int
}

// powerSettings are in pmset's order.
func powerSettings() []powerSetting {
	return []powerSetting{
		{"Sleep On Power Button", "Sleep On Power Button", 1},
		{"autorestart", "Automatic Restart On Power Loss", 0},
		{"powernap", "DarkWakeBackgroundTasks", 1},
		{"networkoversleep", "PrioritizeNetworkReachabilityOverSleep", 0},
		{"disksleep", "Disk Sleep Timer", 10},
		{"sleep", "System Sleep Timer", 1},
		{"ttyskeepawake", "TTYSPreventSleep", 1},
		{"displaysleep", "Display Sleep Timer", 10},
		{"tcpkeepalive", "TCPKeepAlivePref", 1},
		{"womp", "Wake On LAN", 1},
	}
}

func factoryPower() map[string]any {
	values := map[string]any{}
	for _, s := range powerSettings() {
		values[s.key] = s.factory
	}
	return values
}

func pmset(p *proc) int {
	args := p.args()
	switch {
	case len(args) == 0:
		return p.usage("pmset <options>")
	case args[0] == "-g" && (len(args) == 1 || args[1] == "live"):
		return p.showPower("System-wide power settings:\nCurrently in use:\n")
	case args[0] == "-g" && args[1] == "custom":
		return p.showPower(mains + ":\n")
	case args[0] == "-a" || args[0] == "-c":
		return p.setPower(args[1:])
	}
	return p.unmodelled(strings.Join(args, " "))
}

func (p *proc) showPower(title string) int {
	var values map[string]any
	err := p.visit(func(v *visit) (err error) {
		values, err = v.readPlist(powerPlist)
		return err
	})
	if err != nil {
		return p.fail(exitFailed, "Error reading power management preferences: %s", why(err))
	}
	text := title
	for _, s := range powerSettings() {
		value, ok := dict(values, mains)[s.key]
		if !ok {
			value = s.factory
		}
		text += fmt.Sprintf(" %-20s %s\n", s.name, plistText(value, ""))
	}
	p.printf("%s", text)
	return 0
}

func (p *proc) setPower(args []string) int {
	if p.user.uid != 0 {
		_, _ = fmt.Fprintln(p.stderr, "'pmset' must be run as root...")
		return exitFailed
	}
	if len(args) == 0 || len(args)%2 != 0 {
		return p.usage("pmset <options>")
	}
	wanted := map[string]any{}
	for i := 0; i < len(args); i += 2 {
		key := powerKey(args[i])
		n, err := strconv.Atoi(args[i+1])
		switch {
		case key == "":
			return p.unmodelled(args[i])
		case err != nil || n < 0:
			return p.usage("pmset <options>")
		}
		wanted[key] = n
	}
	err := p.visit(func(v *visit) error {
		values, err := v.readPlist(powerPlist)
		if err != nil {
			return err
		}
		source := dict(values, mains)
		for key, value := range wanted {
			source[key] = value
		}
		values[mains] = source
		return v.writePlist(powerPlist, values, owner{Mode: 0o644})
	})
	if err != nil {
		return p.fail(exitFailed, "Error writing power management preferences: %s", why(err))
	}
	return 0
}

func powerKey(name string) string {
	for _, s := range powerSettings() {
		if s.name == name {
			return s.key
		}
	}
	return ""
}
