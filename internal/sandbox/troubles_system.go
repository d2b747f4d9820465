package sandbox

import (
	"context"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// systemTroubles are about what macOS does by itself.
func systemTroubles() []trouble {
	return []trouble{
		{
			Incident: Incident{"spotlight-on", "someone turned Spotlight on"},
			remember: nothing, cause: byScript("mdutil -a -i on"), lasts: scriptFinds("mdutil -a -s", "Indexing enabled"), cure: byScript("mdutil -a -i off"),
		},
		{
			Incident: Incident{"updates-on", "someone turned macOS's automatic updates on"},
			remember: nothing, cause: byScript(updatesScript("1")), lasts: scriptFinds("defaults read /Library/Preferences/com.apple.SoftwareUpdate", "AutomaticallyInstallMacOSUpdates = 1"),
			cure: byScript(updatesScript("0")),
		},
		{
			Incident: Incident{"uptime-49-days", "the Mac has been up for 46 days: after 49 days and 17 hours macOS opens no network connections"},
			remember: needKubelet, cause: upFor(46 * day), lasts: upLong, cure: upFor(time.Hour),
		},
	}
}

const day = 24 * time.Hour

func upFor(d time.Duration) func(context.Context, *victim) error {
	return onMac(func(m *mac.Machine) error { return m.UpFor(d) })
}

func upLong(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	up, err := machine.Up()
	return up > 45*day, err
}

// updatesScript sets whether macOS installs updates.
func updatesScript(on string) string {
	return "for key in AutomaticCheckEnabled AutomaticDownload AutomaticallyInstallMacOSUpdates; do defaults write /Library/Preferences/com.apple.SoftwareUpdate \"$key\" -bool " + on + "; done"
}

// scriptFinds reports that a script's output contains a text.
func scriptFinds(script, text string) func(context.Context, *victim) (bool, error) {
	return func(ctx context.Context, v *victim) (bool, error) {
		out, err := v.run(ctx, script+" 2>/dev/null || true")
		return strings.Contains(out, text), err
	}
}
