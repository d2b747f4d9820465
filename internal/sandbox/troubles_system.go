package sandbox

import (
	"context"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// systemTroubles are about what macOS does by itself, and the tools that set it.
func systemTroubles() []trouble {
	var all []trouble
	for _, f := range mac.ToolFaults() {
		all = append(all, trouble{
			Incident: Incident{f.Name, f.Summary},
			remember: nothing, cause: byScript(f.Cause), lasts: scriptFinds(f.Shows, f.Text), cure: byScript(f.Cure),
		})
	}
	return append(all, trouble{
		Incident: Incident{"uptime-49-days", "the Mac has been up for 46 days: after 49 days and 17 hours macOS opens no network connections"},
		remember: needKubelet, cause: upFor(46 * day), lasts: upLong, cure: upFor(time.Hour),
	})
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

// scriptFinds reports that a script's output contains a text.
func scriptFinds(script, text string) func(context.Context, *victim) (bool, error) {
	return func(ctx context.Context, v *victim) (bool, error) {
		out, err := v.run(ctx, script+" 2>/dev/null || true")
		return strings.Contains(out, text), err
	}
}
