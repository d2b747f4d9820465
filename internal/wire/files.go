package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// The versions of files. A reader ignores unknown keys of a snapshot and refuses another
// major version.
const (
	PlanFileFormat = "2.0"
	RecordFormat   = "2.0" // of snapshots
)

// LongestExpiry is the longest lifetime of a plan file: hosts change in the meantime.
const LongestExpiry = 7 * 24 * time.Hour

// clockSkew is how far the clocks of two machines may be apart.
const clockSkew = 10 * time.Minute

// PlanFile is a saved plan: an apply of it performs the approved actions and nothing else.
type PlanFile struct {
	OwnedHead
	ConfigurationHash string            `json:"configuration_hash"` // fleet.Config.Hash of the planned configuration
	MadeAt            time.Time         `json:"made_at"`
	MadeBy            string            `json:"made_by"` // user@machine
	ExpiresAt         time.Time         `json:"expires_at"`
	Expired           *bool             `json:"expired,omitempty"` // only printed by macfleet show
	On                []string          `json:"on"`                // selectors, as given
	Exclude           []string          `json:"exclude"`           // likewise
	Steps             []plan.StepID     `json:"steps"`             // the only steps that were compared; empty: all
	Approves          []string          `json:"approves"`          // addresses of the approved actions
	Document          Plan              `json:"plan"`              // as macfleet plan --json prints it
	Digests           map[string]string `json:"digests"`           // of the approved actions, by address
	SelfDigest        string            `json:"self_digest"`       // of all other bytes of the file; the last key

	Plan *plan.Plan `json:"-"` // the content of Document: no script, no argument, no fact
}

// NewPlanFile returns the file of a plan that was just computed. The caller fills in the
// times, the author and the flags.
func NewPlanFile(p *plan.Plan) PlanFile {
	f := PlanFile{OwnedHead: HeadOf(p.Owner), Document: PlanOf(p), Digests: p.Approve().Digests, Steps: p.Steps, Plan: p}
	f.FormatVersion = PlanFileFormat
	return f
}

// Approved returns what the file approves.
func (f PlanFile) Approved() *plan.Approved {
	return &plan.Approved{Owner: f.Plan.Owner, Digests: f.Digests, Keys: f.Plan.Keys(), Deferred: f.Plan.Deferrals()}
}

// Actions returns the actions that the file approves, in their order.
func (f PlanFile) Actions() []plan.Action {
	return slices.DeleteFunc(slices.Clone(f.Plan.Actions), func(a plan.Action) bool { return f.Digests[a.Address()] == "" })
}

// Gone returns the approved actions that the present plan no longer has.
func (f PlanFile) Gone(now *plan.Plan) []plan.Action {
	wanted := make(map[string]bool, len(now.Actions)) // by address
	for _, a := range now.Actions {
		wanted[a.Address()] = true
	}
	return slices.DeleteFunc(f.Actions(), func(a plan.Action) bool { return wanted[a.Address()] })
}

// filled returns the file with the keys that are derived from others.
func (f PlanFile) filled() PlanFile {
	f.On, f.Exclude, f.Steps = append([]string{}, f.On...), append([]string{}, f.Exclude...), append([]plan.StepID{}, f.Steps...)
	f.Approves = Each(f.Actions(), plan.Action.Address)
	return f
}

// Shown returns the file as macfleet show prints it at a time.
func (f PlanFile) Shown(now time.Time) PlanFile {
	f.FormatVersion, f.Expired = Format, new(!now.Before(f.ExpiresAt))
	return f.filled()
}

// Encode returns the file's content: the same plan file gives the same bytes. Its
// last line is a digest of all others.
func (f PlanFile) Encode() ([]byte, error) {
	content, err := encode(f.filled(), "  ")
	return seal(content), err
}

// selfDigest is the line that holds the digest of a file's other bytes.
var selfDigest = regexp.MustCompile(`(\n  "self_digest": ")([^"\n]*)("\n\}\n?)$`)

const digestKind = "sha256:"

// seal writes the digest into a content. It is computed without a digest in its place.
func seal(content []byte) []byte {
	bare := selfDigest.ReplaceAll(content, []byte("${1}${3}"))
	sum := sha256.Sum256(bare)
	return selfDigest.ReplaceAll(bare, []byte("${1}"+digestKind+hex.EncodeToString(sum[:])+"${3}"))
}

// ErrNoPlanFile means that a text is not a plan file that this macfleet can read.
var ErrNoPlanFile = errors.New("not a valid plan file")

