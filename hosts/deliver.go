package hosts

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

// The codes that are raised here.
var (
	codeWrongArtifact = plan.NewCode("wrong-artifact", plan.NotDrift, "what arrived has another SHA-256 than the configuration says; it was removed",
		"if the file was changed on purpose, run macfleet artifacts lock --update; else find out who changed it")
	codeDownloadFailed = plan.NewCode("download-failed", plan.NotDrift, "the host could not download an artifact; what came stays for the next time",
		`see whether the host reaches the URL, or let macfleet upload it with fetch = "push"; then run macfleet apply again`)
)

// Delivered says how an artifact came to a host.
type Delivered struct {
	There   bool  // it lay there already
	Resumed int64 // bytes that a broken delivery had brought before
	Sent    int64 // bytes that this one sent: fewer than the artifact's where they were packed
	Packed  bool  // with gzip, because the line was slow
}

// Source opens an artifact's bytes and says how many there are.
type Source = func() (io.ReadCloser, int64, error)

// Progress is how far the upload of an artifact has come.
type Progress struct {
	Host     string
	Artifact fleet.Artifact
	Done     int64 // bytes of the artifact that have left, or were there before
	Size     int64
	Edge     Edge
}

// Edge says whether an upload just took its place among those at once, or gave it
// up, done or not, or neither (0). What is told at an edge holds no bytes.
type Edge int

// The edges of an upload.
const (
	Begins Edge = iota + 1
	Ends
)

// The exit codes of the scripts that bring an artifact.
const (
	pieceMissing   = 3 // the bytes ended too early
	diskFull       = 4
	wrongBytes     = 5
	downloadFailed = 6
	partGone       = 7 // what was to be gone on with
)

// look is what a host has of an artifact.
type look struct {
	there bool
	part  string // left by a broken delivery; empty: nothing is
	bytes int64  // of the part
	sum   string // SHA-256 of the part
	free  int64  // bytes
}

// Deliver brings an artifact to where it lies on a host, and does nothing where
// the right one is there. By its Fetch it is sent, by the bytes of source, or the
// host downloads it itself and nothing is sent. It gets its name whole and
// checked, or not at all; what broke off goes on the next time. Runs that bring
// the same artifact at once do not disturb each other.
//
// The error is an *Error when the connection broke, or with the code "disk-full",
// "wrong-artifact", "download-failed" or "job-running".
func (c *Conn) Deliver(ctx context.Context, d plan.Delivery, source Source) (Delivered, error) {
	if why := fleet.CheckText("sha256", d.Artifact.SHA256); why != "" {
		return Delivered{}, fmt.Errorf("deliver %s to %s: its sha256: %s", d.Artifact, c.target.name(), why)
	}
	answer, err := c.own(ctx, "artifact-look", c.folder(), d.Artifact.SHA256)
	if err != nil {
		return Delivered{}, fmt.Errorf("deliver %s: %w", d.Artifact, err)
	}
	seen, ok := parseLook(answer.Stdout)
	switch {
	case !ok:
		return Delivered{}, fmt.Errorf("deliver %s: artifact-look on %s: it printed %q", d.Artifact, c.target.name(), head(answer.Stdout))
	case seen.there:
		return Delivered{There: true}, nil
	}
	if need := max(d.Space, d.Artifact.Size); seen.free < need {
		return Delivered{}, c.full(d.Artifact, fmt.Sprintf("%s are needed, and %s are free", size(need), size(seen.free)))
	}
	if d.Artifact.Fetch == fleet.FetchHost {
		return Delivered{Resumed: seen.bytes}, c.fetch(ctx, d.Artifact)
	}
	return c.push(ctx, d.Artifact, seen, source)
}

// folder is where artifacts lie on this host.
func (c *Conn) folder() string {
	return c.client.opts.ArtifactFolder(c.target.Server.ID)
}

func parseLook(text string) (seen look, ok bool) {
	for line := range strings.Lines(text) {
		if line == "there\n" {
			seen.there, ok = true, true
		} else if _, err := fmt.Sscanf(line, "free %d\n", &seen.free); err == nil {
			seen.free, ok = seen.free*1024, true
		} else if _, err := fmt.Sscanf(line, "part %s %d %s\n", &seen.part, &seen.bytes, &seen.sum); err != nil {
			return look{}, false
		}
	}
	return seen, ok
}

// fetch lets the host download an artifact, under launchd.
func (c *Conn) fetch(ctx context.Context, a fleet.Artifact) error {
	command := own("artifact-fetch", plan.Root, c.folder(), a.SHA256, a.Source)
	answer, err := c.RunDetached(ctx, "artifact", plan.Change{Command: command, Detached: true})
	if err != nil && answer.Exit == 0 {
		return fmt.Errorf("deliver %s: %w", a, err)
	}
	return c.outcome(a, answer, "see whether the host reaches "+a.Source+" (macfleet uploads it with fetch = \"push\"), and run macfleet apply again: it goes on where this broke off")
}

// outcome turns the answer of a script that brought an artifact into an error.
func (c *Conn) outcome(a fleet.Artifact, answer plan.Answer, retry string) error {
	said := lastLine(answer.Stderr)
	switch answer.Exit {
	case 0:
		return nil
	case diskFull:
		return c.full(a, said)
	case wrongBytes:
		return c.target.fails(codeWrongArtifact, Delivering, fmt.Errorf("%s: %s", a, said))
	case downloadFailed:
		return c.target.fails(codeDownloadFailed, Delivering, fmt.Errorf("%s: %s", a, said), retry)
	}
	return &ScriptError{Host: c.target.name(), Script: "delivery of " + a.String(), Answer: answer}
}

// full says that an artifact has no place.
func (c *Conn) full(a fleet.Artifact, why string) *Error {
	return c.target.fails(plan.CodeDiskFull, Delivering, fmt.Errorf("%s: %s", a, why),
		"make room on the host, for example with tart list and tart delete or tart prune, and run macfleet apply again")
}

// PruneArtifacts removes the artifacts from a host that no step keeps and that
// are older than a day. What it cannot remove stays for the next time.
func (c *Conn) PruneArtifacts(ctx context.Context) error {
	if _, err := c.own(ctx, "artifact-prune", c.folder()); err != nil {
		return fmt.Errorf("remove old artifacts: %w", err)
	}
	return nil
}

// size writes bytes for a person.
func size(n int64) string {
	units := []string{"bytes", "kB", "MB", "GB", "TB", "PB"}
	f, i := float64(n), 0
	for f >= 999.5 && i < len(units)-1 {
		f, i = f/1000, i+1
	}
	if i > 0 && f < 9.95 {
		return strconv.FormatFloat(f, 'f', 1, 64) + " " + units[i]
	}
	return strconv.FormatFloat(f, 'f', 0, 64) + " " + units[i]
}
