// Package buildtools is the step for what jobs on a builder use: packer, Xcode, a folder for caches, and variables of every shell.
package buildtools

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
)

//go:embed scripts
var files embed.FS

var scripts = kit.ScriptsOf(files)

// The step's codes.
var (
	codePackerMissing  = plan.NewCode("packer-missing", plan.Warning, "packer is not installed")
	codePackerEdited   = plan.NewCode("packer-edited", plan.Critical, "packer was replaced after macfleet installed it: macOS takes another program's access to the local network away")
	codePackerOutdated = plan.NewCode("packer-outdated", plan.Notice, "the version of packer is not the configured one")
	codeXcodeMissing   = plan.NewCode("xcode-missing", plan.Critical, "the configured Xcode is not on the host",
		"order or reinstall the server with an image that has Xcode, or install it there; or name an installed one: xcode = \"/Applications/NAME.app\"")
	codeLicence    = plan.NewCode("xcode-licence", plan.Critical, "Xcode's licence is not accepted: git and every compiler fail")
	codeSelection  = plan.NewCode("xcode-selection-moved", plan.Warning, "the Xcode of the command line tools is not the configured one")
	codeCache      = plan.NewCode("cache-folder-differs", plan.Warning, "the folder for caches is missing, or jobs cannot write into it")
	codeVariables  = plan.NewCode("shell-variables-differ", plan.Warning, "the variables in /etc/zshenv are not the configured ones")
	codeNotWanted  = plan.NewCode("build-tools-not-wanted", plan.Notice, "the configuration no longer has a build_tools block for the host")
	codeToolsSetUp = plan.NewCode("build-tools-missing", plan.Notice, "the tools of builders are not set up yet")
)

// buildTools compares the tools of a host with the configuration.
type buildTools struct {
	desired *fleet.BuildTools
	user    string
}

// New returns the step for a host.
func New(h fleet.Host) plan.Step { return buildTools{h.Spec.BuildTools, h.User} }

func (buildTools) ID() plan.StepID { return "build_tools" }

