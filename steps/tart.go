package steps

import (
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
)

var (
	codeTartMissing    = plan.NewCode("tart-missing", plan.Critical, "Tart's bundle is missing")
	codeTartUnknown    = plan.NewCode("tart-unknown", plan.Warning, "macfleet did not install Tart's bundle: version unknown")
	codeTartEdited     = plan.NewCode("tart-edited", plan.Warning, "Tart's bundle was modified after it was installed")
	codeTartUnverified = plan.NewCode("tart-unverified", plan.Warning,
		"Tart's bundle cannot be verified: the manifest of its files is missing or damaged")
	codeTartLeftover = plan.NewCode("tart-leftover", plan.Notice, "a replaced bundle of Tart could not be deleted",
		"allow full disk access for remote users (System Settings, General, Sharing, Remote Login); then on the host: sudo rm -rf /usr/local/lib/.tart.old* /usr/local/lib/.tart.new.*")
	codeTartOutdated      = plan.NewCode("tart-outdated", plan.Warning, "Tart's version is not the configured one")
	codeTartWrapperEdited = plan.NewCode("tart-wrapper-edited", plan.Warning, "Tart's wrapper /usr/local/bin/tart was edited")
	codeTartNotWanted     = plan.NewCode("tart-not-wanted", plan.Notice, "the configuration no longer has a tart block for the host")
)

// tart installs the program that runs virtual machines: the whole bundle, because the
// virtualization entitlement is part of its signature, and a wrapper that runs the program
// inside it. It is never replaced while a virtual machine runs.
type tart struct{ desired *fleet.Tart }

func (tart) ID() plan.StepID { return "tart" }

func (t tart) Wanted() string {
	if t.desired == nil {
		return ""
	}
	return kit.Wanted(tartState{}.settings(kit.GoalOf(t.desired.Artifact), false))
}

// version names the bundle's version and whether any file of it differs from the archive.
func (s tartState) version() string {
	version := s.receipt.Version(s.program)
	switch {
	case version != s.receipt.Current.String():
	case len(s.differs) > 0:
		version += ", edited: " + s.shown()
	case s.unverified:
		version += unverified
	}
	return version
}

// unverified marks a bundle with the right program but without a manifest of its other files.
const unverified = ", unverified"

// settings compares bundle and wrapper with the wanted ones.
func (s tartState) settings(want kit.Goal, unfinished bool) []kit.Setting {
	return []kit.Setting{
		kit.Compare("bundle", s.version(), want.String()),
		kit.Compare("wrapper", s.wrapper, kit.AsRendered),
		kit.Compare("earlier run", kit.Choose(unfinished, "unfinished", "finished"), "finished"),
	}
}

func (t tart) Probes() []plan.Probe {
	return kit.ProbeOrTraces(t.desired != nil, scripts.Probe(t.ID(), "state", plan.Root))
}

// WorkProbe returns the probe for the work on a host where macfleet is not root.
func (t tart) WorkProbe() plan.Probe { return scripts.Probe(t.ID(), "work", plan.Login) }

const (
	tartPath    = "/usr/local/bin/tart"
	tartWrapper = "#!/bin/sh\n# Managed by macfleet. The entitlements are the bundle's, so its program is run by its path there.\n" +
		`exec /usr/local/lib/tart.app/Contents/MacOS/tart "$@"` + "\n"
)

// tartState is the seen state of Tart on a host.
type tartState struct {
	receipt    kit.Receipt
	program    kit.InstalledFile
	wrapper    string   // kit.AsRendered, or what differs
	differs    []string // files of the bundle that differ from the archive
	unverified bool     // the manifest is missing or damaged
	left       []string // folders with replaced bundles
	kept       []string
	free       int64
	work       []kit.Working
	workRead   bool
}

func readTart(r *kit.Reader, id string) tartState {
	s := tartState{wrapper: "missing", free: kit.UnknownSpace}
	r.Parts(id, func(p kit.Part) (err error) {
		switch p.Name {
		case "file":
			return s.file(p)
		case "link":
			s.wrapper = "a link"
		case "program":
			err = s.program.Read(p)
		case "bundle":
			s.differs = p.Lines()
		case "unverified":
			s.unverified = true
		case "old":
			s.left = p.Lines()
		case "kept":
			s.kept = p.Lines()
		case "space":
			s.free = kit.FreeSpace(p)
		case "work":
			s.work, err = kit.Works(p)
			s.workRead = err == nil
		default:
			err = kit.ErrPart
		}
		return err
	})
	return s
}

func (s *tartState) file(p kit.Part) error {
	access, path, _ := strings.Cut(p.Of, " ")
	if path != tartPath {
		return s.receipt.Read(p.Body)
	}
	s.wrapper = kit.FileState{Mode: access}.Is(p.Body == tartWrapper, kit.ProgramMode)
	return nil
}

func (t tart) Diff(v plan.View) plan.Finding {
	r := kit.Reader{Facts: v.Facts}
	seen := readTart(&r, kit.AnsweredProbe(v.Facts, "tart.state"))
	f := t.compare(v, seen, &r)
	if _, asked := v.Facts["tart.work"]; asked && !seen.workRead {
		alone := readTart(&kit.Reader{Facts: v.Facts}, "tart.work")
		seen.work, seen.workRead = alone.work, alone.workRead
	}
	if seen.workRead {
		f.Running = kit.AllTasks(seen.work)
	}
	return f
}

