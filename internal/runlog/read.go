package runlog

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// Record is a run as its record tells it.
type Record struct {
	Path    string
	Head    Head
	Plan    Plan
	Entries []Entry // all of them; in a list of runs the first and the last alone
	End     *End    // nil: the run goes on, or it broke off
	Living  bool    // its process is still there
	Torn    bool    // the last line was cut off
}

// ErrNoRecord says that a file is no record of a run.
var ErrNoRecord = errors.New("it is no record of a run: its first line does not say whose")

// errUnbegun says that a record has no whole first line: its process ended, or is, before anything was done.
var errUnbegun = errors.New("nothing was begun")

// NewerError says that a newer macfleet wrote a line, in a form that is not known.
type NewerError struct{ Version int }

func (e *NewerError) Error() string {
	return fmt.Sprintf("a newer macfleet wrote it (version %d, this one reads %d); read it with that one", e.Version, Version)
}

// Read reads a record. A last line that was cut off, as a power cut leaves it, is
// left out; one in the middle is an error.
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

// brief reads the first and the last line of a record alone, as a list of runs needs it.
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
		return r, fmt.Errorf("%s: %w", path, errUnbegun)
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

// Gone reports whether it is proven that the process of a run has ended: its record is in this folder, was made under the
// present boot of this kernel, is the very file that the run wrote, and is not locked. A process keeps that lock as long as
// it lives, whatever its number and its container are. Another machine that shares the folder may not see the lock, and a
// copy of the folder has none, so neither proves anything.
func Gone(folder, id string) bool {
	if id == "" || Boot() == "" {
		return false
	}
	found, err := filepath.Glob(filepath.Join(folder, "*-"+id+suffix))
	if err != nil || len(found) != 1 {
		return false
	}
	f, living, err := open(found[0])
	if err != nil || living {
		return false
	}
	defer f.Close()
	line, err := bufio.NewReader(f).ReadBytes('\n')
	if err != nil {
		return false
	}
	own, err := inode(f)
	if err != nil {
		return false
	}
	e, err := entryOf(line)
	return err == nil && e.Run != nil && e.Run.ID == id && e.Run.Boot == Boot() && e.Run.Inode == own
}

// open opens a record, and reports whether the process that writes it is still there.
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

// Open returns the actions that were begun and of which nobody knows how they ended, the oldest first.
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

func (b begun) inOrder() []Entry {
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

// Kept is how many records a folder keeps; older ones go when a run begins.
const Kept = 100

// suffix is how the name of a record ends.
const suffix = ".jsonl"

// stamp is how the name of a log begins. It reads names with parts of a second too.
const stamp = "20060102T150405Z"

// FileName returns the name of a record. It has parts of a second: in a script two runs begin within one.
func FileName(at time.Time, id string) string {
	return at.UTC().Format("20060102T150405.000000Z") + "-" + id + suffix
}

// Last is what stands for the newest run.
const Last = "last"

// stamped returns the files of a folder whose names begin with a time and end so, the
// newest first. A folder that is not there holds none.
func stamped(folder, suffix string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the records of runs: %w", err)
	}
	began := make(map[string]time.Time)
	for _, e := range entries {
		if at, _, ok := strings.Cut(e.Name(), "-"); ok && e.Type().IsRegular() && strings.HasSuffix(e.Name(), suffix) {
			if t, err := time.Parse(stamp, at); err == nil {
				began[e.Name()] = t
			}
		}
	}
	return slices.SortedFunc(maps.Keys(began), func(a, b string) int {
		return cmp.Or(began[b].Compare(began[a]), strings.Compare(b, a))
	}), nil
}

// List returns the runs of a folder, the newest first. What is wrong with single
// files keeps no other from being listed. A file in which no run has begun is none.
func List(folder string) (runs []Record, wrong []error, err error) {
	all, err := stamped(folder, suffix)
	for _, name := range all {
		r, err := brief(filepath.Join(folder, name))
		switch {
		case err == nil:
			runs = append(runs, r)
		case !errors.Is(err, errUnbegun) && !errors.Is(err, fs.ErrNotExist): // another process removes old ones
			wrong = append(wrong, err)
		}
	}
	return runs, wrong, err
}

