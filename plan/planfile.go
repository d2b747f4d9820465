package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"time"

	"github.com/macfleet/macfleet/fleet"
)

// PlanFileFormat is the version of the plan file.
const PlanFileFormat = "1.0"

// LongestExpiry is how long a plan file may be good at most: the world goes on.
const LongestExpiry = 7 * 24 * time.Hour

// PlanFile is a plan that is kept: a person reads it, and an apply of it does what
// stands there and nothing else.
type PlanFile struct {
	Version       string // of the macfleet that made it
	Configuration string // fleet.Config.Hash of what it was made for
	Who           string // user@machine
	Made, Expires time.Time
	On, Exclude   []string // selectors, as they were given
	Rollback      bool     // so of --rollback
	Plan          *Plan    // as far as a person needs it: no script, no argument, no fact stands in it
	approved      map[string]string
}

// NewPlanFile returns the file of a plan that was just computed. The other fields
// are the caller's to fill.
func NewPlanFile(p *Plan) PlanFile {
	f := PlanFile{Version: fleet.Version, Plan: p, approved: make(map[string]string, len(p.Actions))}
	keys := p.keys()
	for _, a := range p.Actions {
		if a.Refusal == nil {
			f.approved[a.Address()] = p.approvalOf(a, keys[a.ServerID])
		}
	}
	return f
}

// Approved returns what the file approves.
func (f PlanFile) Approved() *Approved {
	return &Approved{Owner: f.Plan.Owner, Digests: maps.Clone(f.approved), Keys: f.Plan.keys()}
}

// Actions returns the actions that the file approves, in their order.
func (f PlanFile) Actions() []Action {
	var out []Action
	for _, a := range f.Plan.Actions {
		if f.approved[a.Address()] != "" {
			out = append(out, a)
		}
	}
	return out
}

// Gone returns the approved actions that a present plan of the same selection does
// not have any more: somebody has done them since.
func (f PlanFile) Gone(now *Plan) []Action {
	wanted := make(map[string]bool, len(now.Actions)) // by address
	for _, a := range now.Actions {
		wanted[a.Address()] = true
	}
	var out []Action
	for _, a := range f.Actions() {
		if !wanted[a.Address()] {
			out = append(out, a)
		}
	}
	return out
}

// Encode returns the file's content: the same plan file gives the same bytes. Its
// last line is a digest of all others.
func (f PlanFile) Encode() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(f.toFile()); err != nil {
		return nil, fmt.Errorf("encode the plan file: %w", err)
	}
	return seal(b.Bytes()), nil
}

// selfDigest is the line that holds the digest of a file's other bytes.
var selfDigest = regexp.MustCompile(`(\n  "self_digest": ")([^"\n]*)("\n\}\n?)$`)

// seal enters the digest of a content, which is over the content without one.
func seal(content []byte) []byte {
	bare := selfDigest.ReplaceAll(content, []byte("${1}${3}"))
	sum := sha256.Sum256(bare)
	return selfDigest.ReplaceAll(bare, []byte("${1}"+digestKind+hex.EncodeToString(sum[:])+"${3}"))
}

// ErrNoPlanFile means that a text is no plan file that this macfleet can read:
// damaged, changed by hand, or of another format.
var ErrNoPlanFile = errors.New("not a plan file that this macfleet reads")

// DecodePlanFile reads a file's content. The error wraps ErrNoPlanFile.
func DecodePlanFile(content []byte) (PlanFile, error) {
	var head struct {
		FormatVersion string `json:"format_version"`
	}
	if err := decodePlanFile(content, &head, false); err != nil {
		return PlanFile{}, err
	}
	switch {
	case head.FormatVersion != PlanFileFormat:
		return PlanFile{}, noPlanFile("its format_version is %q, this one reads %s", head.FormatVersion, PlanFileFormat)
	case !selfDigest.Match(content):
		// Without its line there is nothing to compare, and a text laid out anew
		// would pass for what it does not say.
		return PlanFile{}, noPlanFile("it does not end with its self_digest: it is another document, or was changed by hand")
	case !bytes.Equal(seal(content), content):
		return PlanFile{}, noPlanFile("it was damaged or changed since it was made: its bytes are not those of its self_digest")
	}
	var file planFile
	if err := decodePlanFile(content, &file, true); err != nil {
		return PlanFile{}, err
	}
	return file.planFile()
}

func noPlanFile(format string, args ...any) error {
	return fmt.Errorf("%w: %w; make another: macfleet plan --out FILE", ErrNoPlanFile, fmt.Errorf(format, args...))
}

// decodePlanFile reads one JSON object and insists that nothing follows it.
func decodePlanFile(content []byte, into any, strict bool) error {
	dec := json.NewDecoder(bytes.NewReader(content))
	if strict {
		dec.DisallowUnknownFields()
	}
	if err := dec.Decode(into); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return noPlanFile("it is cut off")
	} else if err != nil {
		return noPlanFile("%w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return noPlanFile("something follows the JSON object")
	}
	return nil
}

// Check returns why the file must not be applied to a configuration now, or nil.
func (f PlanFile) Check(cfg *fleet.Config, now time.Time) error {
	const another = "; look again: macfleet plan --out FILE"
	switch {
	case f.Plan.Owner != cfg.Owner:
		return fmt.Errorf("it was made for %s, this configuration is %s; choose its directory with -C and its environment with -e", ownerText(f.Plan.Owner), ownerText(cfg.Owner))
	case f.Version != fleet.Version:
		return fmt.Errorf("macfleet %s made it, this is %s, which may do the same thing otherwise"+another, f.Version, fleet.Version)
	case f.Configuration != cfg.Hash():
		return fmt.Errorf("the configuration is another one since (%s then, %s now; variables count)"+another, brief(f.Configuration), brief(cfg.Hash()))
	case f.Expires.Sub(f.Made) > LongestExpiry || f.Made.After(now.Add(clockSkew)):
		return fmt.Errorf("it says that it was made %s and is good until %s, which no macfleet writes: was it changed, or is a clock wrong?"+another, at(f.Made), at(f.Expires))
	case !now.Before(f.Expires):
		return fmt.Errorf("it expired %s"+another, at(f.Expires))
	}
	return nil
}

// clockSkew is how far the clocks of two machines may be apart.
const clockSkew = 10 * time.Minute

// brief is a digest for a message.
func brief(digest string) string { return digest[:min(len(digest), len(digestKind)+12)] }

func at(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
