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

// guardrails reads what no run may go beyond.
func (l *loader) guardrails(blocks []*hclsyntax.Block, sc *scope) fleet.Guardrails {
	b := decodeOnly(l, blocks, sc, guardrailsBlock{})
	for _, text := range b.Windows {
		w, _ := fleet.ParseWindow(text) // it was checked
		b.Guardrails.Windows = append(b.Guardrails.Windows, w)
	}
	return b.Guardrails
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

// ignores reads the drift that raises no alarm for some time. How far ahead a date
// may be is checked by drift, because loading uses no clock.
func (l *loader) ignores(blocks []*hclsyntax.Block, sc *scope) []fleet.Ignore {
	var out []fleet.Ignore
	for _, b := range decodeAll(l, blocks, sc, ignoreBlock{}) {
		if !b.Place.written("step") && !b.Place.written("code") {
			l.fault(b.Place.header(), missingArg, "An ignore block needs step, code, or both.")
		}
		b.Ignore.Until, l.ends[b.Name] = parseDay(b.Until), b.Place.at("until")
		out = append(out, b.Ignore)
	}
	return out
}

// parseDay returns when a day begins in UTC, or the zero time if text is not a date.
func parseDay(text string) time.Time {
	day, _ := time.Parse(time.DateOnly, text)
	return day
}

// stepFault says which parts of a host, or of the cluster, can drift.
func stepFault(text string) string {
	known := append(stepNames(), fleet.DriftParts()...)
	if slices.Contains(known, text) {
		return ""
	}
	return quoted(text) + "." + offer("", fleet.Nearest(text, known), known)
}
