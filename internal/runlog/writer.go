package runlog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// Writer writes the record of one run, for concurrent use. The file is locked as long as the
// process lives: a record without a last line whose lock is free was interrupted.
type Writer struct {
	Options
	path string

	mu     sync.Mutex
	file   *os.File
	err    error  // the first that a line met
	record Record // what was written
	open   unfinished
}

// Options are what a record needs.
type Options struct {
	Folder string              // made when missing
	Scrub  func(string) string // takes secrets out of every text
	Short  func() bool         // a secret is known that Scrub cannot find; nil: none ever is
	Left   context.Context     // done once the run was aborted: what ends from then on is uncertain
}

// Create starts a record. If that fails, the run must not start.
func Create(o Options, head Head) (_ *Writer, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("create the run record in %s: %w; nothing was changed; free disk space, or choose another folder with --runs-dir", o.Folder, err)
		}
	}()
	if err := os.MkdirAll(o.Folder, 0o700); err != nil {
		return nil, err
	}
	// Runs wait for each other before they have a record: its own beginning says in
	// which order they worked, and that of their commands does not.
	path := filepath.Join(o.Folder, FileName(time.Now(), head.ID))
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	w := &Writer{Options: o, path: path, file: file, open: make(unfinished)}
	// A reader that looks whether we live holds the lock for a moment.
	err = flock(file, unix.LOCK_EX)
	if err == nil {
		head.Boot = cmp.Or(head.Boot, Boot())
		head.Inode, err = inode(file)
	}
	if err == nil {
		err = w.Write(Entry{Event: engine.Event{Type: TypeRun, Time: head.Started}, Run: &head})
	}
	if err == nil {
		err = syncFolder(o.Folder) // the file's name lasts as its content does
	}
	if err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(path))
	}
	return w, nil
}

// inode returns the number of a file.
func inode(f *os.File) (int64, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return 0, fmt.Errorf("look at %s: %w", f.Name(), err)
	}
	return int64(stat.Ino), nil
}

func syncFolder(folder string) error {
	dir, err := os.Open(folder)
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

// Event adds an event. What begins or ends an action is on the disk when it returns. The
// error is the first that any line met: running actions should then finish.
func (w *Writer) Event(e engine.Event) error {
	if e.Type == engine.Sending {
		return nil // it is sent every second; the slots of uploads are recorded
	}
	entry := w.entry(e)
	w.mu.Lock()
	w.open.note(entry)
	w.mu.Unlock()
	return w.Write(entry)
}

// synced are the types of lines that are not events, and of events that stand before or after a change.
var synced = []Type{TypeRun, TypePlan, TypeStop, TypeRise, TypeLeft, TypeEnd, engine.Started, engine.Done, engine.Failed,
	engine.UploadStarts, engine.UploadEnds, engine.NodeReady, engine.Waiting, engine.Skipped, engine.Deferred, engine.HostStarted, engine.HostEnded, engine.Cordoning, engine.Uncordoned,
	engine.Fencing, engine.Unfenced, engine.KeyMade, engine.KeyRevoked}

// entry returns the line of an event.
func (w *Writer) entry(e engine.Event) Entry {
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
		if w.Short != nil && w.Short() {
			out.Output = nil // what a host printed may hold it
		}
		out.Uncertain = e.Type == engine.Failed && w.Left != nil && w.Left.Err() != nil
	}
	out.Event.Action, out.Event.Trouble, out.Event.Err = nil, nil, nil // what stays of them is entered
	return out
}

// outputLines is how much of a failed script's last words is kept.
const outputLines = 20

// fail records an error.
func (e *Entry) fail(err error) {
	e.Text = err.Error()
	var script *hosts.ScriptError
	if x := TroubleOf(err); x != nil {
		e.tell(*x)
	} else if errors.As(err, &script) {
		e.Output = append(lastLines(script.Answer.Stdout, outputLines/2), lastLines(script.Answer.Stderr, outputLines/2)...)
	}
}

// TroubleOf returns an error's trouble, or nil.
func TroubleOf(err error) *plan.Trouble {
	var trouble *plan.Trouble
	var lost *hosts.Error
	switch {
	case errors.As(err, &trouble):
		return trouble
	case errors.As(err, &lost):
		return lost.Trouble()
	}
	return plan.ProviderTrouble(err)
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

// Open returns the started actions without a result, oldest first.
func (w *Writer) Open() []Entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open.inOrder()
}

// Unfinished returns the hosts that the run did not finish.
func (w *Writer) Unfinished(result engine.Result) []LeftHost {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.record.LeftBy(result)
}

// Write adds a line. A line that is not an event is synced to disk.
func (w *Writer) Write(e Entry) error {
	e.Version = Version
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Time = e.Time.UTC()
	var line bytes.Buffer
	enc := json.NewEncoder(wire.VisibleLines(&line))
	enc.SetEscapeHTML(false)
	err := enc.Encode(wire.Clean(w.Scrub, e)) // it ends the line
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil:
		return w.err // a line after one that is torn would not be read
	case err == nil:
		_, err = w.file.Write(line.Bytes())
	}
	if err == nil && slices.Contains(synced, e.Type) {
		err = w.file.Sync()
	}
	w.err = err
	w.record.enter(e)
	return err
}

// End writes which hosts the run did not finish, then the last line, and closes the record. The error is the first that
// any line met.
func (w *Writer) End(end End, result engine.Result) error {
	left := w.Unfinished(result)
	var err error
	if len(left) > 0 {
		err = w.Write(Entry{Event: engine.Event{Type: TypeLeft}, Left: left})
		end.Hosts = make(map[State]int)
		for _, l := range left {
			end.Hosts[l.State]++
		}
	}
	if err == nil {
		err = w.Write(Entry{Event: engine.Event{Type: TypeEnd}, End: &end})
	}
	return errors.Join(err, w.file.Close())
}
