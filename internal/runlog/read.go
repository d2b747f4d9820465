package runlog

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/macfleet/macfleet/internal/engine"
)

// Record is a parsed run record.
type Record struct {
	Path    string
	Head    Head
	Plan    Plan
	Entries []Entry // all of them; in a list of runs only the first and the last
	End     *End    // nil: the run is running or was interrupted
	Living  bool    // its process is running
	Torn    bool    // the last line was truncated
}

// ErrNoRecord reports a file that is not a run record.
var ErrNoRecord = errors.New("not a record of a run: the first line is malformed")

// errNotStarted reports a record without a complete first line: nothing was done yet.
var errNotStarted = errors.New("the run did not start")

// NewerError reports a line of a newer, unknown format.
type NewerError struct{ Version int }

func (e *NewerError) Error() string {
	return fmt.Sprintf("written by a newer macfleet (version %d, this one reads up to %d); read it with that one", e.Version, Version)
}

// Read reads a record. A truncated last line, as after a power loss, is left out; any other
// malformed line is an error.
func Read(path string) (Record, error) {
	r := Record{Path: path}
	f, living, err := open(path)
	if err != nil {
		return r, err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return r, err
	}
	for n := 1; len(text) > 0; n++ {
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		e, err := entryOf(line)
		switch {
		case isNewer(err):
			return r, fmt.Errorf("%s: line %d: %w", path, n, err)
		case err != nil && len(rest) > 0:
			return r, fmt.Errorf("%s: line %d is damaged: %w", path, n, err)
		case err != nil || !ended:
			r.Torn = true
			rest = nil
		default:
			r.enter(e)
		}
		text = rest
	}
	if r.Head.ID == "" {
		return r, fmt.Errorf("%s: %w", path, ErrNoRecord)
	}
	r.Living = living && r.End == nil
	return r, nil
}

// tail is as much of a record as its last line takes.
const tail = 64 << 10

// brief reads only the first and last line of a record, for lists.
func brief(path string) (Record, error) {
	r := Record{Path: path}
	f, living, err := open(path)
	if err != nil {
		return r, err
	}
	defer f.Close()
	line, err := bufio.NewReader(f).ReadBytes('\n')
	switch {
	case errors.Is(err, io.EOF):
		return r, fmt.Errorf("%s: %w", path, errNotStarted)
	case err != nil:
		return r, err
	}
	first, err := entryOf(line)
	if err != nil && !isNewer(err) || err == nil && first.Run == nil {
		err = ErrNoRecord
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	r.enter(first)
	info, err := f.Stat()
	if err != nil {
		return r, err
	}
	from := max(0, info.Size()-tail)
	text, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
	if err != nil {
		return r, err
	}
	if text, whole := bytes.CutSuffix(text, []byte("\n")); whole {
		if last, err := entryOf(text[bytes.LastIndexByte(text, '\n')+1:]); err == nil {
			r.enter(last)
		}
	}
	r.Living = living && r.End == nil
	return r, nil
}

// open opens a record, and reports whether the process that writes it is running.
func open(path string) (f *os.File, living bool, err error) {
	if f, err = os.Open(path); err != nil {
		return nil, false, err
	}
	err = flock(f, unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return f, true, nil
	}
	if err != nil {
		return nil, false, errors.Join(err, f.Close())
	}
	return f, false, nil
}

// entryOf reads a line, its version first: of a higher one nothing else may be as it is known.
func entryOf(line []byte) (e Entry, err error) {
	var of struct {
		Version int `json:"v"`
	}
	if err := json.Unmarshal(line, &of); err != nil {
		return e, err
	}
	if of.Version > Version {
		return e, &NewerError{of.Version}
	}
	return e, json.Unmarshal(line, &e)
}

func isNewer(err error) bool {
	var newer *NewerError
	return errors.As(err, &newer)
}

func (r *Record) enter(e Entry) {
	switch {
	case e.Type == TypeRun && e.Run != nil:
		r.Head = *e.Run
	case e.Type == TypePlan && e.Plan != nil:
		r.Plan = *e.Plan
	case e.Type == TypeRise:
		r.Head.Epoch = e.Epoch
	case e.Type == TypeEnd:
		r.End = e.End
	}
	r.Entries = append(r.Entries, e)
}

// Outcome returns the result of the run.
func (r Record) Outcome() Outcome {
	switch {
	case r.End != nil:
		return r.End.Outcome
	case r.Living:
		return Running
	}
	return BrokeOff
}

// Lasted returns how long the run took: to its last line, as far as it is known.
func (r Record) Lasted() time.Duration {
	if len(r.Entries) == 0 {
		return 0
	}
	return r.Entries[len(r.Entries)-1].Time.Sub(r.Head.Started)
}

// Open returns the started actions without a result, oldest first.
func (r Record) Open() []Entry {
	open := make(unfinished)
	for _, e := range r.Entries {
		open.note(e)
	}
	return open.inOrder()
}

// unfinished holds the first lines of actions without a result, by action.
type unfinished map[string]Entry

func (b unfinished) note(e Entry) {
	switch {
	case e.Action == nil || e.Uncertain:
	case e.Type == engine.Started:
		b[e.Action.Key()] = e
	case e.Type == engine.Done, e.Type == engine.Failed, e.Type == engine.Skipped: // skipped: the drain before it was stopped
		delete(b, e.Action.Key())
	}
}

func (b unfinished) inOrder() []Entry {
	return slices.SortedFunc(maps.Values(b), func(a, b Entry) int {
		return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Action.Key(), b.Action.Key()))
	})
}

// IsRecord reports whether a file begins as a record of a run does.
func IsRecord(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var first struct{ Type Type } // of a newer one nothing else may be as it is known
	return json.NewDecoder(f).Decode(&first) == nil && first.Type == TypeRun
}
