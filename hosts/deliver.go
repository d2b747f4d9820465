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

// Codes of deliveries.
var (
	codeWrongArtifact = plan.NewCode("wrong-artifact", plan.NotDrift, "checksum mismatch: the delivered file does not have the locked SHA-256 and was deleted",
		"if the change is intended, run macfleet artifacts lock --update; otherwise find out who changed the file")
	codeDownloadFailed = plan.NewCode("download-failed", plan.NotDrift, "the host could not download an artifact; the partial download is kept",
		`check that the host can reach the URL, or let macfleet upload the file with fetch = "push"; then apply again`)
)

// Delivered describes how an artifact was delivered.
type Delivered struct {
	There   bool  // the host had it already
	Resumed int64 // bytes kept from an interrupted delivery
	Sent    int64 // bytes sent now, after compression
	Packed  bool  // compressed with gzip, because the connection was slow
}

// Source opens an artifact and returns its size.
type Source = func() (io.ReadCloser, int64, error)

// Progress is the progress of an artifact's upload.
type Progress struct {
	Host     string
	Artifact fleet.Artifact
	Done     int64 // bytes of the artifact sent now or earlier
	Size     int64
	Edge     Edge
}

// Edge says whether an upload just took or released its slot, or neither (0). Events at an edge
// have no byte count.
type Edge int

// The edges of an upload.
const (
	Begins Edge = iota + 1
	Ends
)

// The exit codes of the delivery scripts.
const (
	pieceMissing   = 3 // the data ended too early
	diskFull       = 4
	wrongBytes     = 5
	downloadFailed = 6
	partGone       = 7 // the partial file to resume from is gone
)

// look is what a host already has of an artifact.
type look struct {
	there bool
	part  string // of an interrupted delivery; empty: none
	bytes int64  // of the part
	sum   string // SHA-256 of the part
	free  int64  // bytes
}

// Deliver uploads an artifact from source, or lets the host download it, unless the host has
// it. The file appears complete and verified, or does not appear; an interrupted delivery is
// resumed later. Concurrent deliveries of the same artifact do not interfere.
//
// The error is an *Error of the connection or with the code "disk-full", "wrong-artifact",
// "download-failed" or "job-running".
func (c *Conn) Deliver(ctx context.Context, d plan.Delivery, source Source) (Delivered, error) {
	if why := fleet.CheckText("sha256", d.Artifact.SHA256); why != "" {
		return Delivered{}, fmt.Errorf("deliver %s to %s: invalid sha256: %s", d.Artifact, c.target.name(), why)
	}
	answer, err := c.own(ctx, "artifact-look", c.folder(), d.Artifact.SHA256)
	if err != nil {
		return Delivered{}, fmt.Errorf("deliver %s: %w", d.Artifact, err)
	}
	seen, ok := parseLook(answer.Stdout)
	switch {
	case !ok:
		return Delivered{}, fmt.Errorf("deliver %s: artifact-look on %s: unexpected output %q", d.Artifact, c.target.name(), head(answer.Stdout))
	case seen.there:
		return Delivered{There: true}, nil
	}
	if need := max(d.Space, d.Artifact.Size); seen.free < need {
		return Delivered{}, c.full(d.Artifact, fmt.Sprintf("%s free, needs %s", size(seen.free), size(need)))
	}
	if d.Artifact.Fetch == fleet.FetchHost {
		return Delivered{Resumed: seen.bytes}, c.fetch(ctx, d.Artifact)
	}
	return c.push(ctx, d.Artifact, seen, source)
}

// folder returns the artifact folder on this host.
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

// fetch lets the host download an artifact under launchd.
func (c *Conn) fetch(ctx context.Context, a fleet.Artifact) error {
	command := own("artifact-fetch", plan.Root, c.folder(), a.SHA256, a.Source)
	answer, err := c.RunDetached(ctx, "artifact", plan.Change{Command: command, Detached: true})
	if err != nil && answer.Exit == 0 {
		return fmt.Errorf("deliver %s: %w", a, err)
	}
	return c.outcome(a, answer, "check that the host can reach "+a.Source+", or let macfleet upload the file with fetch = \"push\"; then apply again: the download is resumed")
}

// outcome turns the answer of a delivery script into an error.
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

// full returns the error for a full disk.
func (c *Conn) full(a fleet.Artifact, why string) *Error {
	return c.target.fails(plan.CodeDiskFull, Delivering, fmt.Errorf("%s: %s", a, why),
		"free disk space on the host (tart list, tart delete, tart prune), then apply again")
}

// PruneArtifacts deletes artifacts on a host that no receipt names and that are older than a
// day; removed: of any age, because what they belonged to was removed. A later run retries what cannot be deleted.
func (c *Conn) PruneArtifacts(ctx context.Context, removed bool) error {
	age := "86400"
	if removed {
		age = "-1"
	}
	if _, err := c.own(ctx, "artifact-prune", c.folder(), age); err != nil {
		return fmt.Errorf("delete old artifacts: %w", err)
	}
	return nil
}

// size formats a number of bytes.
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
