package mac

import (
	"container/list"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// AnswersVariable chooses what happens with remembered answers: "" uses them, "off" does not, and "check"
// asks again and fails loudly when the answer is different.
const AnswersVariable = "MACFLEET_SANDBOX_ANSWERS"

var answersMode = sync.OnceValue(func() string { return os.Getenv(AnswersVariable) })

// answers are the remembered answers to questions, of all machines of this process: three quarters of the
// time of a plan is a shell that prints what it printed before. A machine holds no part of it. An answer
// counts only while everything that it was made from is unchanged, so people and processes may change any file.
type answers struct {
	mu     sync.Mutex
	known  map[question][]*list.Element // the last used first
	recent *list.List                   // of *remembered, the last used first
	bytes  int
}

var allAnswers = &answers{known: map[question][]*list.Element{}, recent: list.New()}

// Limits of the memory.
const (
	maxAnswerBytes = 96 << 20 // in total
	maxAnswers     = 24       // to one question
)

// question identifies a script, its arguments, input and environment, its user and the Mac's identity, in this
// process. Each observation hashes a megabyte of scripts, so the hash is the fastest there is, twice.
type question [2]uint64

var questionSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// remembered is what a question printed, and what it was made from.
type remembered struct {
	question       question
	stdout, stderr []byte
	status         int
	read           []reading
	until          time.Time // on the machine's clock; zero: for ever
	size           int
}

// reading is one thing that was read, and what it was.
type reading struct {
	source source
	value  any // comparable
}

// source is a thing that can be read: a kind and a path or the name of a record.
type source struct {
	kind sourceKind
	name string
}

type sourceKind byte

const (
	fileSource    sourceKind = iota // all that stat shows
	waySource                       // a folder on the way to a file: its type and owner
	namesSource                     // the names in a folder
	linkSource                      // the text of a symbolic link
	contentSource                   // the content of a file
	recordSource                    // a part of the machine's own state
	sizeSource                      // the size of all files
	timeSource                      // the time as tools show it
)

// witness collects what a question reads. It is the machine's: other commands at the same time add what
// they read, which costs a hit at most.
type witness struct {
	mu     sync.Mutex
	values map[source]any
	order  []source
	until  time.Time
	unfit  bool // it changed something, or its answer depends on what changes by itself
}

// witnesses are those of the questions that a machine is answering.
type witnesses struct {
	changes atomic.Uint64 // how often something has changed
	mu      sync.RWMutex
	open    []*witness
}

func (w *witnesses) add(one *witness) (remove func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = append(slices.Clip(w.open), one)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.open = slices.DeleteFunc(slices.Clone(w.open), func(other *witness) bool { return other == one })
	}
}

func (w *witnesses) all() []*witness {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.open
}

// saw notes that something was read.
func (m *Machine) saw(kind sourceKind, name string, value func() any) {
	for _, w := range m.witnesses.all() {
		w.saw(source{kind, name}, value)
	}
}

// changing notes that something changes, or that an answer cannot be remembered for another reason.
func (m *Machine) changing() {
	m.witnesses.changes.Add(1)
	for _, w := range m.witnesses.all() {
		w.disqualify()
	}
}

// untilThen notes that an answer holds until a time of the machine's clock.
func (m *Machine) untilThen(at time.Time) {
	for _, w := range m.witnesses.all() {
		w.mu.Lock()
		if w.until.IsZero() || at.Before(w.until) {
			w.until = at
		}
		w.mu.Unlock()
	}
}

func (w *witness) saw(s source, value func() any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unfit {
		return
	}
	now := value()
	before, ok := w.values[s]
	switch {
	case !ok:
		w.values[s] = now
		w.order = append(w.order, s)
	case before != now:
		w.unfit = true
	}
}

func (w *witness) disqualify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unfit = true
}

// readings returns what was read, or false if the answer cannot be remembered.
func (w *witness) readings() ([]reading, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]reading, len(w.order))
	for i, s := range w.order {
		all[i] = reading{s, w.values[s]}
	}
	return all, !w.unfit
}

// stated is what stat shows of a file.
type stated struct {
	kind     os.FileMode
	size     int64
	modified int64
	links    uint64
	entry    entry
}