// DecodePlanFile reads a file's content. The error wraps ErrNoPlanFile.
func DecodePlanFile(content []byte) (f PlanFile, err error) {
	defer func() {
		if err != nil {
			f, err = PlanFile{}, fmt.Errorf("%w: %w; make a new one: macfleet plan --out FILE", ErrNoPlanFile, err)
		}
	}()
	var head Head
	if err := decode(content, &head, false); err != nil {
		return f, err
	}
	switch {
	case head.FormatVersion != PlanFileFormat:
		return f, fmt.Errorf("format_version %q, this macfleet reads %s", head.FormatVersion, PlanFileFormat)
	case !selfDigest.Match(content):
		// Without that line nothing can be compared, and a reformatted text would be accepted.
		return f, errors.New("it does not end with its self_digest: it is another document or was edited")
	case !bytes.Equal(seal(content), content):
		return f, errors.New("it was modified after it was written (checksum mismatch)")
	}
	if err := decode(content, &f, true); err != nil {
		return f, err
	}
	if f.Plan, err = f.Document.plan(); err != nil {
		return f, err
	}
	f.Document = PlanOf(f.Plan)
	f.Document.MacfleetVersion = f.MacfleetVersion
	return f, nil
}

// Check returns why the file must not be applied to a configuration now, or nil.
func (f PlanFile) Check(cfg *fleet.Config, now time.Time) error {
	const another = "; make a new plan: macfleet plan --out FILE"
	switch {
	case f.Owner() != cfg.Owner:
		return fmt.Errorf("it was made for %s, but this configuration is %s; choose its directory with -C and its environment with -e", ownerText(f.Owner()), ownerText(cfg.Owner))
	case f.MacfleetVersion != fleet.Version:
		return fmt.Errorf("it was made by macfleet %s, and this is %s, which may act differently"+another, f.MacfleetVersion, fleet.Version)
	case f.ConfigurationHash != cfg.Hash():
		return fmt.Errorf("the configuration or a variable changed since this plan was made (%s then, %s now)"+another, brief(f.ConfigurationHash), brief(cfg.Hash()))
	case f.ExpiresAt.Sub(f.MadeAt) > LongestExpiry || f.MadeAt.After(now.Add(clockSkew)):
		return fmt.Errorf("invalid times (made %s, expires %s): the file was edited, or a clock is wrong"+another, at(f.MadeAt), at(f.ExpiresAt))
	case !now.Before(f.ExpiresAt):
		return fmt.Errorf("it expired %s"+another, at(f.ExpiresAt))
	}
	return nil
}

// brief is a digest for a message.
func brief(digest string) string { return digest[:min(len(digest), len(digestKind)+12)] }

func at(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

func ownerText(o fleet.Owner) string {
	if o.Environment == "" {
		return fmt.Sprintf("%q without an environment", o.Name)
	}
	return fmt.Sprintf("%q, environment %q", o.Name, o.Environment)
}

// Record is a snapshot in a file: plans are made from it without network and credentials.
type Record struct {
	OwnedHead
	plan.Snapshot
}

// NewRecord returns the record of an observation for a configuration.
func NewRecord(o fleet.Owner, snap plan.Snapshot) Record {
	r := Record{HeadOf(o), snap}
	r.FormatVersion = RecordFormat
	return r
}

// Encode returns the file's content: the same record gives the same bytes. The
// only error is a time outside the years 0 to 9999.
func (r Record) Encode() ([]byte, error) {
	r.Servers, r.Pins = append([]inventory.Server{}, r.Servers...), append([]plan.Pin{}, r.Pins...)
	if r.Hosts == nil {
		r.Hosts = map[string]plan.HostSeen{}
	}
	return encode(r, " ")
}

// ErrNoSnapshot means that a text is not a snapshot file that this macfleet can read.
var ErrNoSnapshot = errors.New("not a valid snapshot file")

// DecodeRecord reads a file's content. It returns exactly what was encoded; an empty list
// and none are the same. Facts of a host that the file lacks are unread.
// The error wraps ErrNoSnapshot.
func DecodeRecord(content []byte) (r Record, err error) {
	var head Head
	err = decode(content, &head, false)
	major, _, _ := strings.Cut(RecordFormat, ".")
	if got, _, _ := strings.Cut(head.FormatVersion, "."); err == nil && got != major {
		return r, fmt.Errorf("%w: format_version %q, this macfleet reads %s.x; record a new one, or use the macfleet that wrote it",
			ErrNoSnapshot, head.FormatVersion, major)
	}
	if err == nil {
		err = decode(content, &r, false)
	}
	switch { // a missing inventory must not look like an empty one
	case err != nil:
	case r.Configuration == "":
		err = errors.New("it has no configuration")
	case r.Servers == nil:
		err = errors.New("it has no servers")
	case r.Pins == nil:
		err = errors.New("it has no pins")
	case r.Hosts == nil:
		err = errors.New("it has no hosts")
	}
	if err != nil {
		return Record{}, fmt.Errorf("%w: %w; record a new one", ErrNoSnapshot, err)
	}
	return r, nil
}

// Check returns an error for a record of another configuration or environment: all its
// hosts would look like strays.
func (r Record) Check(owner fleet.Owner) error {
	if r.Owner() == owner {
		return nil
	}
	return fmt.Errorf("it was recorded for %s, but this configuration is %s; choose its directory with -C and its environment with -e, or record a new one",
		ownerText(r.Owner()), ownerText(owner))
}
