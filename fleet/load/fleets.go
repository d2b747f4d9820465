package load

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/macfleet/macfleet/fleet"
)

var (
	familyPattern = regexp.MustCompile(`^[A-Z][A-Za-z]+$`)
	typePattern   = regexp.MustCompile(`^[A-Z0-9]+(-[A-Z0-9]+)*$`)
)

// defaults reads what every fleet inherits.
func (l *loader) defaults(blocks []*hclsyntax.Block, sc *scope) *defaultsBlock {
	b := decodeOnly[defaultsBlock](l, blocks, sc)
	if b == nil {
		return &defaultsBlock{}
	}
	l.family(b.Place, b.OS)
	return b
}

// fleets checks the fleet blocks and merges each with the defaults.
func (l *loader) fleets(blocks []fleetBlock, defaults *defaultsBlock) []fleet.Fleet {
	var all []fleet.Fleet
	var noOS []string
	first := map[string]hcl.Range{}
	for _, b := range blocks {
		if l.unique(first, "fleet", b.Name, b.Place.label()) {
			l.name(b.Place.label(), "fleet", b.Name, fleet.CheckPart)
		}
		l.family(b.Place, b.OS)
		if withoutOS(b) {
			noOS = append(noOS, quoted(b.Name))
		}
		beneath := layerOf(fleet.InDefaults, defaults.Place, defaults.Spec, "os")
		beneath.spec = beneath.spec.WithBuiltIn()
		inherited := l.disable(b, beneath)
		f := fleet.Fleet{Name: b.Name, OS: deref(defaults.OS), Rollout: l.rollout(b.Rollout)}
		if b.OS != nil {
			f.OS = *b.OS
		}
		f.Groups = l.groups(b, layerOf(fleet.InFleet, b.Place, b.Spec, "os").over(inherited))
		all = append(all, f)
	}
	if len(noOS) > 0 && !defaults.Place.written("os") && !l.mayStand("os") && !l.mayStand("defaults") {
		// They are probably one fault.
		l.fault(blocks[slices.IndexFunc(blocks, withoutOS)].Place.header(), "Missing argument", "The argument \"os\" is required in a fleet block or in the defaults, and neither has it. It is missing for %s.", listed(noOS))
	}
	return all
}

func withoutOS(b fleetBlock) bool { return !b.Place.written("os") }

// family checks that an os is the name of a macOS family.
func (l *loader) family(at place, os *string) {
	const summary = "Invalid os"
	if os == nil || familyPattern.MatchString(*os) {
		return
	}
	if strings.ContainsAny(*os, "0123456789") {
		l.fault(at.at("os"), summary, "%s names one version, which Scaleway withdraws when it offers the next. Name the family instead, such as \"Tahoe\" or \"Sequoia\".", quoted(*os))
		return
	}
	suggestion := ""
	if r, size := utf8.DecodeRuneInString(*os); size > 0 {
		if better := strings.ToUpper(string(r)) + (*os)[size:]; familyPattern.MatchString(better) {
			suggestion = better
		}
	}
	l.fault(at.at("os"), summary, "%s is not the name of a macOS family, such as \"Tahoe\" or \"Sequoia\".%s", quoted(*os), didYouMean(suggestion))
}

// groups checks the groups of a fleet and merges each with what the fleet has.
func (l *loader) groups(b fleetBlock, inherited layer) []fleet.Group {
	var all []fleet.Group
	first := map[string]hcl.Range{}
	for _, g := range b.Groups {
		if l.unique(first, "group", g.Name, g.Place.label()) {
			l.name(g.Place.label(), "group", g.Name, fleet.CheckPart)
		}
		if g.Place.good["type"] && !typePattern.MatchString(g.Type) {
			l.fault(g.Place.at("type"), "Invalid type", "%s is not a server type: it must look like \"M2-L\".%s", quoted(g.Type), didYouMean(upperType(g.Type)))
		}
		own := layerOf(fleet.InGroup, g.Place, g.Spec, "type", "replicas").over(inherited)
		all = append(all, fleet.Group{Name: g.Name, Type: g.Type, Replicas: g.Replicas, Spec: own.spec.WithDefaults(), Sources: own.sources})
	}
	return all
}

func upperType(text string) string {
	if better := strings.ReplaceAll(strings.ToUpper(text), "_", "-"); typePattern.MatchString(better) {
		return better
	}
	return ""
}

// disable returns what a fleet inherits of the defaults.
func (l *loader) disable(b fleetBlock, defaults layer) layer {
	const summary = "Nothing to disable"
	steps := stepNames()
	for i, name := range b.Disable {
		at := b.Place.element("disable", i)
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