func statedOf(n node) any {
	if !n.exists() {
		return "missing"
	}
	return stated{n.info.Mode(), n.info.Size(), n.info.ModTime().UnixNano(), uint64(systemRecord(n.info).Nlink), n.entry}
}

// wayOf is what matters of a folder on the way to a file.
func wayOf(n node) any {
	if !n.exists() {
		return "missing"
	}
	return stated{kind: n.info.Mode().Type(), entry: entry{owner: n.owner}}
}

// digest identifies the content of a file or a record; a missing record has the zero digest.
type digest [sha256.Size]byte

func digestOf(data []byte) any {
	if data == nil {
		return digest{}
	}
	return digest(sha256.Sum256(data))
}

// contentOf returns the digest of a file.
func (v *visit) contentOf(name string) any {
	path := v.session.machine.root + name
	now, err := stampOf(path)
	if err != nil {
		return err.Error()
	}
	m := v.session.machine
	m.records.mu.Lock()
	known, ok := m.records.sums[name]
	m.records.mu.Unlock()
	if ok && known.stamp == now {
		return known.sum
	}
	file, err := v.session.root.Open(relative(name))
	if err != nil {
		return err.Error()
	}
	defer file.Close() // it is only read
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return err.Error()
	}
	sum := digest(hash.Sum(nil))
	if now.settled() {
		m.records.mu.Lock()
		if m.records.sums == nil {
			m.records.sums = map[string]summed{}
		}
		m.records.sums[name] = summed{now, sum}
		m.records.mu.Unlock()
	}
	return sum
}

// summed is the digest of a file with a stamp.
type summed struct {
	stamp stamp
	sum   digest
}

// value reads a source now.
func (v *visit) value(s source) any {
	switch s.kind {
	case recordSource:
		r, err := v.session.machine.read(place(s.name))
		if err != nil {
			return err.Error()
		}
		return r.digest()
	case namesSource:
		entries, err := v.namesIn(s.name)
		if err != nil {
			return err.Error()
		}
		return namesOf(entries)
	case linkSource:
		text, err := v.session.root.Readlink(relative(s.name))
		if err != nil {
			return err.Error()
		}
		return text
	case contentSource:
		return v.contentOf(s.name)
	case timeSource:
		return v.session.shownNow().UnixNano()
	case sizeSource:
		return sizeOf(v.session.machine.totalSize())
	}
	n, err := v.lookUp(s.name)
	switch {
	case err != nil:
		return err.Error()
	case s.kind == waySource:
		return wayOf(n)
	}
	return statedOf(n)
}

func sizeOf(total int64, err error) any {
	if err != nil {
		return err.Error()
	}
	return total
}

func namesOf(entries []os.DirEntry) any {
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(e.Name() + "/")
	}
	return b.String()
}

// snapshot is what the sources of an exchange were. It is used again while this process changes nothing on the machine.
type snapshot struct {
	changes uint64
	values  map[source]any
}

func (s *snapshot) value(v *visit, of source) any {
	if now := v.session.machine.witnesses.changes.Load(); s.values == nil || s.changes != now {
		s.changes, s.values = now, map[source]any{}
	}
	value, ok := s.values[of]
	if !ok {
		value = v.value(of)
		s.values[of] = value
	}
	return value
}

// holds reports whether an answer still counts.
func (v *visit) holds(r *remembered, s *snapshot) bool {
	if !r.until.IsZero() && !v.session.instant().Before(r.until) {
		return false
	}
	for _, one := range r.read {
		if s.value(v, one.source) != one.value {
			return false
		}
	}
	return true
}

