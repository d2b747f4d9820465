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

// Marker is /etc/macfleet/host.json on a host: its owner and what was last verified there. It explains a
// difference and never causes one. It holds no secret and no digest of one.
type Marker struct {
	Configuration string            `json:"configuration"`
	Environment   string            `json:"environment"`
	Name          string            `json:"name"`
	Fleet         string            `json:"fleet"`
	Group         string            `json:"group"`
	ServerID      string            `json:"server_id"`
	Serial        string            `json:"serial"`
	ClusterUID    string            `json:"cluster_uid,omitempty"` // uid of the cluster; empty: none, or an older macfleet wrote it
	Cluster       string            `json:"cluster,omitempty"`     // what that cluster was called, for people
	Version       string            `json:"version"`               // version of macfleet that wrote it
	Run           *MarkerRun        `json:"run,omitempty"`
	Steps         map[StepID]Digest `json:"steps,omitempty"`
	Hold          *inventory.Hold   `json:"hold,omitempty"` // a person's hold; nil: none
	// Repairs are the failed repairs in a row; nil: none.
	Repairs *inventory.Repairs `json:"repairs,omitempty"`
	Fence   *Fence             `json:"fence,omitempty"` // nil: no run keeps new jobs away from the host's agent
}

// SudoersFile gives the login user root without a password. The step sudo writes it, and a failed claim
// removes it.
const SudoersFile = "/etc/sudoers.d/macfleet"

// Digest is what one step's last verification recorded: what was configured, the normalised facts right after
// it, and when.
type Digest struct {
	Wanted string    `json:"wanted"`
	Facts  string    `json:"facts"`
	At     time.Time `json:"at,omitzero"` // zero: unknown
}

// Same reports whether two records are equal but for their time.
func (d Digest) Same(other Digest) bool {
	return d.Wanted == other.Wanted && d.Facts == other.Facts
}

// DigestOf returns the digests of a step's configuration and of what was seen.
func DigestOf(wanted, facts string) Digest {
	want, seen := digestOf(wanted), digestOf(facts)
	return Digest{Wanted: string(want[:]), Facts: string(seen[:])}
}

// digestKind precedes the hex digits of a digest.
const digestKind = "sha256:"

// digestText is a digest as text, before it becomes a string: a plan of a big fleet compares far more of them
// than it keeps.
type digestText [len(digestKind) + 2*sha256.Size]byte

func digestOf(text string) digestText {
	var short [2 << 10]byte // most texts fit, so nothing is allocated
	sum := sha256.Sum256(append(short[:0], text...))
	var out digestText
	hex.Encode(out[copy(out[:], digestKind):], sum[:])
	return out
}

// Moved returns which side has changed since the last verification: the configuration or the facts.
func (d Digest) Moved(wanted, facts string) Origin {
	want := digestOf(wanted)
	seen := want
	if facts != wanted { // usually they are equal
		seen = digestOf(facts)
	}
	return Origin{Drift: string(seen[:]) != d.Facts, Pending: string(want[:]) != d.Wanted}
}

// ParseMarker reads a marker. Text that is not one JSON object with an owner, a
// name and a server id is an error.
func ParseMarker(text string) (Marker, error) {
	var m Marker
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return Marker{}, fmt.Errorf("it is not a marker of macfleet: %w", err)
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

// Owner returns the host's owner.
func (m Marker) Owner() fleet.Owner {
	return fleet.Owner{Name: m.Configuration, Environment: m.Environment}
}

// With returns the marker with a step's record. One that equals the last one keeps its time: it was verified
// then.
func (m Marker) With(step StepID, d Digest) Marker {
	if have, ok := m.Steps[step]; ok && have.Same(d) {
		d = have
	}
	m = m.Without(step)
	m.Steps[step] = d
	return m
}

// Without returns the marker without a step's record: what it described is gone.
func (m Marker) Without(step StepID) Marker {
	steps := make(map[StepID]Digest, len(m.Steps)+1)
	maps.Copy(steps, m.Steps)
	delete(steps, step)
	m.Steps, m.Version = steps, fleet.Version
	return m
}

// newer reports whether a newer macfleet wrote the marker. An unreadable version counts as newer: this
// macfleet does not know what it means.
func (m Marker) newer() bool {
	if m.Version == fleet.Version {
		return false // the usual case, and comparing versions is slower than a step
	}
	theirs, err := semver.NewVersion(m.Version)
	return err != nil || theirs.GreaterThan(semver.MustParse(fleet.Version))
}
