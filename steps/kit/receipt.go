package kit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

var (
	codeNothingToRollBack = plan.NewCode("nothing-to-roll-back", plan.Notice, "there is no version to go back to",
		"let the configuration name the version that is wanted, and apply it without --rollback")
	codeVersionRolledBack = plan.NewCode("version-rolled-back", plan.Notice, "the host runs the version before, because somebody asked for it",
		"an apply installs what the configuration names; let it name the version to stay there")
	codeArtifactMissing = plan.NewCode("artifact-missing", plan.Warning, "a block names no artifact with a digest",
		"write artifact = artifact.NAME into the block, and run macfleet artifacts lock")
)

// Version is one version of an artifact, as a receipt notes it.
type Version struct{ SHA, Name string }

// String is how a person sees it.
func (v Version) String() string {
	if v.SHA == "" {
		return "none"
	}
	return v.Name + " (" + v.SHA[:min(len(v.SHA), 12)] + ")"
}

// Receipt is what a host notes of an artifact that a step installed: which one
// and which before it, and by what the installed file is known again, so that no
// plan reads 60 MB to know that nothing has changed.
type Receipt struct {
	Current, Previous Version
	rolled            Version // what was taken back, where a version from before is in use again
	Stamp             string  // inode, size and modification time of the installed file
	sha               string  // its digest
	Installed         int64   // when, in seconds since 1970
}

// Read takes in a receipt's text. Lines that a later macfleet may add are passed
// over; one that is broken is an error.
func (r *Receipt) Read(text string) error {
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		words := strings.Fields(rest)
		ok := true
		switch word {
		case "current":
			r.Current, ok = versionOf(words)
		case "previous":
			if rest != "-" {
				r.Previous, ok = versionOf(words)
			}
		case "rolled-back":
			r.rolled, ok = versionOf(words)
		case "file":
			if ok = len(words) == 4; ok {
				r.Stamp, r.sha = strings.Join(words[:3], " "), words[3]
			}
		case "installed":
			var err error
			r.Installed, err = strconv.ParseInt(rest, 10, 64)
			ok = err == nil
		}
		if !ok {
			return fmt.Errorf("the receipt's line %q is broken", strings.TrimSpace(line))
		}
	}
	return nil
}

func versionOf(words []string) (Version, bool) {
	if len(words) != 2 || fleet.CheckText("sha256", words[0]) != "" {
		return Version{}, false
	}
	return Version{SHA: words[0], Name: words[1]}, true
}

// There reports whether anything was ever noted.
func (r Receipt) There() bool { return r.Current.SHA != "" }

// Goal is the version of an artifact that a host is to have.
type Goal struct {
	Version
	artifact fleet.Artifact // what is brought to the host
	back     bool           // it is a version from before, which the host has kept
}

// Path is where the artifact lies on the host.
func (g Goal) Path() string { return fleet.Artifact{SHA256: g.SHA}.HostPath() }

// Delivery is what must be on the host first; factor says how many times its size
// the installation needs, and free how many bytes there are.
func (g Goal) Delivery(factor, free int64) *plan.Delivery {
	if g.back {
		return nil
	}
	d := &plan.Delivery{Artifact: g.artifact, Space: factor * max(g.artifact.Size, leastSize)}
	if free != UnknownSpace {
		d.Free = inventory.Present(free)
	}
	return d
}

// leastSize is what an artifact counts as whose size nobody wrote.
const leastSize = 64 << 20

// Way is how the scripts are told.
func (g Goal) Way() string { return Choose(g.back, "back", "forth") }

// GoalOf is the configuration's version.
func GoalOf(want *fleet.Artifact) Goal {
	if want == nil {
		return Goal{}
	}
	return Goal{Version: Version{want.SHA256, want.Version}, artifact: *want}
}

// Goal returns the version that the host is to have: the configuration's or, on a
// way back, the one from before. A host that already went back, or never came as
// far as the configuration, stays. The trouble says that there is no way back.
func (r Receipt) Goal(want *fleet.Artifact, kept []string, rollback bool) (Goal, *plan.Trouble) {
	wish := GoalOf(want)
	stay := Goal{Version: r.Current, back: true}
	switch {
	case !rollback:
		return wish, nil
	case !r.There():
		return wish, nothingBefore("nothing of it was installed here yet")
	case r.rolled.SHA != "", r.Current.SHA != wish.SHA && r.Previous.SHA != wish.SHA:
		return stay, nil
	case r.Previous.SHA == "":
		return stay, nothingBefore(r.Current.Name + " is the first version that macfleet installed here")
	case !slices.Contains(kept, r.Previous.SHA):
		return stay, nothingBefore(fmt.Sprintf("%s was here before, and its file %s is gone", r.Previous.Name, Goal{Version: r.Previous}.Path()))
	}
	return Goal{Version: r.Previous, back: true}, nil
}

func nothingBefore(why string) *plan.Trouble {
	return codeNothingToRollBack.Trouble("there is no version to go back to: " + why)
}

// RolledBack warns that an apply installs again what was taken back, as long as
// the configuration names that.
func (r Receipt) RolledBack(want Goal, rollback bool) []plan.Trouble {
	if r.rolled.SHA == "" || rollback || want.SHA == r.Current.SHA {
		return nil
	}
	return []plan.Trouble{{Code: codeVersionRolledBack,
		Text:   fmt.Sprintf("%s is in use since it was rolled back from %s", r.Current.Name, r.rolled.Name),
		Remedy: "an apply installs what the configuration names; let it name " + r.Current.Name + " to stay there"}}
}

// InstalledFile is the file that a step installs, as it was seen.
type InstalledFile struct {
	There   bool
	Stamp   string
	sha     string // where the stamp is not the receipt's
	Access  string
	Changed int64 // when anything of it changed last, in seconds since 1970
}

// Read takes in what a script says of the file.
func (f *InstalledFile) Read(p Part) error {
	f.There, f.Stamp, f.sha, f.Access = true, p.Value("stamp"), p.Value("sha"), p.Value("access")
	var err error
	if text := p.Value("changed"); text != "" {
		f.Changed, err = strconv.ParseInt(text, 10, 64)
	}
	if f.Stamp == "" && err == nil {
		err = ErrPart
	}
	return err
}

// Version says which version a file is: "missing", one that the receipt knows, or
// why nobody knows.
func (r Receipt) Version(f InstalledFile) string {
	switch {
	case !f.There:
		return "missing"
	case !r.There():
		return "not installed by macfleet"
	case f.Stamp == r.Stamp, f.sha == r.sha:
		return r.Current.String()
	case f.sha == r.Current.SHA: // another tool brought the very bytes
		return r.Current.String()
	}
	return r.Current.String() + ", edited"
}

// ArtifactMissing refuses a step whose block names nothing to install.
func ArtifactMissing(id plan.StepID) *plan.Trouble {
	return codeArtifactMissing.Trouble(fmt.Sprintf("the %s block names no artifact with a digest, so there is nothing to install", id))
}
