package steps

import (
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

// The codes that are raised here.
var (
	codeTartMissing       = plan.NewCode("tart-missing", plan.Critical, "there is no bundle of Tart")
	codeTartUnknown       = plan.NewCode("tart-unknown", plan.Warning, "Tart's bundle was not installed by macfleet, so nobody knows its version")
	codeTartEdited        = plan.NewCode("tart-edited", plan.Warning, "Tart's bundle is not what was installed")
	codeTartOutdated      = plan.NewCode("tart-outdated", plan.Warning, "Tart has another version than is wanted")
	codeTartWrapperEdited = plan.NewCode("tart-wrapper-edited", plan.Warning, "Tart's wrapper is not as macfleet writes it")
	codeArtifactMissing   = plan.NewCode("artifact-missing", plan.Warning, "a block names no artifact with a digest",
		"write artifact = artifact.NAME into the block, and run macfleet artifacts lock")
	codeTartNotWanted = plan.NewCode("tart-not-wanted", plan.Notice, "the configuration has no tart block, and macfleet installed what is there")
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
	return wanted(tartState{}.settings(goalOf(t.wish.Artifact), false))
}

// settings are both sides in normal form.
func (s tartState) settings(want goal, unfinished bool) []setting {
	return []setting{
		{"bundle", s.receipt.version(s.program), want.String()},
		{"wrapper", s.wrapper, asRendered},
		{"earlier run", choose(unfinished || s.old, "unfinished", "finished"), "finished"},
	}
}

func (t tart) Probes() []plan.Probe {
	p := probe(t.ID(), "state", plan.Root)
	if t.wish == nil {
		p = traces(p)
	}
	return []plan.Probe{p}
}

const (
	tartPath    = "/usr/local/bin/tart"
	tartWrapper = "#!/bin/sh\n# Managed by macfleet. The entitlements are the bundle's, so its program is run by its path there.\n" +
		`exec /usr/local/lib/tart.app/Contents/MacOS/tart "$@"` + "\n"
)

// tartState is what was seen of tart on a host.
type tartState struct {
	receipt receipt
	program installedFile
	wrapper string // "as rendered", or what is else
	old     bool   // a bundle that was to go is still there
	kept    []string
	free    int64
	work    []working
}

func (r *reader) tart(id string) tartState {
	s := tartState{wrapper: "missing", free: unknownSpace}
	r.takenApart(id, func(p part) (err error) {
		switch p.name {
		case "file":
			return s.file(p)
		case "link":
			s.wrapper = "a link"
		case "program":
			err = s.program.read(p)
		case "old":
			s.old = true
		case "kept":
			s.kept = p.lines()
		case "disk":
			s.free = freeSpace(p)
		case "work":
			s.work, err = works(p)
		default:
			err = errPart
		}
		return err
	})
	return s
}

func (s *tartState) file(p part) error {
	access, path, _ := strings.Cut(p.of, " ")
	if path != tartPath {
		return s.receipt.read(p.body)
	}
	switch {
	case p.body != tartWrapper:
		s.wrapper = "edited"
	case access != programMode:
		s.wrapper = "owner and mode " + access
	default:
		s.wrapper = asRendered
	}
	return nil
}

// programMode is the owner, group and mode of a program.
const programMode = "0:0:755"

func (t tart) Diff(v plan.View) plan.Finding {
	r := reader{facts: v.Facts}
	seen := r.tart(answered(v.Facts, "tart.state"))
	if t.wish == nil {
		return t.leave(v, seen, r.unread)
	}
	want, back := seen.receipt.goal(t.wish.Artifact, seen.kept, v.Rollback)
	if len(r.unread) > 0 {
		return plan.Finding{Unread: r.unread}
	}
	all := seen.settings(want, v.Pending)
	f := plan.Finding{Facts: facts(all)}
	f.Warnings = seen.receipt.rolledBack(want, v.Rollback)
	if back != nil {
		f.Warnings = append(f.Warnings, *back) // that is no fault: few fleets change it
	}
	diff := fields(all...)
	if len(diff) == 0 {
		return f
	}
	f.Changes = []plan.Change{t.change(v, seen, want, all)}
	f.Changes[0].Fields = diff
	if f.Changes[0].Disruption == plan.Drain {
		f.Busy = tasks(seen.work)
	}
	f.Refused = t.refusal(seen, want, f.Changes[0])
	return f
}

// change is the one renderer, for a first set-up and for every later change.
func (t tart) change(v plan.View, seen tartState, want goal, all []setting) plan.Change {
	c := plan.Change{Reason: seen.reason(all)}
	if !all[0].differs() {
		c.Command = script("tart-wrapper", plan.Root, tartWrapper)
		return c
	}
	c.Delivery = want.delivery(tartSpace, seen.free)
	c.Command = script("tart-install", plan.Root, want.path(), want.sha, want.name, want.way(), tartWrapper, forced(v))
	if seen.program.there {
		c.Disruption = plan.Drain
	}
	return c
}

// tartSpace is how many times the size of the archive the installation needs: the
// archive, and about three times as much unpacked.
const tartSpace = 4

// reason names what is wrong, the cause before its consequences.
func (s tartState) reason(all []setting) plan.Reason {
	bundle := all[0]
	switch {
	case bundle.seen == "missing":
		return plan.Reason{Code: codeTartMissing, Text: "there is no bundle of Tart"}
	case bundle.differs() && !s.receipt.there():
		return plan.Reason{Code: codeTartUnknown, Text: "the bundle of Tart was not installed by macfleet, so nobody knows its version"}
	case bundle.differs() && strings.HasSuffix(bundle.seen, ", edited"):
		return plan.Reason{Code: codeTartEdited, Text: "the bundle of Tart is not what was installed"}
	case bundle.differs():
		return plan.Reason{Code: codeTartOutdated, Text: "Tart is " + bundle.seen}
	case all[1].differs():
		return plan.Reason{Code: codeTartWrapperEdited, Text: tartPath + ": " + s.wrapper}
	}
	return plan.Reason{Code: plan.CodeUnfinished, Text: "an earlier run began and was never proven"}
}

// refusal says why the change must not be made now.
func (t tart) refusal(seen tartState, want goal, c plan.Change) *plan.Trouble {
	switch d := c.Delivery; {
	case want.sha == "":
		return artifactMissing(t.ID())
	case d != nil && seen.free != unknownSpace && seen.free < d.Space:
		return diskFull(seen.free, d.Space)
	}
	return nil
}

func artifactMissing(id plan.StepID) *plan.Trouble {
	return codeArtifactMissing.Trouble(fmt.Sprintf("the %s block names no artifact with a digest, so there is nothing to install", id))
}

// leave is the finding where no tart is wanted: what macfleet installed goes, and
// the receipt says that it was macfleet.
func (t tart) leave(v plan.View, seen tartState, unread []plan.Unread) plan.Finding {
	if len(unread) > 0 {
		if !v.Proven && !v.Pending {
			return plan.Finding{} // nothing says that there was ever anything
		}
		return plan.Finding{Unread: unread}
	}
	if !seen.receipt.there() {
		return plan.Finding{}
	}
	all := []setting{{"Tart", seen.receipt.version(seen.program), ""}}
	return plan.Finding{Facts: facts(all), Busy: tasks(seen.work), Changes: []plan.Change{{
		Reason: plan.Reason{Code: codeTartNotWanted, Text: "the configuration has no tart block for this host, and macfleet installed what is here"},
		Fields: fields(all...), Disruption: plan.Drain, Removes: true, Command: script("tart-remove", plan.Root, forced(v)),
	}}}
}
