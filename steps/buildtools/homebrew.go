package buildtools

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
)

// The codes of Homebrew. It has only the newest version of a formula, so an upgraded one cannot be taken back.
var (
	codeBrewMissing = plan.NewCode("homebrew-missing", plan.Warning, "Homebrew is not installed, and the configuration has formulae",
		"name its installer: homebrew = artifact.NAME (docs/runbook-builders.md says which file); or install Homebrew on the host")
	codeFormulaMissing  = plan.NewCode("formula-missing", plan.Warning, "a configured formula is not installed")
	codeUntrustedTap    = plan.NewCode("untrusted-tap", plan.Warning, "Homebrew does not trust a configured formula of another tap: it neither loads nor lists it")
	codeFormulaUpgraded = plan.NewCode("formula-upgraded", plan.Warning, "a formula does not have the version that macfleet installed: someone upgraded it, and Homebrew cannot install the earlier one")
	codeNotPinned       = plan.NewCode("formula-not-pinned", plan.Notice, "a configured formula is not pinned, so brew upgrade replaces it")
)

// homebrewSeen is what a host answered about Homebrew.
type homebrewSeen struct {
	installed bool
	trusts    bool                // it has taps that it does not trust (from 5.1.15 on)
	trusted   string              // the user's trust.json
	versions  map[string][]string // of each configured formula, by its short name
	pinned    map[string]bool
	noted     map[string]string // the versions that macfleet installed
}

func readHomebrew(r *kit.Reader, id string) homebrewSeen {
	s := homebrewSeen{versions: map[string][]string{}, pinned: map[string]bool{}, noted: map[string]string{}}
	r.Parts(id, func(p kit.Part) error {
		switch p.Name {
		case "homebrew":
			s.installed, s.trusts = true, p.Of == "trusts"
		case "trusted":
			s.trusted = p.Body
		case "versions":
			for _, line := range p.Lines() {
				name, version, _ := strings.Cut(line, " ")
				s.versions[name] = append(s.versions[name], version)
			}
		case "pinned":
			for _, name := range p.Lines() {
				s.pinned[name] = true
			}
		case "noted":
			for _, line := range p.Lines() {
				name, version, _ := strings.Cut(line, " ")
				s.noted[name] = version
			}
		default:
			return kit.ErrPart
		}
		return nil
	})
	return s
}

// brews reports whether the configuration has anything of Homebrew.
func (b buildTools) brews() bool { return b.desired != nil && len(b.desired.Formulae) > 0 }

// asWanted is the state of a formula that is as configured.
const asWanted = "pinned"

// formula says what is the matter with a formula, given by its full name.
func (s homebrewSeen) formula(full string) (state string, why plan.Reason) {
	name := path.Base(full)
	have, noted := s.versions[name], s.noted[name]
	version := strings.Join(have, " and ")
	tap := path.Dir(full)
	trusted := tap == "." || !s.trusts || strings.Contains(s.trusted, `"`+full+`"`) || strings.Contains(s.trusted, `"`+tap+`"`)
	switch {
	case len(have) == 0:
		return "missing", plan.Reason{Code: codeFormulaMissing, Text: full + " is not installed"}
	case !trusted:
		return "not trusted", plan.Reason{Code: codeUntrustedTap, Text: "Homebrew does not trust " + full}
	case noted != "" && version != noted:
		return fmt.Sprintf("%s instead of %s", version, noted), plan.Reason{Code: codeFormulaUpgraded,
			Text: fmt.Sprintf("%s is %s, and macfleet installed %s; Homebrew has only the newest, so this one is kept and pinned", full, version, noted)}
	case !s.pinned[name] || noted == "":
		return kit.Choose(s.pinned[name], "pinned by someone else", "not pinned"), plan.Reason{Code: codeNotPinned,
			Text: full + kit.Choose(s.pinned[name], " is pinned, and macfleet has not noted its version yet", " is not pinned")}
	}
	return asWanted, plan.Reason{}
}

// homebrewChanges installs Homebrew, and installs, trusts and pins what the configuration has. refused says why it
// cannot.
func (b buildTools) homebrewChanges(s homebrewSeen, free int64) (settings []kit.Setting, changes []plan.Change, refused *plan.Trouble) {
	brew := kit.Compare("Homebrew", kit.Choose(s.installed, "installed", "missing"), "installed")
	settings = append(settings, brew)
	if brew.Differs() {
		installer := kit.GoalOf(b.desired.Homebrew)
		if installer.SHA == "" {
			refused = codeBrewMissing.Trouble("Homebrew is not on the host")
		}
		changes = append(changes, plan.Change{Reason: plan.Reason{Code: codeBrewMissing, Text: "Homebrew is not installed"}, Fields: kit.Fields(brew),
			Delivery: installer.Delivery(1, free), Detached: true,
			Command: scripts.Command("build_tools-brew", plan.Root, installer.Path(), installer.SHA, b.user, *b.desired.Xcode)})
	}
	var whys []plan.Reason
	for _, full := range b.desired.Formulae {
		state, why := s.formula(full)
		settings = append(settings, kit.Compare("formula "+full, state, asWanted))
		if why != (plan.Reason{}) {
			whys = append(whys, why)
		}
	}
	if len(whys) > 0 {
		slices.SortStableFunc(whys, func(a, b plan.Reason) int { return urgency(a.Code) - urgency(b.Code) })
		changes = append(changes, plan.Change{Reason: whys[0], Fields: kit.Fields(settings[1:]...), Detached: true,
			Command: scripts.Command("build_tools-formulae", plan.Root, append([]string{b.user}, b.desired.Formulae...)...)})
	}
	return settings, changes, refused
}

// urgency orders the codes of formulae: one change has the reason of the worst.
func urgency(c plan.Code) int {
	return slices.Index([]plan.Code{codeUntrustedTap, codeFormulaUpgraded, codeFormulaMissing, codeNotPinned}, c)
}