// Newest returns the newest run of a configuration and environment; without a path, there is none.
func Newest(folder, configuration, environment string) (Record, error) {
	all, err := stamped(folder, suffix)
	for _, name := range all {
		r, err := brief(filepath.Join(folder, name))
		if err == nil && r.Head.Configuration == configuration && r.Head.Environment == environment {
			return r, nil
		}
	}
	return Record{}, err
}

// Worked returns, of the runs of a folder that a caller wants, those that did something or
// broke off: how they began, the newest first. What cannot be read is left out.
func Worked(folder string, wanted func(Head) bool) []Head {
	all, _ := stamped(folder, suffix)
	var out []Head
	for _, name := range all {
		path := filepath.Join(folder, name)
		if h, err := headOf(path); err != nil || !wanted(h) {
			continue
		}
		if r, err := brief(path); err == nil && (r.End == nil || r.End.Done > 0) {
			out = append(out, r.Head)
		}
	}
	return out
}

// Met returns those servers on whose hosts a run that a caller wants began something, sorted. A host's key is pinned
// before anything is sent to it, so each of them was pinned once. One that was given back since is a stranger again. What
// cannot be read to its end counts as far as it can be read.
func Met(folder string, wanted func(Head) bool, servers []string) []string {
	all, _ := stamped(folder, suffix)
	met := make(map[string]bool)
	for _, name := range slices.Backward(all) { // the oldest first
		path := filepath.Join(folder, name)
		if h, err := headOf(path); err != nil || !wanted(h) {
			continue
		}
		r, _ := Read(path)
		for _, e := range r.Entries {
			switch {
			case e.Action == nil:
			case e.Type == engine.Started:
				met[e.Action.ServerID] = true
			case e.Type == engine.Done && (e.Action.Kind == string(plan.ReleaseServer) || e.Action.Kind == string(plan.ReplaceServer)):
				delete(met, e.Action.ServerID)
			}
		}
	}
	return slices.Sorted(func(yield func(string) bool) {
		for _, id := range servers {
			if met[id] && !yield(id) {
				return
			}
		}
	})
}

func headOf(path string) (Head, error) {
	f, _, err := open(path)
	if err != nil {
		return Head{}, err
	}
	defer f.Close()
	line, err := bufio.NewReader(f).ReadBytes('\n')
	if err != nil {
		return Head{}, err
	}
	first, err := entryOf(line)
	if err != nil || first.Run == nil {
		return Head{}, ErrNoRecord
	}
	return *first.Run, nil
}

// Find returns the record of a run: the last one, or that whose id begins so and no other's.
func Find(folder, run string) (string, error) {
	all, err := stamped(folder, suffix)
	if err != nil {
		return "", err
	}
	var found []string
	for _, name := range all {
		_, id, _ := strings.Cut(strings.TrimSuffix(name, suffix), "-")
		if run == Last {
			if _, err := brief(filepath.Join(folder, name)); !errors.Is(err, errUnbegun) {
				found = []string{name}
				break
			}
		} else if run != "" && strings.HasPrefix(id, strings.ToLower(run)) {
			found = append(found, name)
		}
	}
	switch {
	case len(all) == 0:
		return "", fmt.Errorf("%s holds no record of a run: none was made from here yet; name another folder with --runs-dir", folder)
	case len(found) == 0:
		return "", fmt.Errorf("no run is called %q; macfleet runs lists them", run)
	case len(found) > 1:
		return "", fmt.Errorf("%d runs begin with %q; write more of the id: %s", len(found), run, strings.Join(found[:min(len(found), 5)], ", "))
	}
	return filepath.Join(folder, found[0]), nil
}

// Prune removes the oldest records of a folder, but for those of living processes, until keep are left.
func Prune(folder string, keep int) error {
	all, err := stamped(folder, suffix)
	for _, name := range all[min(keep, len(all)):] {
		path := filepath.Join(folder, name)
		f, living, oerr := open(path)
		if oerr != nil {
			continue // another process removed it
		}
		if err = errors.Join(err, f.Close()); !living {
			err = errors.Join(err, remove(path))
		}
	}
	return err
}

