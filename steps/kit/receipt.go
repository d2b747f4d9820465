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
	codeNothingToRollBack = plan.NewCode("nothing-to-roll-back", plan.Notice, "there is no version to roll back to",
		"set the version in the configuration, then macfleet apply without --rollback")
	codeVersionRolledBack = plan.NewCode("version-rolled-back", plan.Notice, "the host runs the previous version after a rollback; the next apply installs the configured one",
		"to keep this version, pin it in the configuration")
	codeArtifactMissing = plan.NewCode("artifact-missing", plan.Warning, "a block names no artifact, or its artifact has no digest",
		"set artifact = artifact.NAME in the block, then: macfleet artifacts lock")
)

// Version is one version of an artifact, as recorded in a receipt.
type Version struct{ SHA, Name string }

// String formats the version for display.
func (v Version) String() string {
	if v.SHA == "" {
		return "none"
	}
	return v.Name + " (" + v.SHA[:min(len(v.SHA), 12)] + ")"
}

// Receipt is the host's record of an installed artifact: current and previous version, and
// the stamp of the installed file, which saves a plan from reading 60 MB to see that nothing changed.
type Receipt struct {
	Current, Previous Version
	rolled            Version // the version that was rolled back, if any
	Stamp             string  // inode, size and modification time of the installed file
	sha               string  // SHA-256 of the installed file
	Installed         int64   // Unix time
}

// Read parses a receipt. Unknown lines are skipped, as a later macfleet may add some; a
// malformed line is an error.
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
			return fmt.Errorf("malformed receipt line %q", strings.TrimSpace(line))
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

// Exists reports whether the host has a receipt.
func (r Receipt) Exists() bool { return r.Current.SHA != "" }

// Goal is the version that a host should have.
type Goal struct {
	Version
	artifact fleet.Artifact // delivered to the host
	rollback bool           // a previous version, which the host has kept
}

// Path returns the artifact's path on the host.
func (g Goal) Path() string { return fleet.Artifact{SHA256: g.SHA}.HostPath() }

// Delivery returns the artifact to deliver before installing. The installation needs factor
// times its size; free is the free space in bytes.
func (g Goal) Delivery(factor, free int64) *plan.Delivery {
	if g.rollback {
		return nil
	}
	d := &plan.Delivery{Artifact: g.artifact, Space: factor * max(g.artifact.Size, leastSize)}
	if free != UnknownSpace {
		d.Free = inventory.Present(free)
	}
	return d
}

// leastSize is assumed for an artifact without a size.
const leastSize = 64 << 20

// Way returns the direction argument of the install scripts.
func (g Goal) Way() string { return Choose(g.rollback, "back", "forth") }

// GoalOf returns the configured version.
func GoalOf(want *fleet.Artifact) Goal {
	if want == nil {
		return Goal{}
	}
	return Goal{Version: Version{want.SHA256, want.Version}, artifact: *want}
}

// Goal returns the version that the host should have: the configured one or, for a rollback,
// the previous one. A host that is already rolled back, or never got the configured version,
// keeps its own. The trouble says that there is nothing to roll back to.
func (r Receipt) Goal(want *fleet.Artifact, kept []string, rollback bool) (Goal, *plan.Trouble) {
	desired := GoalOf(want)
	stay := Goal{Version: r.Current, rollback: true}
	switch {
	case !rollback:
		return desired, nil
	case !r.Exists():
		return desired, nothingBefore("macfleet has not installed it here yet")
	case r.rolled.SHA != "", r.Current.SHA != desired.SHA && r.Previous.SHA != desired.SHA:
		return stay, nil
	case r.Previous.SHA == "":
		return stay, nothingBefore(r.Current.Name + " is the first version that macfleet installed here")
	case !slices.Contains(kept, r.Previous.SHA):
		return stay, nothingBefore(fmt.Sprintf("the previous version is %s, and its file %s is gone", r.Previous.Name, Goal{Version: r.Previous}.Path()))
	}
	return Goal{Version: r.Previous, rollback: true}, nil
}

func nothingBefore(why string) *plan.Trouble {
	return codeNothingToRollBack.Trouble("there is no version to roll back to: " + why)
}

// RolledBack warns that the next apply installs the configured version again.
func (r Receipt) RolledBack(want Goal, rollback bool) []plan.Trouble {
	if r.rolled.SHA == "" || rollback || want.SHA == r.Current.SHA {
		return nil
	}
	return []plan.Trouble{{Code: codeVersionRolledBack,
		Text:   fmt.Sprintf("rolled back to %s from %s; the next apply installs the configured version again", r.Current.Name, r.rolled.Name),
		Remedy: "to keep this version, pin " + r.Current.Name + " in the configuration"}}
}

// InstalledFile is the installed file as seen on the host.
type InstalledFile struct {
	Exists  bool
	Stamp   string
	sha     string // read only if the stamp differs from the receipt's
	Access  string
	Changed int64 // Unix time of the last change
}

// Read parses what a script says about the file.
func (f *InstalledFile) Read(p Part) error {
	f.Exists, f.Stamp, f.sha, f.Access = true, p.Value("stamp"), p.Value("sha"), p.Value("access")
	var err error
	if text := p.Value("changed"); text != "" {
		f.Changed, err = strconv.ParseInt(text, 10, 64)
	}
	if f.Stamp == "" && err == nil {
		err = ErrPart
	}
	return err
}

// Version names the version of a file: "missing", one of the receipt's, or why it is unknown.
func (r Receipt) Version(f InstalledFile) string {
	switch {
	case !f.Exists:
		return "missing"
	case !r.Exists():
		return "not installed by macfleet"
	case f.Stamp == r.Stamp, f.sha == r.sha:
		return r.Current.String()
	case f.sha == r.Current.SHA: // the same bytes, written by another tool
		return r.Current.String()
	}
	return r.Current.String() + ", edited"
}

// ArtifactMissing refuses a step whose block names nothing to install.
func ArtifactMissing(id plan.StepID) *plan.Trouble {
	return codeArtifactMissing.Trouble(fmt.Sprintf("the %s block names no artifact with a digest, so there is nothing to install", id))
}
