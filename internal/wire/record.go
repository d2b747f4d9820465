package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// RecordFormat is the version of the snapshot file: a reader passes over keys it does
// not know and refuses another major version.
const RecordFormat = "2.0"

// Record is a snapshot as it is kept in a file: plans are made from it without a
// network or a credential.
type Record struct {
	OwnedHead
	plan.Snapshot
}

// NewRecord returns the record of what was observed for a configuration.
func NewRecord(o fleet.Owner, snap plan.Snapshot) Record {
	r := Record{HeadOf(o), snap}
	r.FormatVersion = RecordFormat
	return r
}

// Encode returns the file's content: the same record gives the same bytes. The
// error is about times outside the years 0 to 9999, which no provider gives.
func (r Record) Encode() ([]byte, error) {
	if r.Servers == nil {
		r.Servers = []inventory.Server{}
	}
	if r.Pins == nil {
		r.Pins = []plan.Pin{}
	}
	if r.Hosts == nil {
		r.Hosts = map[string]plan.HostSeen{}
	}
	var b bytes.Buffer
	if err := encoder(&b, " ").Encode(r); err != nil {
		return nil, fmt.Errorf("encode snapshot: %w", err)
	}
	return b.Bytes(), nil
}

// ErrNoSnapshot means that a text is no snapshot file that this macfleet can
// read: damaged, cut off, or of another format. A snapshot that is whole and of
// another configuration is no such error: Record.Check finds that.
var ErrNoSnapshot = errors.New("not a snapshot that this macfleet reads")

// DecodeRecord reads a file's content: it returns exactly what Encode was given;
// an empty list and none are the same. What a file does not say of a host is unread.
// The error wraps ErrNoSnapshot.
func DecodeRecord(content []byte) (Record, error) {
	const another = "%w: %w; record another"
	var head Head
	if err := decode(content, &head, false); err != nil {
		return Record{}, fmt.Errorf(another, ErrNoSnapshot, err)
	}
	major, _, _ := strings.Cut(RecordFormat, ".")
	if got, _, _ := strings.Cut(head.FormatVersion, "."); got != major {
		return Record{}, fmt.Errorf("%w: its format_version is %q, this one reads %s.x; record another, or use the macfleet that wrote it",
			ErrNoSnapshot, head.FormatVersion, major)
	}
	var r Record
	err := decode(content, &r, false)
	switch { // an inventory that is not there must not look like an empty one
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
		return Record{}, fmt.Errorf(another, ErrNoSnapshot, err)
	}
	return r, nil
}

// Check returns an error for a record of another configuration or environment
// than the one that plans: its hosts would all look like strays.
func (r Record) Check(owner fleet.Owner) error {
	if r.Owner() == owner {
		return nil
	}
	return fmt.Errorf("it was recorded for %s, this configuration is %s; choose its directory with -C and its environment with -e, or record another",
		ownerText(r.Owner()), ownerText(owner))
}
