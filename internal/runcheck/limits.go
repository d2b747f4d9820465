package runcheck

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/runlog"
)

// limits are those of one fleet, as the record has them.
type limits struct {
	runlog.FleetLimits
	healthy int // hosts whose Nodes were Ready when the run began
	away    int // of these, how many may be disturbed at once
	soak    time.Duration
}

// readLimits takes the fleets' limits from the first line, and the number of healthy
// hosts from the plan.
func (c *checker) readLimits() {
	for _, f := range c.record.Head.Limits.Fleets {
		l := &limits{FleetLimits: f, healthy: len(c.record.Plan.Healthy[f.Fleet])}
		var err error
		if l.away, err = share(f.MaxUnavailable, l.healthy); err != nil {
			c.say("max_unavailable of %s: %v", f.Fleet, err)
		}
		if f.Soak != "" {
			if l.soak, err = time.ParseDuration(f.Soak); err != nil {
				c.say("soak of %s: %v", f.Fleet, err)
			}
		}
		c.fleets[f.Fleet] = l
	}
}

// share returns how many of n hosts a number or a percentage is: rounded down, and at
// least one.
func share(text string, n int) (int, error) {
	digits, percent := strings.CutSuffix(text, "%")
	value, err := strconv.Atoi(digits)
	if err != nil {
		return 1, fmt.Errorf("%q is no number and no percentage", text)
	}
	if percent {
		value = n * value / 100
	}
	return max(1, value), nil
}

// disrupts checks a healthy host that is about to be disturbed, and enters it in its
// fleet's order.
func (c *checker) disrupts(e runlog.Entry, h *host) {
	l := c.fleets[e.Fleet]
	if l == nil {
		c.say("%s begins, and its fleet %q has no limits", e.Host, e.Fleet)
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
		c.say("%s begins, and %d healthy hosts of %s are disturbed, of at most %d", e.Host, away, e.Fleet, l.away)
	}
	if l.MinReady > 0 && l.healthy-away < l.MinReady {
		c.say("%s begins, and %d of the %d healthy hosts of %s are disturbed, of which %d must stay", e.Host, away, l.healthy, e.Fleet, l.MinReady)
	}
	if broken > l.FailureBudget {
		c.say("%s begins after %d failures in %s, of at most %d", e.Host, broken, e.Fleet, l.FailureBudget)
	}
	canary := before[:min(l.Canary, len(before))]
	for _, first := range canary {
		switch {
		case first.over && first.failed:
			c.say("%s begins after the canary of %s failed", e.Host, e.Fleet)
		case len(before) < l.Canary: // it is a canary itself
		case !first.over:
			c.say("%s begins beside the canary of %s", e.Host, e.Fleet)
		case e.Time.Sub(first.at) < l.soak:
			c.say("%s begins %s after the canary of %s, which is watched for %s", e.Host, e.Time.Sub(first.at), e.Fleet, l.soak)
		}
	}
}
