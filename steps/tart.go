package steps

import (
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
)

var (
	codeTartMissing    = plan.NewCode("tart-missing", plan.Critical, "there is no bundle of Tart")
	codeTartUnknown    = plan.NewCode("tart-unknown", plan.Warning, "Tart's bundle was not installed by macfleet, so nobody knows its version")
	codeTartEdited     = plan.NewCode("tart-edited", plan.Warning, "Tart's bundle is not what was installed")
	codeTartUnverified = plan.NewCode("tart-unverified", plan.Warning,
		"nobody knows whether Tart's bundle is whole: the note of what was unpacked is missing or damaged")
	codeTartLeftover = plan.NewCode("tart-leftover", plan.Notice, "a bundle of Tart that was replaced could not be removed",
		"in System Settings, General, Sharing, Remote Login, allow full disk access for remote users; then on the host: sudo rm -rf /usr/local/lib/.tart.old* /usr/local/lib/.tart.new.*")
	codeTartOutdated      = plan.NewCode("tart-outdated", plan.Warning, "Tart has another version than is wanted")
	codeTartWrapperEdited = plan.NewCode("tart-wrapper-edited", plan.Warning, "Tart's wrapper is not as macfleet writes it")
	codeTartNotWanted     = plan.NewCode("tart-not-wanted", plan.Notice, "the configuration has no tart block, and macfleet installed what is there")
)

// tart is the program that runs virtual machines: the whole bundle, because the
// entitlement to run one is part of the bundle's signature, and a wrapper that
// runs its program by the path that it has there. It is never exchanged under a
// machine that runs.
type tart struct{ wish *fleet.Tart }

func (tart) ID() plan.StepID { return "tart" }

func (t tart) Wanted() string {
	if t.wish == nil {
		return ""
	}
	return kit.Wanted(tartState{}.settings(kit.GoalOf(t.wish.Artifact), false))
}

// version is which version the bundle is, and whether it is as it was unpacked: a program that is right
// does not make a bundle whole.
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

// unverified ends the version of a bundle whose program is right, and of which nothing says what else it must hold.
const unverified = ", unverified"

// settings are both sides in normal form.
func (s tartState) settings(want kit.Goal, unfinished bool) []kit.Setting {
	return []kit.Setting{
		kit.Compare("bundle", s.version(), want.String()),
		kit.Compare("wrapper", s.wrapper, kit.AsRendered),
		kit.Compare("earlier run", kit.Choose(unfinished, "unfinished", "finished"), "finished"),
	}
}

func (t tart) Probes() []plan.Probe {
	return kit.Asked(t.wish != nil, scripts.Probe(t.ID(), "state", plan.Root))
}

const (
	tartPath    = "/usr/local/bin/tart"
	tartWrapper = "#!/bin/sh\n# Managed by macfleet. The entitlements are the bundle's, so its program is run by its path there.\n" +
		`exec /usr/local/lib/tart.app/Contents/MacOS/tart "$@"` + "\n"
)

