package load

import (
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/macfleet/macfleet/fleet"
)

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
