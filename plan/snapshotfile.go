package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
)

// SnapshotFormat is the version of the snapshot file: a reader passes over keys
// it does not know and refuses another major version.
const SnapshotFormat = "1.0"

// Record is a snapshot as it is kept in a file: plans are made from it without a
// network or a credential.
type Record struct {
	Owner    fleet.Owner // of the configuration that was observed for
	Version  string      // of the macfleet that wrote it
	Taken    time.Time   // when the observation ended
	Snapshot Snapshot
}

// Encode returns the file's content: the same record gives the same bytes. The
// error is about ids that are no text and times outside the years 0 to 9999,
// which no provider gives.
func (r Record) Encode() ([]byte, error) {
	f := recordFile{FormatVersion: SnapshotFormat, MacfleetVersion: r.Version, Configuration: r.Owner.Name,
		Environment: r.Owner.Environment, Taken: r.Taken, snapshotFile: fileOf(r.Snapshot)}
	if err := f.checkIDs(); err != nil {
		return nil, fmt.Errorf("encode snapshot: %w", err)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(f); err != nil {
		return nil, fmt.Errorf("encode snapshot: %w", err)
	}
	return b.Bytes(), nil
}

// ErrNoSnapshot means that a text is no snapshot file that this macfleet can
// read: damaged, cut off, or of another format. A snapshot that is whole and of
// another configuration is no such error: Record.Check finds that.
var ErrNoSnapshot = errors.New("not a snapshot that this macfleet reads")

// DecodeRecord reads a file's content: it returns exactly what Encode was given;
// an empty list and none are the same. The error wraps ErrNoSnapshot.
func DecodeRecord(content []byte) (Record, error) {
	var head struct {
		FormatVersion string `json:"format_version"`
	}
	if err := decodeOne(content, &head); err != nil {
		return Record{}, err
	}
	if major, _, _ := strings.Cut(head.FormatVersion, "."); major != "1" {
		return Record{}, fmt.Errorf("%w: its format_version is %q, this one reads 1.x; record another, or use the macfleet that wrote it",
			ErrNoSnapshot, head.FormatVersion)
	}
	var f recordFile
	if err := decodeOne(content, &f); err != nil {
		return Record{}, err
	}
	if missing := f.missing(); missing != "" {
		return Record{}, fmt.Errorf("%w: it has no %s; record another", ErrNoSnapshot, missing)
	}
	snap := f.snapshot()
	snap.Taken = f.Taken // what was over then is over in its plan
	return Record{Owner: fleet.Owner{Name: f.Configuration, Environment: f.Environment}, Version: f.MacfleetVersion,
		Taken: f.Taken, Snapshot: snap}, nil
}

// decodeOne reads one JSON object and insists that nothing follows it.
func decodeOne(content []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(content))
	err := dec.Decode(into)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: it is cut off; record another", ErrNoSnapshot)
	case errors.As(err, &wrong):
		return fmt.Errorf("%w: %s is a JSON %s; record another", ErrNoSnapshot, wrong.Field, wrong.Value)
	case err != nil:
		return fmt.Errorf("%w: %w; record another", ErrNoSnapshot, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows the JSON object; record another", ErrNoSnapshot)
	}
	return nil
}

// Check returns an error for a record of another configuration or environment
// than the one that plans: its hosts would all look like strays.
func (r Record) Check(owner fleet.Owner) error {
	if r.Owner == owner {
		return nil
	}
	return fmt.Errorf("it was recorded for %s, this configuration is %s; choose its directory with -C and its environment with -e, or record another",
		ownerText(r.Owner), ownerText(owner))
}

func ownerText(o fleet.Owner) string {
	if o.Environment == "" {
		return fmt.Sprintf("%q without an environment", o.Name)
	}
	return fmt.Sprintf("%q, environment %q", o.Name, o.Environment)
}