// tartState is what was seen of tart on a host.
type tartState struct {
	receipt    kit.Receipt
	program    kit.InstalledFile
	wrapper    string   // "as rendered", or what is else
	differs    []string // what of the bundle is not as it was unpacked, in words
	unverified bool     // there is no whole note of what was unpacked
	left       []string // folders with a bundle that was to go
	kept       []string
	free       int64
	work       []kit.Working
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
		case "disk":
			s.free = kit.FreeSpace(p)
		case "work":
			s.work, err = kit.Works(p)
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
	seen := readTart(&r, kit.Answered(v.Facts, "tart.state"))
	if t.wish == nil {
		return t.leave(v, seen, &r)
	}
	want, back := seen.receipt.Goal(t.wish.Artifact, seen.kept, v.Rollback)
	if len(r.Unread) > 0 {
		return plan.Finding{Unread: r.Unread}
	}
	all := seen.settings(want, v.Pending)
	f := plan.Finding{Facts: kit.Facts(all)}
	f.Warnings = seen.receipt.RolledBack(want, v.Rollback)
	if back != nil {
		f.Warnings = append(f.Warnings, *back) // that is no fault: few fleets change it
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

// leftovers warns of bundles of before that could not be removed: macOS protects an app that was launched, from root
// as well. The next run removes those of one that was cut off, or puts one back where the bundle is missing.
func (s tartState) leftovers(unfinished bool) []plan.Trouble {
	if len(s.left) == 0 || unfinished || !s.program.There {
		return nil
	}
	return []plan.Trouble{*codeTartLeftover.Trouble("a bundle of Tart that was replaced could not be removed: " + strings.Join(s.left, ", "))}
}

// change is the one renderer, for a first set-up and for every later change.
func (t tart) change(v plan.View, seen tartState, want kit.Goal, all []kit.Setting) plan.Change {
	c := plan.Change{Reason: seen.reason(all)}
	if !all[0].Differs() {
		c.Command = scripts.Command("tart-wrapper", plan.Root, tartWrapper)
		return c
	}
	c.Delivery = want.Delivery(tartSpace, seen.free)
	if all[0].Seen == want.String()+unverified { // it may well be whole: nothing is drained to find that out
		c.Command = scripts.Command("tart-verify", plan.Root, want.Path(), want.SHA, tartWrapper)
		return c
	}
	c.Command = scripts.Command("tart-install", plan.Root, want.Path(), want.SHA, want.Name, want.Way(), tartWrapper, kit.Forced(v))
	if seen.program.There {
		c.Disruption = plan.Drain
	}
	return c
}

// tartSpace is how many times the size of the archive the installation needs: the
// archive, and about three times as much unpacked.
const tartSpace = 4

// reason names what is wrong, the cause before its consequences.
func (s tartState) reason(all []kit.Setting) plan.Reason {
	bundle := all[0]
	return kit.Causes(
		kit.When(bundle.Seen == "missing", codeTartMissing, "there is no bundle of Tart"),
		kit.When(bundle.Differs() && !s.receipt.There(), codeTartUnknown,
			"the bundle of Tart was not installed by macfleet, so nobody knows its version"),
		kit.When(strings.Contains(bundle.Seen, ", edited"), codeTartEdited, "the bundle of Tart is not what was installed"),
		kit.When(bundle.Seen == bundle.Wanted+unverified, codeTartUnverified,
			"the note of what was unpacked is missing or damaged, so only the program of the bundle could be compared"),
		kit.When(bundle.Differs(), codeTartOutdated, "Tart is "+bundle.Seen),
		kit.When(all[1].Differs(), codeTartWrapperEdited, tartPath+": "+s.wrapper),
	)[0]
}

// shown names the first of what differs in the bundle.
func (s tartState) shown() string {
	const most = 3
	out := strings.Join(s.differs[:min(len(s.differs), most)], ", ")
	if n := len(s.differs) - most; n > 0 {
		out += fmt.Sprintf(" and %d more", n)
	}
	return out
}

// refusal says why the change must not be made now.
func (t tart) refusal(seen tartState, want kit.Goal, c plan.Change) *plan.Trouble {
	switch d := c.Delivery; {
	case want.SHA == "":
		return kit.ArtifactMissing(t.ID())
	case d != nil && seen.free != kit.UnknownSpace && seen.free < d.Space:
		return kit.DiskFull(seen.free, d.Space)
	}
	return nil
}

// leave is the finding where no tart is wanted: what macfleet installed goes, and
// the receipt says that it was macfleet.
func (t tart) leave(v plan.View, seen tartState, r *kit.Reader) plan.Finding {
	if f, blind := r.Blind(v); blind {
		return f
	}
	if !seen.receipt.There() {
		return plan.Finding{}
	}
	all := []kit.Setting{kit.Compare("Tart", seen.version(), "")}
	return plan.Finding{Facts: kit.Facts(all), Busy: kit.Tasks(seen.work), Changes: []plan.Change{{
		Reason: plan.Reason{Code: codeTartNotWanted, Text: "the configuration has no tart block for this host, and macfleet installed what is here"},
		Fields: kit.Fields(all...), Disruption: plan.Drain, Removes: true, Command: scripts.Command("tart-remove", plan.Root, kit.Forced(v)),
	}}}
}