// questionOf identifies what a process is about to run.
func questionOf(p *proc, input *string) question {
	var hashes [2]maphash.Hash
	for i := range hashes {
		hashes[i].SetSeed(questionSeeds[i])
	}
	write := func(parts ...string) {
		for i := range hashes { // a hash's Write never fails
			for _, part := range parts {
				_, _ = hashes[i].Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
				_, _ = hashes[i].WriteString(part)
			}
			_ = hashes[i].WriteByte(0xff)
		}
	}
	write(p.argv...)
	write(p.dir, fmt.Sprint(p.umask, p.user, p.session.id, p.depth))
	if input != nil {
		write(*input)
	}
	var env []string
	for name, value := range p.env {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	write(env...)
	return question{hashes[0].Sum64(), hashes[1].Sum64()}
}

// mayRemember reports whether this process may use and make remembered answers: not while someone counts its
// tools or interrupts them, and not while a fault changes what they print.
func (p *proc) mayRemember() bool {
	m := p.session.machine
	return answersMode() != "off" && p.under == nil && !p.faults.Garbled && !p.faults.CutOutput && m.watcher.Load() == nil && !m.InterruptPending()
}

// answered runs a question of an exchange, or prints what it printed before if nothing that it reads has
// changed since.
func (p *proc) answered(input *string, s *snapshot, run func(*proc) int) int {
	if !p.mayRemember() {
		return run(p)
	}
	q := questionOf(p, input)
	known := allAnswers.find(p, q, s)
	if known != nil && answersMode() != "check" {
		_, _ = p.stdout.Write(known.stdout)
		_, _ = p.stderr.Write(known.stderr)
		return known.status
	}
	w := &witness{values: map[source]any{}}
	remove := p.session.machine.witnesses.add(w)
	own, out, errs := *p, &capture{}, &capture{}
	own.stdout, own.stderr = out, errs
	status := run(&own)
	remove()
	one := &remembered{question: q, stdout: out.bytes(), stderr: errs.bytes(), status: status, until: w.until}
	_, _ = p.stdout.Write(one.stdout)
	_, _ = p.stderr.Write(one.stderr)
	if p.ctx.Err() != nil {
		return status
	}
	if known != nil && !known.says(one) && p.holds(known, new(snapshot)) { // it may have changed since
		return p.fail(exitUnmodelled, "the remembered answer is different now:\n%s%s(%d)\n%s", known.stdout, known.stderr, known.status, strings.Join(p.argv, "\n"))
	}
	var whole bool
	if one.read, whole = w.readings(); whole && known == nil {
		allAnswers.keep(one)
	}
	return status
}

// find returns the answer that holds on a process's machine, or nil.
func (a *answers) find(p *proc, q question, s *snapshot) *remembered {
	a.mu.Lock()
	candidates := slices.Clone(a.known[q])
	a.mu.Unlock()
	for _, e := range candidates {
		if one := e.Value.(*remembered); p.holds(one, s) {
			a.used(e)
			return one
		}
	}
	return nil
}

// holds reports whether an answer counts on a process's machine.
func (p *proc) holds(one *remembered, s *snapshot) (holds bool) {
	err := p.visit(func(v *visit) error {
		holds = v.holds(one, s)
		return nil
	})
	return holds && err == nil
}

// says reports whether two answers are the same.
func (r *remembered) says(other *remembered) bool {
	return string(r.stdout) == string(other.stdout) && string(r.stderr) == string(other.stderr) && r.status == other.status
}

func (a *answers) used(e *list.Element) {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := e.Value.(*remembered).question
	if i := slices.Index(a.known[q], e); i >= 0 { // it may be forgotten already
		a.known[q] = slices.Insert(slices.Delete(slices.Clone(a.known[q]), i, i+1), 0, e)
		a.recent.MoveToFront(e)
	}
}

// keep remembers an answer. A thing that changes while the question runs is noted before it is read, so it
// differs the next time.
func (a *answers) keep(one *remembered) {
	one.size = len(one.stdout) + len(one.stderr) + 512
	for _, r := range one.read {
		one.size += 160 + len(r.source.name)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.recent.PushFront(one)
	a.known[one.question] = slices.Insert(slices.Clone(a.known[one.question]), 0, e)
	a.bytes += one.size
	if all := a.known[one.question]; len(all) > maxAnswers {
		a.forget(all[len(all)-1])
	}
	for a.bytes > maxAnswerBytes {
		a.forget(a.recent.Back())
	}
}

func (a *answers) forget(e *list.Element) {
	one := a.recent.Remove(e).(*remembered)
	a.bytes -= one.size
	a.known[one.question] = slices.DeleteFunc(slices.Clone(a.known[one.question]), func(other *list.Element) bool { return other == e })
	if len(a.known[one.question]) == 0 {
		delete(a.known, one.question)
	}
}
