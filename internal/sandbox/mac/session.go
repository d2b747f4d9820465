package mac

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// session is open access to a machine: the descriptors that all processes of one connection share.
type session struct {
	machine *Machine
	id      identity
	root    *os.Root
	top     fs.FileInfo // of the root folder
	lock    *os.File
	swept   bool // guarded by the machine's lock

	calls atomic.Int64
	jobs  jobs
}

func (m *Machine) session() (*session, error) {
	id, err := m.identity()
	if err != nil {
		return nil, fmt.Errorf("use the machine in %s: %w", m.dir, err)
	}
	root, err := os.OpenRoot(m.Root())
	if err != nil {
		return nil, fmt.Errorf("use the machine in %s: %w", m.dir, err)
	}
	lock, err := os.OpenFile(filepath.Join(m.dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("use the machine in %s: %w", m.dir, errors.Join(err, root.Close()))
	}
	top, err := root.Stat(".")
	if err != nil {
		return nil, fmt.Errorf("use the machine in %s: %w", m.dir, errors.Join(err, root.Close(), lock.Close()))
	}
	return &session{machine: m, id: id, root: root, top: top, lock: lock}, nil
}

// close waits for the tools of background jobs; their context has ended.
func (s *session) close() {
	s.jobs.stop()
	s.machine.mu.Lock()
	defer s.machine.mu.Unlock()
	// Both were only read, so errors are harmless.
	_ = s.root.Close()
	_ = s.lock.Close()
}

// start runs a command line as a user with a new login environment and returns its exit status.
func (s *session) start(ctx context.Context, who user, argv []string, faults Faults, stdin *os.File, stdout, stderr io.Writer) int {
	// Background processes of a script end with it.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	forget := context.AfterFunc(s.machine.power.up(), cancel)
	defer forget()
	part := s.machine.commands.begin()
	defer s.machine.commands.end(part)
	p := &proc{session: s, ctx: ctx, part: part, user: who, argv: argv, env: loginEnviron(who), dir: who.home,
		umask: 0o022, faults: faults, stdin: stdin, stdout: stdout, stderr: stderr}
	return p.run()
}

// visit is the machine's disk while its lock is held.
type visit struct {
	session  *session
	book     ledger
	changed  bool              // the ledger was
	kept     bool              // a record was written
	unmade   map[string]bool   // bare folders that are not on the disk, see lstat
	switches map[string]string // read on first use
	asleep   time.Duration     // how long the visiting job has slept; launchd frees labels while it sleeps
}

// visit calls f with the machine locked against every other process and goroutine, and writes the
// ledger if f has changed it, even if f fails.
func (s *session) visit(f func(*visit) error) (err error) {
	m := s.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := flock(s.lock, unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock the machine in %s: %w", m.dir, err)
	}
	defer func() { err = errors.Join(err, flock(s.lock, unix.LOCK_UN)) }()
	book, err := m.current(s.lock)
	if err != nil {
		return fmt.Errorf("use the machine in %s: %w", m.dir, err)
	}
	v := &visit{session: s, book: book}
	if !s.swept {
		v.sweep()
		s.swept = true
	}
	err = f(v)
	if v.changed {
		if failed := m.record(s.lock, v.book); failed != nil {
			return errors.Join(err, fmt.Errorf("use the machine in %s: %w", m.dir, failed))
		}
	}
	if v.changed || v.kept {
		err = errors.Join(err, s.changedNow())
	}
	return err
}

func flock(file *os.File, how int) error {
	for {
		err := unix.Flock(int(file.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// born notes a new file, link or folder.
func (v *visit) born(path string, o owner) {
	v.change()
	v.book.inodes++
	v.book.entries[path] = entry{owner: o, inode: firstInode + v.book.inodes}
}

// own sets the owner of a file that exists, which changes the file but not its content.
func (v *visit) own(n node, o owner) {
	n.owner = o
	v.note(n, n.path)
}

// note notes that a file has a name and was changed just now, but its content was not.
func (v *visit) note(n node, path string) {
	v.change()
	n.changed = v.session.now().UTC().Round(0) // as it is read from the file
	if n.modified = n.changed; n.info != nil {
		n.modified = n.info.ModTime().UTC()
	}
	n.inode = n.number()
	v.book.entries[path] = n.entry
}

// forget removes the entries of a file or a whole folder.
func (v *visit) forget(path string) {
	for known := range v.book.entries {
		if below(known, path) {
			v.change()
			delete(v.book.entries, known)
		}
	}
}

// change returns a copy that may be written to: others read the one in memory.
func (v *visit) change() {
	v.session.machine.changing()
	if !v.changed {
		v.book.entries, v.changed = maps.Clone(v.book.entries), true
	}
}

func (v *visit) entryOf(path string, folder bool) entry {
	if e, ok := v.book.entries[path]; ok {
		return e
	}
	return entry{owner: v.handMade(path, folder)}
}

// handMade is the owner of a file that only a person with an editor can have created.
func (v *visit) handMade(path string, folder bool) owner {
	o := owner{Mode: 0o644}
	if folder {
		o.Mode = 0o755
	}
	if below(path, "/Users/"+v.session.id.User) {
		o.UID, o.GID = loginUID, staff
	}
	return o
}
