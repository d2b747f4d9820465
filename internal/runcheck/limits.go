package runcheck

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/runlog"
)

// limits are the limits of one fleet in the record.
type limits struct {
	runlog.FleetLimits
	healthy int // hosts whose Nodes were Ready when the run started
	away    int // how many of them may be disrupted at once
	soak    time.Duration
}

// readLimits reads the fleets' limits from the first line, and the number of healthy hosts from the plan.
func (c *checker) readLimits() {
	for _, f := range c.record.Head.Limits.Fleets {
		l := &limits{FleetLimits: f, healthy: len(c.record.Plan.Healthy[f.Fleet])}
		var err error
		if l.away, err = share(f.MaxUnavailable, l.healthy); err != nil {
			c.report("max_unavailable of %s: %v", f.Fleet, err)
		}
		if f.Soak != "" {
			if l.soak, err = time.ParseDuration(f.Soak); err != nil {
				c.report("soak of %s: %v", f.Fleet, err)
			}
		}
		c.fleets[f.Fleet] = l
	}
}

// share returns a number, or a percentage of n hosts: rounded down, and at least 1.
func share(text string, n int) (int, error) {
	digits, percent := strings.CutSuffix(text, "%")
	value, err := strconv.Atoi(digits)
	if err != nil {
		return 1, fmt.Errorf("%q is neither a number nor a percentage", text)
	}
	if percent {
		value = n * value / 100
	}
	return max(1, value), nil
}

// disrupts checks a healthy host that is about to be disrupted, and adds it to its fleet's order.
func (c *checker) disrupts(e runlog.Entry, h *host) {
	l := c.fleets[e.Fleet]
	if l == nil {
		c.report("%s starts, but its fleet %q has no limits", e.Host, e.Fleet)
		return
	}
	before := c.order[e.Fleet]
	c.order[e.Fleet] = append(before, h)
	away, broken := 1, 0
	for _, other := range before {
		switch {
		case !other.over:
			away++
		case other.failed:
			broken++
		}
	}
	if away > l.away {
		c.report("%s starts: %d healthy hosts of %s are disrupted, limit %d", e.Host, away, e.Fleet, l.away)
	}
	if l.MinReady > 0 && l.healthy-away < l.MinReady {
		c.report("%s starts: %d of the %d healthy hosts of %s are disrupted, %d must stay ready", e.Host, away, l.healthy, e.Fleet, l.MinReady)
	}
	if broken > l.FailureBudget {
		c.report("%s starts after %d failures in %s, limit %d", e.Host, broken, e.Fleet, l.FailureBudget)
	}
	canary := before[:min(l.Canary, len(before))]
	for _, first := range canary {
		switch {
		case first.over && first.failed:
			c.report("%s starts after the canary of %s failed", e.Host, e.Fleet)
		case len(before) < l.Canary: // it is a canary itself
		case !first.over:
			c.report("%s starts while the canary of %s is in progress", e.Host, e.Fleet)
		case e.Time.Sub(first.at) < l.soak:
			c.report("%s starts %s after the canary of %s, within its soak of %s", e.Host, e.Time.Sub(first.at), e.Fleet, l.soak)
		}
	}
}
