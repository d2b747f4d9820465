package steps

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// The codes that are raised here.
var (
	codeNothingToRollBack = plan.NewCode("nothing-to-roll-back", plan.Notice, "there is no version to go back to",
		"let the configuration name the version that is wanted, and apply it without --rollback")
	codeVersionRolledBack = plan.NewCode("version-rolled-back", plan.Notice, "the host runs the version before, because somebody asked for it",
		"an apply installs what the configuration names; let it name the version to stay there")
)

// version is one version of an artifact, as a receipt notes it.
type version struct{ sha, name string }

// String is how a person sees it.
func (v version) String() string {
	if v.sha == "" {
		return "none"
	}
	return v.name + " (" + v.sha[:min(len(v.sha), 12)] + ")"
}

// receipt is what a host notes of an artifact that a step installed: which one
// and which before it, and by what the installed file is known again, so that no
// plan reads 60 MB to know that nothing has changed.
type receipt struct {
	current, previous version
	rolled            version // what was taken back, where a version from before is in use again
	stamp             string  // inode, size and modification time of the installed file
	sha               string  // its digest
	installed         int64   // when, in seconds since 1970
}

// read takes in a receipt's text. Lines that a later macfleet may add are passed
// over; one that is broken is an error.
func (r *receipt) read(text string) error {
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		words := strings.Fields(rest)
		ok := true
		switch word {
		case "current":
			r.current, ok = versionOf(words)
		case "previous":
			if rest != "-" {
				r.previous, ok = versionOf(words)
			}
		case "rolled-back":
			r.rolled, ok = versionOf(words)
		case "file":
			if ok = len(words) == 4; ok {
				r.stamp, r.sha = strings.Join(words[:3], " "), words[3]
			}
		case "installed":
			var err error
			r.installed, err = strconv.ParseInt(rest, 10, 64)
			ok = err == nil
		}
		if !ok {
			return fmt.Errorf("the receipt's line %q is broken", strings.TrimSpace(line))
		}
	}
	return nil
}

func versionOf(words []string) (version, bool) {
	if len(words) != 2 || fleet.CheckSHA256(words[0]) != "" {
		return version{}, false
	}
	return version{sha: words[0], name: words[1]}, true
}

// there reports whether anything was ever noted.
func (r receipt) there() bool { return r.current.sha != "" }

// goal is the version of an artifact that a host is to have.
type goal struct {
	version
	artifact fleet.Artifact // what is brought to the host
	back     bool           // it is a version from before, which the host has kept
}

// path is where the artifact lies on the host.
func (g goal) path() string { return fleet.Artifact{SHA256: g.sha}.HostPath() }

// delivery is what must be on the host first; factor says how many times its size
// the installation needs, and free how many bytes there are.
func (g goal) delivery(factor, free int64) *plan.Delivery {
	if g.back {
		return nil
	}
	d := &plan.Delivery{Artifact: g.artifact, Space: factor * max(g.artifact.Size, leastSize)}
	if free != unknownSpace {
		d.Free = inventory.Present(free)
	}
	return d
}

// leastSize is what an artifact counts as whose size nobody wrote.
const leastSize = 64 << 20

// way is how the scripts are told.
func (g goal) way() string { return choose(g.back, "back", "forth") }

// goalOf is the configuration's version.
func goalOf(want *fleet.Artifact) goal {
	if want == nil {
		return goal{}
	}
	return goal{version: version{want.SHA256, want.Version}, artifact: *want}
}

// goal returns the version that the host is to have: the configuration's or, on a
// way back, the one from before. A host that already went back, or never came as
// far as the configuration, stays. The trouble says that there is no way back.
func (r receipt) goal(want *fleet.Artifact, kept []string, rollback bool) (goal, *plan.Trouble) {
	wish := goalOf(want)
	stay := goal{version: r.current, back: true}
	switch {
	case !rollback:
		return wish, nil
	case !r.there():
		return wish, nothingBefore("nothing of it was installed here yet")
	case r.rolled.sha != "", r.current.sha != wish.sha && r.previous.sha != wish.sha:
		return stay, nil
	case r.previous.sha == "":
		return stay, nothingBefore(r.current.name + " is the first version that macfleet installed here")
	case !slices.Contains(kept, r.previous.sha):
		return stay, nothingBefore(fmt.Sprintf("%s was here before, and its file %s is gone", r.previous.name, goal{version: r.previous}.path()))
	}
	return goal{version: r.previous, back: true}, nil
}

func nothingBefore(why string) *plan.Trouble {
	return codeNothingToRollBack.Trouble("there is no version to go back to: " + why)
}

// rolledBack warns that an apply installs again what was taken back, as long as
// the configuration names that.
func (r receipt) rolledBack(want goal, rollback bool) []plan.Trouble {
	if r.rolled.sha == "" || rollback || want.sha == r.current.sha {
		return nil
	}
	return []plan.Trouble{{Code: codeVersionRolledBack,
		Text:   fmt.Sprintf("%s is in use since it was rolled back from %s", r.current.name, r.rolled.name),
		Remedy: "an apply installs what the configuration names; let it name " + r.current.name + " to stay there"}}
}

// installedFile is the file that a step installs, as it was seen.
type installedFile struct {
	there   bool
	stamp   string
	sha     string // where the stamp is not the receipt's
	access  string
	changed int64 // when anything of it changed last, in seconds since 1970
}

func (f *installedFile) read(p part) error {
	f.there, f.stamp, f.sha, f.access = true, p.value("stamp"), p.value("sha"), p.value("access")
	var err error
	if text := p.value("changed"); text != "" {
		f.changed, err = strconv.ParseInt(text, 10, 64)
	}
	if f.stamp == "" && err == nil {
		err = errPart
	}
	return err
}

// version says which version a file is: "missing", one that the receipt knows, or
// why nobody knows.
func (r receipt) version(f installedFile) string {
	switch {
	case !f.there:
		return "missing"
	case !r.there():
		return "not installed by macfleet"
	case f.stamp == r.stamp, f.sha == r.sha:
		return r.current.String()
	case f.sha == r.current.sha: // another tool brought the very bytes
		return r.current.String()
	}
	return r.current.String() + ", edited"
}
