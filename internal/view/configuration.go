package view

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/wire"
)

// Faults are what is wrong with a configuration, and the files they are in.
type Faults struct {
	Files map[string]*hcl.File
	Diags hcl.Diagnostics
	Ends  map[string]hcl.Range // where ignore blocks say until when they hold, by their names
}

// Add enters an error that has no place in the texts.
func (f *Faults) Add(summary, detail string) {
	f.Diags = append(f.Diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail})
}

// Warn enters a warning about an ignore block; without one it has no place in the texts.
func (f *Faults) Warn(ignore, summary, detail string) {
	d := &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: summary, Detail: detail}
	if at, ok := f.Ends[ignore]; ok {
		d.Subject = &at
	}
	f.Diags = append(f.Diags, d)
}

// Diagnostics shows the faults of a configuration, each with its place, the source line
// and what to do.
func (t *Text) Diagnostics(files map[string]*hcl.File, diags hcl.Diagnostics) error {
	var b strings.Builder
	coloured := t.strong.Render("x") != "x"
	err := hcl.NewDiagnosticTextWriter(&b, files, uint(max(t.width, 0)), coloured).WriteDiagnostics(diags)
	if err == nil {
		_, err = io.WriteString(t.out, harmless(b.String(), coloured))
	}
	if err != nil {
		return fmt.Errorf("show diagnostics: %w", err)
	}
	if n := len(diags.Errs()); n > 0 {
		t.sayf("%s in the configuration.", count(n, "error"))
	}
	return nil
}

// harmless escapes control characters, which a terminal would obey: a pull request may
// bring lines from anyone. Tabs stay, and so do the writer's colours, if it has any.
func harmless(text string, coloured bool) string {
	pieces := regexp.MustCompile(`\r?\n|\t|\x1b\[[0-9;]*m|[^\t\r\n\x1b]+|[\r\x1b]`)
	return pieces.ReplaceAllStringFunc(text, func(piece string) string {
		switch {
		case piece == "\r\n": // of a file with such line ends
			return "\n"
		case piece == "\n", piece == "\t", coloured && strings.HasPrefix(piece, "\x1b["):
			return piece
		}
		return printable(piece)
	})
}

// Valid says that a configuration has no fault.
func (t *Text) Valid(owner string, fleets, replicas int) {
	t.sayf("The configuration of %s is valid: %s, %s wanted.", owner, count(fleets, "fleet"), count(replicas, "host"))
}

// Validation is what a check of a configuration came to, as one JSON object.
type Validation struct {
	wire.Head
	Valid        bool         `json:"valid"`
	ErrorCount   int          `json:"error_count"`
	WarningCount int          `json:"warning_count"`
	Diagnostics  []Diagnostic `json:"diagnostics"`
}

// Diagnostic is a fault of the configuration, or any other error that ended a command.
type Diagnostic struct {
	Severity string `json:"severity"` // error or warning
	Summary  string `json:"summary"`
	Detail   string `json:"detail"`
	Range    *Range `json:"range,omitempty"` // absent: the fault has no place
}

// Range is a place in a file, from its first character to behind its last.
type Range struct {
	Filename string   `json:"filename"`
	Start    Position `json:"start"`
	End      Position `json:"end"`
}

// Position is a place between two characters.
type Position struct {
	Line   int `json:"line"`   // counted from 1
	Column int `json:"column"` // in characters, counted from 1
	Byte   int `json:"byte"`   // from the beginning of the file, counted from 0
}

func severity(d *hcl.Diagnostic) string {
	if d.Severity == hcl.DiagWarning {
		return "warning"
	}
	return "error"
}

// DiagnosticsOf returns a configuration's faults for programs.
func DiagnosticsOf(diags hcl.Diagnostics) []Diagnostic {
	return wire.Each(diags, func(d *hcl.Diagnostic) Diagnostic {
		one := Diagnostic{Severity: severity(d), Summary: d.Summary, Detail: d.Detail}
		if r := d.Subject; r != nil {
			one.Range = &Range{Filename: r.Filename, Start: Position(r.Start), End: Position(r.End)}
		}
		return one
	})
}

// WriteValidation prints the faults of a configuration as one JSON object.
func WriteValidation(out io.Writer, all []Diagnostic) error {
	v := Validation{Head: wire.NewHead(), WarningCount: len(all), Diagnostics: all}
	for _, d := range all {
		if d.Severity == "error" {
			v.ErrorCount++
			v.WarningCount--
		}
	}
	v.Valid = v.ErrorCount == 0
	return wire.Write(out, v)
}

// Version says which macfleet this is, as one JSON object.
type Version struct {
	wire.Head
	Go     string `json:"go"`
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	Commit string `json:"commit,omitempty"` // of the source, where the build recorded it
}