// remove removes a file, which another process may have done.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// State is how far an action came.
type State string

// The states of an action.
const (
	StateDone       State = "done"
	StateFailed     State = "failed"
	StateNotStarted State = "not started"
	StateUncertain  State = "uncertain"      // it was begun, and nobody knows how it ended
	StateRefused    State = "refused"        // the plan did not mean to do it
	StateDeferred   State = "deferred"       // a limit of the run left it for a later one
	StateNotWaited  State = "not waited for" // the run ended before the host's Node was Ready
)

// HostReport is what a run did on one host; the host without a name is the cluster.
type HostReport struct {
	Host    string         `json:"host"`
	Fleet   string         `json:"fleet"`
	Wave    int            `json:"wave,omitempty"` // in which it was disturbed, from 1
	Actions []ActionReport `json:"actions"`
}

// ActionReport is what became of one action.
type ActionReport struct {
	Action  Action    `json:"action"`
	State   State     `json:"state"`
	Seconds float64   `json:"seconds"`
	Code    plan.Code `json:"code,omitzero"`
	Text    string    `json:"text,omitempty"`
	Remedy  string    `json:"remedy,omitempty"`
	Output  []string  `json:"output,omitempty"`
}

// Reports returns what the run did, in the plan's order of hosts and actions. What
// stands in no plan, such as the wait for a Node, is its host's last.
func (r Record) Reports() []HostReport {
	var keys []string
	actions := make(map[string]*ActionReport)
	report := func(a Action) *ActionReport {
		key := a.Key()
		if actions[key] == nil {
			keys, actions[key] = append(keys, key), &ActionReport{Action: a}
		}
		return actions[key]
	}
	for _, a := range r.Plan.Actions {
		x := report(a)
		switch x.State = StateNotStarted; {
		case a.Refused != (plan.Code{}):
			x.State = StateRefused
		case a.Deferred != (plan.Code{}):
			x.State = StateDeferred
		}
	}
	waves := make(map[string]int) // by host
	for _, e := range r.Entries {
		waves[e.Host] = max(waves[e.Host], e.Wave)
		if e.Action != nil {
			report(*e.Action).enter(e)
		}
	}
	out := []HostReport{}
	places := make(map[string]int) // of hosts in it
	for _, key := range keys {
		a := actions[key]
		i, known := places[a.Action.Host]
		if !known {
			i = len(out)
			places[a.Action.Host] = i
			out = append(out, HostReport{Host: a.Action.Host, Fleet: a.Action.Fleet, Wave: waves[a.Action.Host]})
		}
		out[i].Actions = append(out[i].Actions, *a)
	}
	return out
}

func (r *ActionReport) enter(e Entry) {
	switch e.Type {
	case engine.Started:
		r.State = StateUncertain
	case engine.Waiting:
		r.State = StateNotWaited
	case engine.Done, engine.NodeReady:
		r.State, r.Seconds = StateDone, e.Seconds
	case engine.Skipped:
		r.State = StateNotStarted
	case engine.Deferred:
		r.State = StateDeferred
	case engine.Failed:
		r.State, r.Seconds, r.Code, r.Text, r.Remedy, r.Output = StateFailed, e.Seconds, e.Code, e.Text, e.Remedy, e.Output
		if e.Uncertain {
			r.State = StateUncertain
		}
	}
}

// Unfinished returns the hosts on which something failed, was not started or is
// uncertain, in the plan's order. What is of the cluster alone has no host.
func (r Record) Unfinished() []string {
	var out []string
	for _, h := range r.Reports() {
		if h.Host != "" && slices.ContainsFunc(h.Actions, func(a ActionReport) bool {
			return a.State == StateFailed || a.State == StateNotStarted || a.State == StateUncertain
		}) {
			out = append(out, h.Host)
		}
	}
	return out
}