func (t tart) compare(v plan.View, seen tartState, r *kit.Reader) plan.Finding {
	if t.desired == nil {
		return t.leave(v, seen, r)
	}
	want, back := seen.receipt.Goal(t.desired.Artifact, seen.kept, v.Rollback)
	if len(r.Unread) > 0 {
		return plan.Finding{Unread: r.Unread}
	}
	all := seen.settings(want, v.Pending)
	f := plan.Finding{Facts: kit.Facts(all)}
	f.Warnings = seen.receipt.RolledBack(want, v.Rollback)
	if back != nil {
		f.Warnings = append(f.Warnings, *back) // worth a warning only: the configuration does not change often
	}
	f.Warnings = append(f.Warnings, seen.leftovers(v.Pending)...)
	diff := kit.Fields(all...)
	if len(diff) == 0 {
		return f
	}
	f.Changes = []plan.Change{t.change(v, seen, want, all)}
	f.Changes[0].Fields = diff
	if f.Changes[0].Disruption == plan.Drain {
		f.Busy = kit.Tasks(seen.work)
	}
	f.Refused = t.refusal(seen, want, f.Changes[0])
	return f
}

// leftovers warns of replaced bundles that could not be deleted: macOS protects launched apps, even from root. After
// an unfinished run there is no warning, because the next run deletes or restores them.
func (s tartState) leftovers(unfinished bool) []plan.Trouble {
	if len(s.left) == 0 || unfinished || !s.program.Exists {
		return nil
	}
	return []plan.Trouble{*codeTartLeftover.Trouble("a replaced bundle of Tart could not be deleted: " + strings.Join(s.left, ", "))}
}

// change renders the change for a first install, an update and a repair.
func (t tart) change(v plan.View, seen tartState, want kit.Goal, all []kit.Setting) plan.Change {
	c := plan.Change{Reason: seen.reason(all)}
	if !all[0].Differs() {
		c.Command = scripts.Command("tart-wrapper", plan.Root, tartWrapper)
		return c
	}
	c.Delivery = want.Delivery(tartSpace, seen.free)
	if all[0].Seen == want.String()+unverified { // only verified: no drain needed
		c.Command = scripts.Command("tart-verify", plan.Root, want.Path(), want.SHA, tartWrapper)
		return c
	}
	c.Command = scripts.Command("tart-install", plan.Root, want.Path(), want.SHA, want.Name, want.Way(), tartWrapper, kit.Forced(v))
	if seen.program.Exists {
		c.Disruption = plan.Drain
	}
	return c
}

// tartSpace is the space the installation needs, in sizes of the archive: the archive itself
// and about three times as much unpacked.
const tartSpace = 4

// reason names the first cause that applies.
func (s tartState) reason(all []kit.Setting) plan.Reason {
	bundle := all[0]
	return kit.Causes(
		kit.When(bundle.Seen == "missing", codeTartMissing, "Tart's bundle is missing"),
		kit.When(bundle.Differs() && !s.receipt.Exists(), codeTartUnknown,
			"macfleet did not install Tart's bundle: version unknown"),
		kit.When(strings.Contains(bundle.Seen, ", edited"), codeTartEdited, "Tart's bundle was modified after it was installed"),
		kit.When(bundle.Seen == bundle.Wanted+unverified, codeTartUnverified,
			"only the bundle's program could be compared: the manifest of its files is missing or damaged"),
		kit.When(bundle.Differs(), codeTartOutdated, "Tart is "+bundle.Seen),
		kit.When(all[1].Differs(), codeTartWrapperEdited, tartPath+": "+s.wrapper),
	)[0]
}

// shown lists the first differences of the bundle.
func (s tartState) shown() string {
	const most = 3
	out := strings.Join(s.differs[:min(len(s.differs), most)], ", ")
	if n := len(s.differs) - most; n > 0 {
		out += fmt.Sprintf(" and %d more", n)
	}
	return out
}

// refusal returns why the change must not be made now, or nil.
func (t tart) refusal(seen tartState, want kit.Goal, c plan.Change) *plan.Trouble {
	switch d := c.Delivery; {
	case want.SHA == "":
		return kit.ArtifactMissing(t.ID())
	case d != nil && seen.free != kit.UnknownSpace && seen.free < d.Space:
		return kit.DiskFull(seen.free, d.Space)
	}
	return nil
}

// leave removes a Tart that macfleet installed, as its receipt shows, once the block is gone.
func (t tart) leave(v plan.View, seen tartState, r *kit.Reader) plan.Finding {
	if f, blind := r.Unreadable(v); blind {
		return f
	}
	if !seen.receipt.Exists() {
		return plan.Finding{}
	}
	all := []kit.Setting{kit.Compare("Tart", seen.version(), "")}
	return plan.Finding{Facts: kit.Facts(all), Busy: kit.Tasks(seen.work), Changes: []plan.Change{{
		Reason: plan.Reason{Code: codeTartNotWanted, Text: "the configuration no longer has a tart block for this host"},
		Fields: kit.Fields(all...), Disruption: plan.Drain, Removes: true, Command: scripts.Command("tart-remove", plan.Root, kit.Forced(v)),
	}}}
}
