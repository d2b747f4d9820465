package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// Marker is /etc/macfleet/host.json on a host: whose it is, and what was last proven there.
// It explains a difference and never makes one, and holds no secret and no digest of one.
type Marker struct {
	Configuration string            `json:"configuration"`
	Environment   string            `json:"environment"`
	Name          string            `json:"name"`
	Fleet         string            `json:"fleet"`
	Group         string            `json:"group"`
	ServerID      string            `json:"server_id"`
	Serial        string            `json:"serial"`
	ClusterUID    string            `json:"cluster_uid,omitempty"` // of the cluster that was seen; empty: none, or an older macfleet wrote it
	Cluster       string            `json:"cluster,omitempty"`     // what that cluster was called then, for people
	Version       string            `json:"version"`               // of the macfleet that wrote it
	Run           *MarkerRun        `json:"run,omitempty"`
	Steps         map[StepID]Digest `json:"steps,omitempty"`
	Hold          *inventory.Hold   `json:"hold,omitempty"` // a person wants the host left alone; nil: nobody
}

// SudoersFile gives the login user root without a password. The step sudo writes it, and a
// claim that fails takes it away again.
const SudoersFile = "/etc/sudoers.d/macfleet"

// Digest is what one step's last proof left: what was wanted, the normalised
// facts right after it, and when that was.
type Digest struct {
	Wanted string    `json:"wanted"`
	Facts  string    `json:"facts"`
	At     time.Time `json:"at,omitzero"` // zero: not known
}

// Same reports whether two proofs say the same, whenever they were made.
func (d Digest) Same(other Digest) bool {
	return d.Wanted == other.Wanted && d.Facts == other.Facts
}

// DigestOf returns the digests of what a step wants and of what was seen.
func DigestOf(wanted, facts string) Digest {
	want, seen := digestOf(wanted), digestOf(facts)
	return Digest{Wanted: string(want[:]), Facts: string(seen[:])}
}

// digestKind stands before the hex digits of a digest.
const digestKind = "sha256:"

// digestText is a digest as text, before it becomes a string: a plan of a big
// fleet compares far more of them than it keeps.
type digestText [len(digestKind) + 2*sha256.Size]byte

func digestOf(text string) digestText {
	var short [2 << 10]byte // most texts fit, and then nothing is allocated
	sum := sha256.Sum256(append(short[:0], text...))
	var out digestText
	hex.Encode(out[copy(out[:], digestKind):], sum[:])
	return out
}

// Moved says what differs between a proof and what is wanted and seen now.
func (d Digest) Moved(wanted, facts string) Origin {
	want := digestOf(wanted)
	seen := want
	if facts != wanted { // nearly always they are one text
		seen = digestOf(facts)
	}
	return Origin{Drift: string(seen[:]) != d.Facts, Pending: string(want[:]) != d.Wanted}
}

// ParseMarker reads a marker. Text that is not one JSON object with an owner, a
// name and a server id is an error.
func ParseMarker(text string) (Marker, error) {
	var m Marker
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return Marker{}, fmt.Errorf("it is not JSON as macfleet writes it: %w", err)
	}
	if m.Configuration == "" || m.Name == "" || m.ServerID == "" {
		return Marker{}, fmt.Errorf("it names no configuration, host or server")
	}
	return m, nil
}

// Encode returns the marker's file content: the same marker gives the same
// bytes.
func (m Marker) Encode() (string, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encode marker of %s: %w", m.Name, err)
	}
	return string(text) + "\n", nil
}

// Owner returns whose host it is.
func (m Marker) Owner() fleet.Owner {
	return fleet.Owner{Name: m.Configuration, Environment: m.Environment}
}

// With returns the marker with a step's proof entered. One that says what the
// last one said keeps its time: it was proven then.
func (m Marker) With(step StepID, d Digest) Marker {
	if have, ok := m.Steps[step]; ok && have.Same(d) {
		d = have
	}
	m = m.Without(step)
	m.Steps[step] = d
	return m
}

// Without returns the marker without a step's proof: what it proved is gone.
func (m Marker) Without(step StepID) Marker {
	steps := make(map[StepID]Digest, len(m.Steps)+1)
	maps.Copy(steps, m.Steps)
	delete(steps, step)
	m.Steps, m.Version = steps, fleet.Version
	return m
}

// newer reports whether a newer macfleet wrote the marker. A version that
// cannot be read counts as newer: this one does not know what it means.
func (m Marker) newer() bool {
	if m.Version == fleet.Version {
		return false // as nearly always, and comparing versions costs more than a step does
	}
	theirs, err := semver.NewVersion(m.Version)
	return err != nil || theirs.GreaterThan(semver.MustParse(fleet.Version))
}
