package load

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
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

type ignoreBlock struct {
	Place  place
	Name   string  `hcl:"name,label"`
	Step   *string `hcl:"step,optional"`
	Code   *string `hcl:"code,optional" is:"code"`
	On     *string `hcl:"on,optional"`
	Field  *string `hcl:"field,optional" is:"note"`
	Owner  string  `hcl:"owner" is:"note"`
	Reason string  `hcl:"reason" is:"note"`
	Until  string  `hcl:"until"`
}

// ignores reads the drift that raises no alarm for some time. How far ahead a day
// may lie is judged when drift is looked for: what is loaded knows no time.
func (l *loader) ignores(blocks []*hclsyntax.Block, sc *scope) []fleet.Ignore {
	var out []fleet.Ignore
	first := make(map[string]hcl.Range)
	for _, b := range decodeAll[ignoreBlock](l, blocks, sc) {
		if before, twice := first[b.Name]; twice {
			l.fault(b.Place.label(), "Duplicate ignore", "There is an ignore %q already, at %s. Give each a name of its own.", b.Name, where(before))
		} else {
			first[b.Name] = b.Place.label()
		}
		out = append(out, l.ignore(b))
	}
	return out
}

func (l *loader) ignore(b ignoreBlock) fleet.Ignore {
	i := fleet.Ignore{Name: b.Name, Step: deref(b.Step), Code: deref(b.Code), On: deref(b.On), Field: deref(b.Field), Owner: b.Owner, Reason: b.Reason}
	l.name(b.Place.label(), "ignore", b.Name, fleet.CheckIgnoreName)
	if !b.Place.written("step") && !b.Place.written("code") {
		l.fault(b.Place.header(), "Missing argument", "An ignore block says what it is about: write step, code, or both.")
	}
	l.ignorePart(b)
	if b.Place.good["on"] {
		if _, err := fleet.SelectorTerms(i.On); err != nil {
			l.fault(b.Place.at("on"), "Invalid selector", "%s.", err)
		}
	}
	if b.Place.good["until"] {
		day, err := time.Parse(time.DateOnly, b.Until)
		if err != nil {
			l.fault(b.Place.at("until"), "Invalid day", "The argument %q must be a day such as \"2026-12-31\", not %s. The ignore holds until that day ends, in UTC.", "until", quoted(b.Until))
		}
		i.Until, l.ends[i.Name] = day, b.Place.at("until")
	}
	return i
}

// ignorePart checks that what an ignore names can drift.
func (l *loader) ignorePart(b ignoreBlock) {
	if !b.Place.good["step"] {
		return
	}
	known := append(stepNames(), fleet.DriftParts()...)
	if !slices.Contains(known, *b.Step) {
		l.fault(b.Place.at("step"), "Unknown step", "No step is named %s.%s", quoted(*b.Step), offer("", fleet.Nearest(*b.Step, known), known))
	}
}
