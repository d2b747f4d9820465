package load

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/macfleet/macfleet/fleet"
)

var (
	familyPattern = regexp.MustCompile(`^[A-Z][A-Za-z]+$`)
	typePattern   = regexp.MustCompile(`^[A-Z0-9]+(-[A-Z0-9]+)*$`)
)

// fleets checks the fleet blocks and merges each with the defaults.
func (l *loader) fleets(blocks []fleetBlock, defaults defaultsBlock) []fleet.Fleet {
	var all []fleet.Fleet
	var noOS []string
	for _, b := range blocks {
		if withoutOS(b) {
			noOS = append(noOS, quoted(b.Name))
		}
		beneath := l.layerOf(fleet.InDefaults, defaults.Place, defaults.Spec)
		beneath.spec = beneath.spec.WithBuiltIn()
		inherited := l.disable(b, beneath)
		all = append(all, fleet.Fleet{Name: b.Name, OS: cmp.Or(b.OS, defaults.OS), Rollout: b.Rollout,
			Groups: l.groups(b, l.layerOf(fleet.InFleet, b.Place, b.Spec).over(inherited))})
	}
	if len(noOS) > 0 && !defaults.Place.written("os") && !l.mayStand("os") && !l.mayStand("defaults") {
		// They are probably one fault.
		l.fault(blocks[slices.IndexFunc(blocks, withoutOS)].Place.header(), "Missing argument", "The argument \"os\" is required in a fleet block or in the defaults, and neither has it. It is missing for %s.", listed(noOS))
	}
	return all
}

func withoutOS(b fleetBlock) bool { return !b.Place.written("os") }

// familyFault returns what an os that is not the name of a macOS family is, or "".
func familyFault(os string) string {
	switch {
	case familyPattern.MatchString(os):
		return ""
	case strings.ContainsAny(os, "0123456789"):
		return "names one version, which Scaleway withdraws when it offers the next. Name the family instead, such as \"Tahoe\" or \"Sequoia\"."
	}
	suggestion := ""
	if r, size := utf8.DecodeRuneInString(os); size > 0 {
		if better := strings.ToUpper(string(r)) + os[size:]; familyPattern.MatchString(better) {
			suggestion = better
		}
	}
	return "is not the name of a macOS family, such as \"Tahoe\" or \"Sequoia\"." + didYouMean(suggestion)
}

// groups merges each group of a fleet with what the fleet has.
func (l *loader) groups(b fleetBlock, inherited layer) []fleet.Group {
	var all []fleet.Group
	for _, g := range b.Groups {
		own := l.layerOf(fleet.InGroup, g.Place, g.Spec).over(inherited)
		kind, also := g.Type, []string(nil)
		if len(g.Types) > 0 {
			kind, also = g.Types[0], g.Types[1:]
		}
		all = append(all, fleet.Group{Name: g.Name, Type: kind, Also: also, Replicas: g.Replicas, Spec: own.spec.WithDefaults(), Sources: own.sources})
	}
	return all
}

// typeFault returns how a server type looks that a text is not, or "".
func typeFault(text string) string {
	if typePattern.MatchString(text) {
		return ""
	}
	better := strings.ReplaceAll(strings.ToUpper(text), "_", "-")
	if !typePattern.MatchString(better) {
		better = ""
	}
	return "it must look like \"M2-L\"." + didYouMean(better)
}

// disable returns what a fleet inherits of the defaults.
func (l *loader) disable(b fleetBlock, defaults layer) layer {
	const summary = "Nothing to disable"
	steps := stepNames()
	for i, name := range b.Disable {
		at := elementRange(b.Place.attrs["disable"].Expr, i)
		switch {
		case !slices.Contains(steps, name):
			l.fault(at, "Unknown step", "No step is named %s.%s The steps of this version are %s.", quoted(name), didYouMean(fleet.Nearest(name, steps)), listed(steps))
		case slices.Index(b.Disable, name) < i:
			l.fault(at, summary, "The step %q is listed twice. Remove one.", name)
		case b.writes(name) != "":
			l.fault(at, "Disabled and wanted", "The fleet disables the step %q, and %s has a %s block. Remove one of them.", name, b.writes(name), name)
		case !hasStep(defaults.spec, name) && !l.mayStand(name):
			l.fault(at, summary, "The defaults have no %s block, so this fleet does not inherit one. Remove %q from the list.", name, name)
		}
	}
	return defaults.without(b.Disable)
}

// writes returns which block of the fleet has the step, or "".
func (b fleetBlock) writes(step string) string {
	if hasStep(b.Spec, step) {
		return "it also"
	}
	for _, g := range b.Groups {
		if hasStep(g.Spec, step) {
			return "its group " + quoted(g.Name)
		}
	}
	return ""
}
