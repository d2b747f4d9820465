package view

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/wire"
)

// ArtifactsDocument is the artifacts of a configuration as one JSON object.
type ArtifactsDocument struct {
	wire.OwnedHead
	Artifacts []ArtifactRow `json:"artifacts"`
}

// ArtifactRow is one artifact, and what is known of it without asking anybody.
type ArtifactRow struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Source  string   `json:"source"`
	SHA256  string   `json:"sha256"`  // "" = not locked
	Size    int64    `json:"size"`    // bytes; 0 = not written
	Fetch   string   `json:"fetch"`   // host or push
	Cached  bool     `json:"cached"`  // its bytes are on this machine
	Changed bool     `json:"changed"` // its file has other bytes than were locked
	Fleets  []string `json:"fleets"`  // that use it
}

// ArtifactRows returns the artifacts of a configuration in its order. state says how
// what this machine has of one is.
func ArtifactRows(c *fleet.Config, state func(fleet.Artifact) (cached, changed bool)) []ArtifactRow {
	rows, uses := []ArtifactRow{}, c.ArtifactUses()
	for _, a := range c.Artifacts {
		cached, changed := state(a)
		rows = append(rows, ArtifactRow{Name: a.Name, Version: a.Version, Source: a.Source, SHA256: a.SHA256, Size: a.Size,
			Fetch: string(a.Fetch), Cached: cached, Changed: changed, Fleets: append([]string{}, uses[a.Name]...)})
	}
	return rows
}

// WriteArtifacts prints the artifacts as one JSON object.
func WriteArtifacts(out io.Writer, c *fleet.Config, rows []ArtifactRow) error {
	return wire.Write(out, ArtifactsDocument{wire.HeadOf(c.Owner), rows})
}

// Artifacts prints the artifacts as a table.
func (t *Text) Artifacts(rows []ArtifactRow) {
	if len(rows) == 0 {
		t.Say("The configuration has no artifact.")
		return
	}
	table := [][]string{{"ARTIFACT", "VERSION", "SHA256", "SIZE", "FETCH", "CACHED", "FLEETS"}}
	for _, r := range rows {
		table = append(table, []string{r.Name, r.Version, shortDigest(r.SHA256), bytesOr(r.Size, "-"), r.Fetch,
			r.state(), cmp.Or(strings.Join(r.Fleets, ", "), "none")})
	}
	t.columns(0, table)
}

func (r ArtifactRow) state() string {
	switch {
	case r.Changed:
		return "changed"
	case r.Cached:
		return "yes"
	}
	return "no"
}

// shortDigest returns enough of a digest to tell it from others.
func shortDigest(sum string) string {
	const enough = 12
	if sum == "" {
		return "not locked"
	}
	return sum[:min(enough, len(sum))]
}

func bytesOr(n int64, none string) string {
	of, unit := unitOf(n)
	switch {
	case n == 0:
		return none
	case unit == "":
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", float64(n)/float64(of), unit)
}

// Lock is what became of an artifact when its source was looked at.
type Lock struct {
	Artifact fleet.Artifact
	SHA256   string // that its source has
	Size     int64  // bytes
	Refused  bool   // it has changed, and nobody said that it may
	Err      error  // it could not be read; nil: it was
}

// Differs reports whether the configuration says anything else of the source, or
// nothing.
func (l Lock) Differs() bool {
	return l.Err == nil && (l.SHA256 != l.Artifact.SHA256 || l.Size != l.Artifact.Size)
}

// Locks prints what became of the artifacts. With check nothing was written.
func (t *Text) Locks(all []Lock, files []string, check bool) {
	for _, l := range all {
		name := l.Artifact.Name + " " + l.Artifact.Version + ": "
		now := l.SHA256 + ", " + bytesOr(l.Size, "0 B")
		switch {
		case l.Err != nil:
			t.line(0, signRefused, l.Err.Error())
		case l.Refused:
			t.line(0, signRefused, name+"changed: "+l.Artifact.Source+" has "+now+", and locked is "+l.Artifact.SHA256)
			t.line(4, "", "to do: if it was changed on purpose, run macfleet artifacts lock --update "+l.Artifact.Name+"; else find out who changed it")
		case l.Artifact.SHA256 == "":
			t.line(0, "+", name+now)
		case l.SHA256 != l.Artifact.SHA256:
			t.line(0, "~", name+l.Artifact.SHA256+" → "+now)
		case l.Differs():
			t.line(0, "~", name+"size "+bytesOr(l.Artifact.Size, "not written")+" → "+bytesOr(l.Size, "0 B"))
		default:
			t.line(0, "", name+"locked, "+shortDigest(l.SHA256))
		}
	}
	if check {
		return
	}
	for _, f := range files {
		t.Say("Wrote " + f + ".")
	}
}