// WriteVersion prints the version as one JSON object.
func WriteVersion(out io.Writer) error {
	v := Version{Head: wire.NewHead(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
	}
	return wire.Write(out, v)
}

// ArtifactsDocument is the artifacts of a configuration as one JSON object.
type ArtifactsDocument struct {
	wire.OwnedHead
	Artifacts []ArtifactRow `json:"artifacts"`
}

// ArtifactRow is one artifact, and what is known of it without a request.
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

// ArtifactRows returns the artifacts of a configuration. state says what this machine has.
func ArtifactRows(c *fleet.Config, state func(fleet.Artifact) (cached, changed bool)) []ArtifactRow {
	uses := c.ArtifactUses()
	return wire.Each(c.Artifacts, func(a fleet.Artifact) ArtifactRow {
		cached, changed := state(a)
		return ArtifactRow{Name: a.Name, Version: a.Version, Source: a.Source, SHA256: a.SHA256, Size: a.Size,
			Fetch: string(a.Fetch), Cached: cached, Changed: changed, Fleets: append([]string{}, uses[a.Name]...)}
	})
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
		size, cached := "-", "no"
		if r.Size > 0 {
			size = bytes(r.Size)
		}
		switch {
		case r.Changed:
			cached = "changed"
		case r.Cached:
			cached = "yes"
		}
		fleets := cmp.Or(strings.Join(r.Fleets, ", "), "none")
		table = append(table, []string{r.Name, r.Version, shortDigest(r.SHA256), size, r.Fetch, cached, fleets})
	}
	t.Table(table, "FETCH", "CACHED", "SIZE")
}

// shortDigest returns enough of a digest to tell it from others.
func shortDigest(sum string) string { return cmp.Or(sum[:min(12, len(sum))], "not locked") }

// Lock is what happened to an artifact when its source was read.
type Lock struct {
	Artifact fleet.Artifact
	SHA256   string // that its source has
	Size     int64  // bytes
	Refused  bool   // it has changed, and --update does not name it
	Err      error  // it could not be read; nil: it was
}

// Differs reports whether the configuration says anything else of the source.
func (l Lock) Differs() bool {
	return l.Err == nil && (l.SHA256 != l.Artifact.SHA256 || l.Size != l.Artifact.Size)
}

// Locks prints what happened to the artifacts, and the files that were written.
func (t *Text) Locks(all []Lock, files []string) {
	for _, l := range all {
		name := l.Artifact.Name + " " + l.Artifact.Version + ": "
		was, now := bytes(l.Artifact.Size), l.SHA256+", "+bytes(l.Size)
		if l.Artifact.Size == 0 {
			was = "not written"
		}
		switch {
		case l.Err != nil:
			t.line(0, signRefused, l.Err.Error())
		case l.Refused:
			t.line(0, signRefused, name+"changed: "+l.Artifact.Source+" has "+now+", and locked is "+l.Artifact.SHA256)
			t.line(4, "", "fix: if it was changed on purpose: macfleet artifacts lock --update "+l.Artifact.Name+"; otherwise find out who changed it")
		case l.Artifact.SHA256 == "":
			t.line(0, "+", name+now)
		case l.SHA256 != l.Artifact.SHA256:
			t.line(0, "~", name+l.Artifact.SHA256+" → "+now)
		case l.Differs():
			t.line(0, "~", name+"size "+was+" → "+bytes(l.Size))
		default:
			t.line(0, "", name+"locked, "+shortDigest(l.SHA256))
		}
	}
	for _, f := range files {
		t.Say("Wrote " + f + ".")
	}
}

// Prepared is an object that a cluster needs before its first plan, and what for.
type Prepared struct {
	inventory.Object
	For string
}

// Preparation shows what a cluster lacks, what for, and how much is right.
func (t *Text) Preparation(all []Prepared) {
	kept := len(all)
	var needed, foreign []Prepared
	for _, p := range all {
		switch p.State {
		case inventory.ObjectKept:
			continue
		case inventory.ObjectForeign:
			foreign = append(foreign, p)
		default:
			needed = append(needed, p)
		}
		kept--
	}
	for _, p := range foreign {
		t.Warn(fmt.Sprintf("the %s is not changed: %s", p.Object, p.Why))
	}
	if len(needed) == 0 {
		t.sayf("The cluster is prepared: %s in sync.", count(kept, "object"))
		return
	}
	verbs := map[inventory.ObjectState]string{inventory.ObjectDiffers: "change", inventory.ObjectSurplus: "remove", inventory.ObjectUnserved: "remove"}
	rows, counts := [][]string{{"ACTION", "OBJECT", "FOR"}}, make(map[string]int)
	for _, same := range grouped(needed, func(p Prepared) [2]string { return [2]string{string(p.State), p.For} }) {
		verb, purpose := cmp.Or(verbs[same[0].State], "create"), same[0].For
		for _, p := range same {
			counts[verb]++
			rows = append(rows, []string{verb, p.String(), listed("; ", purpose, p.Why)})
			purpose = ""
		}
	}
	t.Table(rows, "FOR")
	t.sayf("The cluster needs %s: %s.", count(len(needed), "change"), listed(", ", given(counts["create"] > 0, "create %d", counts["create"]),
		given(counts["change"] > 0, "change %d", counts["change"]), given(counts["remove"] > 0, "remove %d", counts["remove"]), given(kept > 0, "%s in sync", count(kept, "object"))))
}

// AgentsUnbound says what the cluster cannot be made to forbid.
func (t *Text) AgentsUnbound() {
	t.Say("This cluster serves no ValidatingAdmissionPolicy (Kubernetes 1.30 and later do): a host's tart-kubelet can change other hosts' Nodes, Leases and Pods.")
}
