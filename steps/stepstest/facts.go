// Package stepstest has sample answers of hosts for tests and benchmarks.
package stepstest

import (
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// FactoryFacts returns what a Mac that nobody has touched answers to the probes
// of all steps. Tests and benchmarks plan against it.
func FactoryFacts() plan.Facts {
	missing := plan.Answer{Exit: 1, Stderr: "2026-11-21 10:00:00.000 defaults[411:5012] \n" +
		"The domain/default pair of (com.apple.screensaver, idleTime) does not exist\n"}
	return plan.Facts{
		"hostname.ComputerName":  inventory.Present(plan.Answer{Stdout: "Mac mini\n"}),
		"hostname.HostName":      inventory.Present(plan.Answer{Exit: 1, Stderr: "HostName: not set\n"}),
		"hostname.LocalHostName": inventory.Present(plan.Answer{Stdout: "Mac-mini\n"}),
		"power.settings": inventory.Present(plan.Answer{Stdout: "AC Power:\n Sleep On Power Button 1\n autorestart          0\n" +
			" powernap             1\n disksleep            10\n sleep                1\n displaysleep         10\n womp                 1\n"}),
		"power.screensaver":       inventory.Present(missing),
		"power.login-screensaver": inventory.Present(missing),
		"power.auto-logout":       inventory.Present(missing),
	}
}
