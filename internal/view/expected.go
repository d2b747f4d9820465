package view

import (
	"fmt"
	"time"

	"github.com/macfleet/macfleet/plan"
)

// expected says how long an apply takes.
func expected(f plan.Forecast) string {
	return roughly(f.Seconds) + given(f.Pods, " plus the time that Pods need to end")
}

// tooLate says how many hosts the end of the maintenance window defers.
func tooLate(f plan.Forecast) string {
	return count(f.Late, "host") + " would start after the maintenance window closes and be deferred (outside-window)"
}

// basedOn says what a forecast rests on.
func basedOn(f plan.Forecast) string {
	switch runs := count(f.Runs, "recorded run"); {
	case f.Runs == 0:
		return "from defaults"
	case f.Defaults:
		return "from " + runs + " and defaults"
	default:
		return "from " + runs
	}
}

// roughly rounds a time as far as a forecast can be right: to ten seconds, then to a minute, to five and to ten.
func roughly(seconds int) string {
	to := func(unit time.Duration) time.Duration { return (time.Duration(seconds) * time.Second).Round(unit) }
	switch d := to(time.Minute); {
	case to(10*time.Second) < time.Minute:
		return fmt.Sprintf("~%d s", max(10, int(to(10*time.Second).Seconds())))
	case d < 10*time.Minute:
		return fmt.Sprintf("~%d min", max(1, int(d.Minutes())))
	case to(5*time.Minute) < time.Hour:
		return fmt.Sprintf("~%d min", int(to(5*time.Minute).Minutes()))
	}
	d := to(10 * time.Minute)
	return fmt.Sprintf("~%d h", int(d.Hours())) + given(d%time.Hour > 0, " %d min", int(d.Minutes())%60)
}
