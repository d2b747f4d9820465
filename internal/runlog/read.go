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

// Record is a run as its record tells it.
type Record struct {
	Path    string
	Head    Head
	Plan    Plan
	Entries []Entry // all of them
	End     *End    // nil: the run goes on, or it broke off
	Living  bool    // its process is still there
	Torn    bool    // the last line was cut off
}

// Read reads a record. A last line that was cut off, as a power cut leaves it, is
// left out; one in the middle is an error.
func Read(path string) (Record, error) {
	r := Record{Path: path}
	living, err := lives(path)
	if err != nil {
		return r, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	for n := 1; len(text) > 0; n++ {
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		e, err := entryOf(line)
		var newer *NewerError
		switch {
		case errors.As(err, &newer):
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

// NewerError says that a newer macfleet wrote a line, in a form that is not known.
type NewerError struct{ Version int }

func (e *NewerError) Error() string {
	return fmt.Sprintf("a newer macfleet wrote it (version %d, this one reads %d); read it with that one", e.Version, Version)
}

// entryOf reads a line. Its version is read first: of a higher one nothing else may
// be as it is known.
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

// ErrNoRecord says that a file is no record of a run.
var ErrNoRecord = errors.New("it is no record of a run: its first line does not say whose")

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

// Outcome returns what the run came to.
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

// Open returns the actions that were begun and of which nobody knows how they
// ended, the oldest first.
func (r Record) Open() []Entry {
	open := make(begun)
	for _, e := range r.Entries {
		open.note(e)
	}
	return open.inOrder()
}

// begun are the lines that began actions of which nobody knows how they ended, by action.
type begun map[string]Entry

func (b begun) note(e Entry) {
	switch {
	case e.Action == nil || e.Uncertain:
	case e.Type == engine.Started:
		b[e.Action.Key()] = e
	case e.Type == engine.Done, e.Type == engine.Failed:
		delete(b, e.Action.Key())
	}
}

// inOrder returns them by time.
func (b begun) inOrder() []Entry {
	return slices.SortedFunc(maps.Values(b), func(a, b Entry) int {
		return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Action.Key(), b.Action.Key()))
	})
}

// lives reports whether the process that writes a record is still there.
func lives(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // it was read, not written
	err = flock(f, unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// Brief is a run as a list of runs shows it.
type Brief struct {
	Path    string
	Head    Head
	Outcome Outcome
	End     *End
	Lasted  time.Duration // zero for one that broke off: nobody knows when
}

// tail is as much of a record as its last line takes.
const tail = 64 << 10

// brief reads the first and the last line of a record.
func brief(path string) (Brief, error) {
	b := Brief{Path: path, Outcome: BrokeOff}
	living, err := lives(path)
	if err != nil {
		return b, err
	}
	f, err := os.Open(path)
	if err != nil {
		return b, err
	}
	defer func() { _ = f.Close() }() // it was read, not written
	first, err := firstEntry(f)
	if err != nil {
		return b, fmt.Errorf("%s: %w", path, err)
	}
	b.Head = *first.Run
	last, ok, err := lastEntry(f)
	switch {
	case err != nil:
		return b, err
	case ok && last.End != nil:
		b.End, b.Outcome, b.Lasted = last.End, last.End.Outcome, last.Time.Sub(b.Head.Started)
	case living:
		b.Outcome = Running
	}
	return b, nil
}

// errUnbegun says that a record has no whole first line: its process ended, or is,
// before anything was done.
var errUnbegun = errors.New("nothing was begun")

// firstEntry returns the first line of a record.
func firstEntry(f *os.File) (Entry, error) {
	line, err := bufio.NewReader(f).ReadBytes('\n')
	switch {
	case errors.Is(err, io.EOF):
		return Entry{}, errUnbegun
	case err != nil:
		return Entry{}, err
	}
	e, err := entryOf(line)
	var newer *NewerError
	switch {
	case errors.As(err, &newer):
		return e, err
	case err != nil || e.Run == nil:
		return e, ErrNoRecord
	}
	return e, nil
}

// lastEntry returns the last line of a record, where it is whole.
func lastEntry(f *os.File) (e Entry, ok bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return e, false, err
	}
	from := max(0, info.Size()-tail)
	text, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
	if err != nil {
		return e, false, err
	}
	text, whole := bytes.CutSuffix(text, []byte("\n"))
	if !whole {
		return e, false, nil
	}
	return e, json.Unmarshal(text[bytes.LastIndexByte(text, '\n')+1:], &e) == nil, nil
}

// IsRecord reports whether a file begins as a record of a run does.
func IsRecord(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()               // it was read, not written
	var first struct{ Type Type } // of a newer one nothing else may be as it is known
	return json.NewDecoder(f).Decode(&first) == nil && first.Type == TypeRun
}
