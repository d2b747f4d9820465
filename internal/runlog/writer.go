package runlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// Writer writes the record of one run. It is safe for concurrent use. The file is
// locked as long as the process lives: a record without a last line whose lock is
// free is one that broke off.
type Writer struct {
	path  string
	scrub func(string) string
	short func() bool
	left  context.Context // done: nobody waits any more for what runs

	mu   sync.Mutex
	file *os.File
	err  error // the first that a line met
	open begun
}

// Options are what a record needs.
type Options struct {
	Folder string              // made when missing
	Scrub  func(string) string // takes secrets out of every text
	Short  func() bool         // a secret is known that Scrub cannot find; nil: none ever is
	// Left is done once nobody waits any more for what runs: what ends from then on
	// is uncertain.
	Left context.Context
	Now  func() time.Time // nil: time.Now
}

func (o Options) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

// Create begins a record. The error says that the folder takes none: then the run
// must not begin either.
func Create(o Options, head Head) (*Writer, error) {
	if err := os.MkdirAll(o.Folder, 0o700); err != nil {
		return nil, unkept(o.Folder, err)
	}
	// Runs wait for each other before they have a record: its own beginning says in
	// which order they worked, and that of their commands does not.
	path := filepath.Join(o.Folder, FileName(o.now(), head.ID))
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, unkept(o.Folder, err)
	}
	w := &Writer{path: path, scrub: o.Scrub, short: o.Short, left: o.Left, file: file, open: make(begun)}
	if err := w.begin(head); err != nil {
		return nil, errors.Join(unkept(o.Folder, err), file.Close(), os.Remove(path))
	}
	return w, nil
}

func unkept(folder string, err error) error {
	return fmt.Errorf("keep a record of the run in %s: %w; nothing was changed; make room for it, or name another folder with --runs-dir", folder, err)
}

// begin writes the first line, and makes the file's name last as its content does.
func (w *Writer) begin(head Head) error {
	// A reader that looks whether we live holds the lock for a moment.
	if err := flock(w.file, unix.LOCK_EX); err != nil {
		return err
	}
	if err := w.write(Entry{Event: engine.Event{Type: TypeRun, Time: head.Started}, Run: &head}, true); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(w.path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// flock locks a file, and does not take a signal for an answer.
func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Path returns the record's file.
func (w *Writer) Path() string { return w.path }

// Write adds a line that is no event, and brings it to the disk.
func (w *Writer) Write(e Entry) error { return w.write(e, true) }

// Event adds an event. What begins or ends an action is on the disk when it
// returns. The error is the first that any line met: the record is then no longer
// whole, and what runs should come to its end.
func (w *Writer) Event(e engine.Event) error {
	entry, kept := w.entry(e)
	if !kept {
		return nil
	}
	w.mu.Lock()
	w.open.note(entry)
	w.mu.Unlock()
	return w.write(entry, synced(e.Type))
}

// synced reports whether an event stands before or after a change.
func synced(t engine.EventType) bool {
	switch t {
	case engine.Started, engine.Done, engine.Failed, engine.UploadBegins, engine.UploadEnds, engine.NodeReady, engine.Waiting, engine.Skipped,
		engine.HostBegun, engine.HostEnded, engine.Closing, engine.Opened:
		return true
	}
	return false
}

// entry returns the line of an event, where it has one.
func (w *Writer) entry(e engine.Event) (Entry, bool) {
	if e.Type == engine.Sending {
		return Entry{}, false // it tells of a second; the places that uploads take are kept
	}
	out := Entry{Event: e}
	if e.Action != nil {
		a := ActionOf(*e.Action)
		out.Action = &a
	}
	if e.Trouble != nil {
		out.tell(*e.Trouble)
	}
	if e.Err != nil {
		out.fail(e.Err)
		if w.short != nil && w.short() {
			out.Output = nil // what a host printed may hold it
		}
		out.Uncertain = e.Type == engine.Failed && w.left != nil && w.left.Err() != nil
	}
	out.Event.Action, out.Event.Trouble, out.Event.Err = nil, nil, nil // what stays of them is entered
	return out, true
}

// outputLines is how much of a failed script's last words is kept.
const outputLines = 20

// fail enters what went wrong.
func (e *Entry) fail(err error) {
	e.Text = err.Error()
	var script *hosts.ScriptError
	if x := TroubleOf(err); x != nil {
		e.tell(*x)
	} else if errors.As(err, &script) {
		e.Output = append(lastLines(script.Answer.Stdout, outputLines/2), lastLines(script.Answer.Stderr, outputLines/2)...)
	}
}

// TroubleOf returns what an error says of a host with a code, or nil.
func TroubleOf(err error) *plan.Trouble {
	var trouble *plan.Trouble
	var lost *hosts.Error
	switch {
	case errors.As(err, &trouble):
		return trouble
	case errors.As(err, &lost):
		return lost.Trouble()
	}
	return nil
}

func (e *Entry) tell(x plan.Trouble) { e.Code, e.Text, e.Remedy = x.Code, x.Text, x.Remedy }

func lastLines(text string, n int) []string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	return lines[max(0, len(lines)-n):]
}

// Open returns the actions that were begun and of which nobody knows how they
// ended, the oldest first.
func (w *Writer) Open() []Entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open.inOrder()
}

func (w *Writer) write(e Entry, sync bool) error {
	e.Version = Version
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Time = e.Time.UTC()
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	err := enc.Encode(wire.Clean(w.scrub, e)) // it ends the line
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil:
		return w.err // a line after one that is torn would not be read
	case err == nil:
		_, err = w.file.Write(line.Bytes())
	}
	if err == nil && sync {
		err = w.file.Sync()
	}
	w.err = err
	return err
}

// End writes the last line and closes the record. The error is the first that any
// line met.
func (w *Writer) End(end End) error {
	err := w.write(Entry{Event: engine.Event{Type: TypeEnd}, End: &end}, true)
	return errors.Join(err, w.file.Close())
}
