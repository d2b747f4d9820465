package load

import (
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/macfleet/macfleet/fleet"
)

// maxHosts is the most that a group can have.
const maxHosts = 1000

// rollout reads the limits of a change, or returns nil where the block is
// missing. What the block leaves out is one host at a time, no canary, no soak
// and no tolerated failure.
func (l *loader) rollout(b *rolloutBlock) *fleet.Rollout {
	if b == nil {
		return nil
	}
	l.warn(b.Place.header(), "No effect yet", "The rollout block is checked, but it has no effect yet in this version of macfleet.")
	r := &fleet.Rollout{
		MaxUnavailable: fleet.Share{Count: 1},
		Canary:         deref(b.Canary),
		Soak:           or(b.Soak, "0s"),
		FailureBudget:  deref(b.FailureBudget),
	}
	if b.Place.good["max_unavailable"] {
		share, ok := parseShare(b.MaxUnavailable)
		if !ok {
			l.fault(b.Place.at("max_unavailable"), "Invalid share", "The argument %q must be a number of hosts from 1 to %d, or a share from \"1%%\" to \"100%%\".", "max_unavailable", maxHosts)
		}
		r.MaxUnavailable = share
	}
	if d, err := time.ParseDuration(r.Soak); err != nil || d < 0 {
		l.fault(b.Place.at("soak"), "Invalid duration", "The argument %q must be a duration such as \"15m\" or \"1h30m\", not %s.", "soak", quoted(r.Soak))
	}
	return r
}

// parseShare reads a number of hosts (2 or "2") or a share of them ("20%").
func parseShare(val cty.Value) (fleet.Share, bool) {
	switch val.Type() {
	case cty.Number:
		n, accuracy := val.AsBigFloat().Int64()
		ok := accuracy == big.Exact && n >= 1 && n <= maxHosts
		return fleet.Share{Count: int(n)}, ok
	case cty.String:
		text, percent := strings.CutSuffix(val.AsString(), "%")
		n, err := strconv.Atoi(text)
		ok := err == nil && n >= 1 && strconv.Itoa(n) == text
		if percent {
			return fleet.Share{Percent: n}, ok && n <= 100
		}
		return fleet.Share{Count: n}, ok && n <= maxHosts
	}
	return fleet.Share{}, false
}
