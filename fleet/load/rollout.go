package load

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/macfleet/macfleet/fleet"
)

// maxHosts is the most that a group can have.
const maxHosts = 1000

// rollout reads the limits of a change. What is left out is as it is without the
// block.
func (l *loader) rollout(b *rolloutBlock) fleet.Rollout {
	r := fleet.DefaultRollout()
	if b == nil {
		return r
	}
	r.Canary, r.FailureBudget, r.MinReady = or(b.Canary, r.Canary), or(b.FailureBudget, r.FailureBudget), or(b.MinReady, r.MinReady)
	if b.Place.good["max_unavailable"] {
		share, ok := parseShare(b.MaxUnavailable)
		if !ok {
			l.fault(b.Place.at("max_unavailable"), "Invalid share", "The argument %q must be a number of hosts from 1 to %d, or a share from \"1%%\" to \"100%%\".", "max_unavailable", maxHosts)
		}
		r.MaxUnavailable = share
	}
	if b.Soak != nil {
		d, err := time.ParseDuration(*b.Soak)
		if err != nil || d < 0 || d > maxSoak {
			l.fault(b.Place.at("soak"), "Invalid duration", "The argument %q must be a duration up to 24h, such as \"15m\" or \"1h30m\", not %s.", "soak", quoted(*b.Soak))
		}
		r.Soak = d
	}
	if b.Order != nil {
		if r.Order = fleet.Order(*b.Order); !slices.Contains(fleet.Orders(), r.Order) {
			l.fault(b.Place.at("order"), "Invalid order", "The argument %q must be \"name\" or \"idle\" (those with the fewest Pods first), not %s.", "order", quoted(*b.Order))
		}
	}
	return r
}

// maxSoak bounds how long one run may watch: it holds the lock meanwhile.
const maxSoak = 24 * time.Hour

// guardrails reads what no run may go beyond.
func (l *loader) guardrails(blocks []*hclsyntax.Block, sc *scope) fleet.Guardrails {
	b := decodeOnly[guardrailsBlock](l, blocks, sc)
	if b == nil {
		return fleet.Guardrails{}
	}
	g := fleet.Guardrails{MaxHosts: deref(b.MaxHosts)}
	if b.Place.good["windows"] && len(b.Windows) == 0 {
		l.fault(b.Place.at("windows"), "Empty list", "The argument \"windows\" must hold at least one window: in none nothing could ever be drained. Leave it out where hosts may be disturbed at any time.")
	}
	for _, text := range b.Windows {
		w, err := fleet.ParseWindow(text)
		if err != nil {
			l.fault(b.Place.at("windows"), "Invalid window", "%s.", err)
			continue
		}
		g.Windows = append(g.Windows, w)
	}
	return g
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
