package mac

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// stamp changes when a file is changed, replaced or edited.
type stamp struct {
	inode          uint64
	size           int64
	written, moved unix.Timespec
}

// stampOf returns the stamp of a file. The error is fs.ErrNotExist for a missing one.
func stampOf(path string) (stamp, error) {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return stamp{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return stamp{s.Ino, s.Size, s.Mtim, s.Ctim}, nil
}

// settled reports whether the next change of the file will change its stamp. The disk's clock moves in
// steps of some milliseconds, and a file can change twice within one.
func (s stamp) settled() bool {
	return time.Since(time.Unix(s.moved.Unix())) > 100*time.Millisecond
}

// records cache the machine's own files. They hold no state: each file is checked before use, since
// other processes and people change it.
type records struct {
	mu    sync.Mutex
	known map[place]noted
	sums  map[string]summed // of files of the tree
}

type noted struct {
	stamp   stamp
	data    []byte
	sum     *digest // of the data, once it was needed
	decoded any     // the parsed data, once they were needed; must not be changed
}

// digest identifies the data.
func (r noted) digest() any {
	if r.sum != nil {
		return *r.sum
	}
	return digestOf(r.data)
}

// remembers returns the record at a place, or nil if there is none. It must not be changed.
func (m *Machine) remembers(at place) ([]byte, error) {
	r, err := m.look(at)
	return r.data, err
}

func (m *Machine) look(at place) (noted, error) {
	r, err := m.read(at)
	m.saw(recordSource, string(at), func() any {
		if err != nil {
			return err.Error()
		}
		return r.digest()
	})
	return r, err
}

func (m *Machine) read(at place) (noted, error) {
	path := m.dir + "/" + string(at)
	now, err := stampOf(path)
	if errors.Is(err, fs.ErrNotExist) {
		return noted{}, nil
	}
	if err != nil {
		return noted{}, err
	}
	m.records.mu.Lock()
	r, ok := m.records.known[at]
	m.records.mu.Unlock()
	if ok && r.stamp == now {
		return r, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return noted{}, nil
	}
	r = noted{stamp: now, data: data}
	if err == nil && now.settled() {
		sum := digest(sha256.Sum256(data))
		r.sum = &sum
		m.records.keep(at, r)
	}
	return r, err
}

func (r *records) keep(at place, one noted) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = map[place]noted{}
	}
	r.known[at] = one
}

// decoded returns the parsed record at a place, or nil if there is none. It is parsed once and must
// not be changed.
func decoded[T any](m *Machine, at place, decode func([]byte, any) error) (*T, error) {
	r, err := m.look(at)
	if r.data == nil || err != nil {
		return nil, err
	}
	if known, ok := r.decoded.(*T); ok {
		return known, nil
	}
	value := new(T)
	if err := decode(r.data, value); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	if r.stamp.settled() {
		r.decoded = value
		m.records.keep(at, r)
	}
	return value, nil
}