func (b buildTools) Probes() []plan.Probe {
	args := []string{"", ""}
	if b.desired != nil {
		args = []string{*b.desired.Xcode, text(b.desired.Cache)}
	}
	probes := kit.ProbeOrTraces(b.desired != nil, scripts.Probe(b.ID(), "state", plan.Root, args...))
	if b.brews() {
		probes = append(probes, scripts.Probe(b.ID(), "homebrew", plan.Login, strings.Join(b.desired.Formulae, "\n")))
	}
	return probes
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// seen is what a host answered.
type seen struct {
	receipt   kit.Receipt
	traces    bool // macfleet's receipt exists, also without packer
	packer    kit.InstalledFile
	zshenv    string
	zshAccess string
	cache     string // its owner, group and mode; empty: it is missing
	xcode     bool
	licence   bool
	selected  string
	kept      []string
	free      int64
}

func read(r *kit.Reader, id string) seen {
	s := seen{free: kit.UnknownSpace}
	r.Parts(id, func(p kit.Part) (err error) {
		switch p.Name {
		case "file":
			access, path, _ := strings.Cut(p.Of, " ")
			if path == zshenv {
				s.zshenv, s.zshAccess = p.Body, access
				return nil
			}
			s.traces = true
			err = s.receipt.Read(p.Body)
		case "packer":
			err = s.packer.Read(p)
		case "cache":
			s.cache = p.Of
		case "xcode":
			s.xcode = true
		case "licence":
			// 69 is the answer without a licence. Any other one says that this Xcode cannot be run.
			if s.licence = p.Exit == 0; p.Exit != 0 && p.Exit != 69 {
				err = fmt.Errorf("xcodebuild -license check: exit code %d", p.Exit)
			}
		case "selected":
			s.selected = strings.TrimSpace(p.Body)
		case "kept":
			s.kept = p.Lines()
		case "space":
			s.free = kit.FreeSpace(p)
		default:
			err = kit.ErrPart
		}
		return err
	})
	return s
}

const zshenv = "/etc/zshenv"

// The markers around macfleet's lines.
const (
	begin = "# BEGIN macfleet\n"
	end   = "# END macfleet\n"
)

// lines are the lines of /etc/zshenv.
func (b buildTools) lines() string {
	var out []string
	for _, v := range b.desired.Environment {
		name, value, _ := strings.Cut(v, "=")
		out = append(out, "export "+name+"='"+strings.ReplaceAll(value, "'", `'\''`)+"'")
	}
	return strings.Join(out, "\n")
}

// between returns what is between macfleet's markers.
func between(file string) string {
	_, rest, _ := strings.Cut(file, begin)
	inside, _, _ := strings.Cut(rest, end)
	return strings.TrimSuffix(inside, "\n")
}

// The positions of settings.
const (
	packer = iota
	xcode
	licence
	selection
	variables
	cache
	earlierRun
)

// settings compares everything; what the configuration does not have is as it should be.
func (b buildTools) settings(s seen, goal kit.Goal, unfinished bool) []kit.Setting {
	w := b.desired
	all := []kit.Setting{
		packer:     kit.Compare("packer", "not managed", "not managed"),
		xcode:      kit.Compare("Xcode", "any", "any"),
		licence:    kit.Compare("Xcode's licence", "not compared", "not compared"),
		selection:  kit.Compare("selected Xcode", "any", "any"),
		variables:  kit.Compare("variables of shells", kit.ListOr(strings.FieldsFunc(between(s.zshenv), isNewline), "none"), kit.ListOr(strings.FieldsFunc(b.lines(), isNewline), "none")),
		cache:      kit.Compare("cache folder", "not managed", "not managed"),
		earlierRun: kit.Compare("earlier run", kit.Choose(unfinished, "unfinished", "finished"), "finished"),
	}
	if w.Packer != nil {
		all[packer] = kit.Compare("packer", s.receipt.Version(s.packer), goal.String())
	}
	if *w.Xcode != "" {
		all[xcode] = kit.Compare("Xcode", kit.Choose(s.xcode, *w.Xcode, "missing"), *w.Xcode)
		all[licence] = kit.Compare("Xcode's licence", kit.Choose(s.licence, "accepted", "not accepted"), "accepted")
		all[selection] = kit.Compare("selected Xcode", kit.Choose(s.selected != "", strings.TrimSuffix(s.selected, "/Contents/Developer"), "none"), *w.Xcode)
	}
	if w.Cache != nil {
		all[cache] = kit.Compare("cache folder", kit.Choose(s.cache != "", s.cache, "missing"), b.user+":staff:755")
	}
	return all
}

func isNewline(r rune) bool { return r == '\n' }

func (b buildTools) Wanted() string {
	if b.desired == nil {
		return ""
	}
	all := b.settings(seen{}, kit.GoalOf(b.desired.Packer), false)
	if b.brews() {
		brew, _, _ := b.homebrewChanges(homebrewSeen{}, kit.UnknownSpace)
		all = append(all, brew...)
	}
	return kit.Wanted(all)
}

// installSpace is the space that packer needs while it is installed, in sizes of the archive.
const installSpace = 5

func (b buildTools) Diff(v plan.View) plan.Finding {
	r := &kit.Reader{Facts: v.Facts}
	s := read(r, kit.AnsweredProbe(v.Facts, "build_tools.state"))
	var brew homebrewSeen
	if b.brews() {
		brew = readHomebrew(r, "build_tools.homebrew")
	}
	switch {
	case b.desired == nil:
		return b.leave(v, s, r)
	case len(r.Unread) > 0:
		return plan.Finding{Unread: r.Unread}
	}
	goal, back := s.receipt.Goal(b.desired.Packer, s.kept, v.Rollback)
	all := b.settings(s, goal, v.Pending)
	var brewSettings []kit.Setting
	var brewChanges []plan.Change
	var brewless *plan.Trouble
	if b.brews() {
		brewSettings, brewChanges, brewless = b.homebrewChanges(brew, s.free)
	}
	f := plan.Finding{Facts: kit.Facts(slices.Concat(all, brewSettings))}
	if b.desired.Packer != nil {
		f.Warnings = s.receipt.RolledBack(goal, v.Rollback)
		if back != nil {
			f.Warnings = append(f.Warnings, *back)
		}
	}
	add := func(c plan.Change, settings ...kit.Setting) {
		if c.Fields = kit.Fields(settings...); len(c.Fields) > 0 {
			f.Changes = append(f.Changes, c)
		}
	}
	// Without its licence nothing of Xcode runs, so it comes first.
	add(plan.Change{Reason: plan.Reason{Code: codeLicence, Text: "the licence of " + *b.desired.Xcode + " is not accepted"},
		Command: scripts.Command("build_tools-licence", plan.Root, *b.desired.Xcode)}, all[xcode], all[licence])
	f.Changes = append(f.Changes, brewChanges...) // before the selection of Xcode, which Homebrew's installer moves
	add(plan.Change{Reason: b.packerReason(s, all), Delivery: goal.Delivery(installSpace, s.free),
		Command: scripts.Command("build_tools-packer", plan.Root, goal.Path(), goal.SHA, goal.Name, goal.Way())}, all[packer])
	add(plan.Change{Reason: plan.Reason{Code: codeSelection, Text: "the command line tools use " + all[selection].Seen},
		Command: scripts.Command("build_tools-select", plan.Root, *b.desired.Xcode)}, all[selection])
	reason := kit.Causes(
		kit.When(!s.traces && (all[variables].Differs() || all[cache].Differs()), codeToolsSetUp, "the variables and the folder for caches are not set up yet"),
		kit.When(all[variables].Differs(), codeVariables, "the variables in "+zshenv+" are "+all[variables].Seen),
		kit.When(all[cache].Differs(), codeCache, "the folder "+text(b.desired.Cache)+" is "+all[cache].Seen))[0]
	if all[variables].Differs() || all[cache].Differs() || len(f.Changes) == 0 {
		add(plan.Change{Reason: reason, Command: scripts.Command("build_tools-files", plan.Root, b.lines(), text(b.desired.Cache), b.user)}, all[variables], all[cache], all[earlierRun])
	}
	switch {
	case all[xcode].Differs():
		f.Refused = codeXcodeMissing.Trouble(*b.desired.Xcode + " is not on the host")
	case brewless != nil:
		f.Refused = brewless
	case all[packer].Differs() && goal.SHA == "":
		f.Refused = kit.ArtifactMissing(b.ID())
	case all[packer].Differs() && s.free != kit.UnknownSpace && s.free < goal.Delivery(installSpace, s.free).Space && goal.Way() != "back":
		f.Refused = kit.DiskFull(s.free, goal.Delivery(installSpace, s.free).Space)
	}
	return f
}

func (b buildTools) packerReason(s seen, all []kit.Setting) plan.Reason {
	return kit.Causes(
		kit.When(!s.packer.Exists, codePackerMissing, "packer is missing"),
		kit.When(!s.receipt.Exists() || strings.HasSuffix(all[packer].Seen, ", edited"), codePackerEdited, "packer is not the program that macfleet installed: "+all[packer].Seen),
		kit.When(true, codePackerOutdated, "packer is "+all[packer].Seen))[0]
}

// leave removes what macfleet made; Xcode and the folder with caches stay.
func (b buildTools) leave(v plan.View, s seen, r *kit.Reader) plan.Finding {
	if f, blind := r.Unreadable(v); blind {
		return f
	}
	if !s.traces && !v.Pending {
		return plan.Finding{}
	}
	all := []kit.Setting{kit.Compare("build tools", kit.Choose(s.receipt.Exists(), "packer "+s.receipt.Current.String(), "variables"), "")}
	return plan.Finding{Facts: kit.Facts(all), Changes: []plan.Change{{Reason: plan.Reason{Code: codeNotWanted, Text: "the configuration no longer has a build_tools block for the host"},
		Removes: true, Fields: kit.Fields(all...), Command: scripts.Command("build_tools-remove", plan.Root)}}}
}
