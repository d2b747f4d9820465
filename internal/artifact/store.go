// Package artifact finds artifacts on this machine: local files next to the configuration, and
// downloads in a cache.
package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"os"
	"path/filepath"

	"github.com/macfleet/macfleet/fleet"
)

// Store finds artifacts. It is safe for concurrent use, also by several
// processes with the same cache.
type Store struct {
	Dir   string       // of the configuration: paths are relative to it
	Cache string       // folder, made when it is needed
	HTTP  *http.Client // for URLs
}

// New returns the store of the configuration in a directory, with its cache below that.
func New(dir string, client *http.Client) *Store {
	return &Store{Dir: dir, Cache: filepath.Join(dir, ".macfleet", "artifacts"), HTTP: client}
}

// Pin is the digest and the size of an artifact.
type Pin struct {
	SHA256 string // small hex
	Size   int64  // bytes
}

// MismatchError reports that a source does not have the locked digest.
type MismatchError struct {
	Artifact fleet.Artifact
	Got      Pin
}

// Error names both digests and the remedy.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s: checksum mismatch: %s has the SHA-256 %s, locked is %s; %s", e.Artifact, e.Artifact.Source, e.Got.SHA256, e.Artifact.SHA256, e.Remedy())
}

// Remedy returns the fix.
func (e *MismatchError) Remedy() string {
	return "if the change is intended, run macfleet artifacts lock --update " + e.Artifact.Name + "; otherwise restore the locked file"
}

// ErrUnlocked reports an artifact without a digest.
var ErrUnlocked = errors.New("not locked; run macfleet artifacts lock")

// Open returns an artifact, downloaded if it is not in the cache, and its size. Its digest is
// verified, once per version of the file. The reader is an *os.File. The error is a
// *MismatchError if the digest is wrong.
func (s *Store) Open(ctx context.Context, a fleet.Artifact) (io.ReadCloser, int64, error) {
	if a.SHA256 == "" {
		return nil, 0, fmt.Errorf("%s: %w", a, ErrUnlocked)
	}
	file, pin, err := s.checked(ctx, a, s.path(a))
	if fleet.IsURL(a.Source) && (errors.Is(err, fs.ErrNotExist) || mismatched(err)) {
		if _, err := s.download(ctx, a, a.SHA256); err != nil {
			return nil, 0, err
		}
		file, pin, err = s.checked(ctx, a, s.path(a))
	}
	if err != nil {
		return nil, 0, err
	}
	return file, pin.Size, nil
}

// mismatched reports whether a file does not have the locked digest.
func mismatched(err error) bool {
	_, is := errors.AsType[*MismatchError](err)
	return is
}

// State reports whether an artifact is on this machine, or its file does not have the locked
// digest. It downloads nothing. A local file is read if it changed since the last time; a
// cached file is trusted by its name.
func (s *Store) State(ctx context.Context, a fleet.Artifact) (here, changed bool) {
	info, err := os.Stat(s.path(a))
	if err != nil || !info.Mode().IsRegular() {
		return false, false
	}
	err = s.Unchanged(ctx, a)
	return err == nil, mismatched(err)
}

// Unchanged returns a *MismatchError if an artifact's local file does not have the locked
// digest, or another error if it is unreadable: its upload would fail. A missing file or digest
// is not an error, because the hosts may have the artifact.
func (s *Store) Unchanged(ctx context.Context, a fleet.Artifact) error {
	if a.SHA256 == "" || fleet.IsURL(a.Source) {
		return nil
	}
	pin, err := s.Hash(ctx, a)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && pin.SHA256 != a.SHA256:
		return &MismatchError{a, pin}
	}
	return err
}

// Hash returns the current digest and size of an artifact, regardless of the lock. A URL is
// downloaded into the cache.
func (s *Store) Hash(ctx context.Context, a fleet.Artifact) (Pin, error) {
	if fleet.IsURL(a.Source) {
		return s.download(ctx, a, "")
	}
	a.SHA256 = ""
	file, pin, err := s.checked(ctx, a, s.path(a))
	if err == nil {
		_ = file.Close() // it was read, not written
	}
	return pin, err
}

// path returns an artifact's path on this machine, existing or not.
func (s *Store) path(a fleet.Artifact) string {
	switch {
	case fleet.IsURL(a.Source):
		return s.cached(a.SHA256)
	case filepath.IsAbs(a.Source):
		return a.Source
	}
	return filepath.Join(s.Dir, filepath.FromSlash(a.Source))
}

func (s *Store) cached(sum string) string { return filepath.Join(s.Cache, sum) }

// checked opens a file and verifies its digest, or computes it if a is not locked.
func (s *Store) checked(ctx context.Context, a fleet.Artifact, path string) (*os.File, Pin, error) {
	// Opening a pipe would block until there is a writer.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, Pin{}, fmt.Errorf("%s: read %s: not a regular file; an artifact is one file, such as an archive", a, path)
	}
	file, err := os.Open(path)
	if err != nil {
		remedy := "create the file, or correct the source"
		if errors.Is(err, fs.ErrPermission) {
			remedy = "make the file readable for macfleet's user"
		}
		return nil, Pin{}, fmt.Errorf("%s: %w; its source is %q: %s", a, err, a.Source, remedy)
	}
	pin, err := s.pin(ctx, file)
	switch {
	case err != nil:
		err = fmt.Errorf("%s: read %s: %w", a, path, err)
	case a.SHA256 != "" && pin.SHA256 != a.SHA256:
		err = &MismatchError{a, pin}
	default:
		return file, pin, nil
	}
	_ = file.Close() // it was read, not written
	return nil, Pin{}, err
}

// pin returns a file's digest and size, and rewinds it.
func (s *Store) pin(ctx context.Context, file *os.File) (Pin, error) {
	info, err := file.Stat()
	if err != nil {
		return Pin{}, err
	}
	if info.Size() == 0 {
		return Pin{}, errors.New("the file is empty")
	}
	now := identify(file.Name(), info)
	if sum, known := s.recall(now); known {
		return Pin{sum, info.Size()}, nil
	}
	pin, err := digest(ctx, io.NewSectionReader(file, 0, math.MaxInt64))
	if err != nil {
		return Pin{}, err
	}
	// If the file was written in the meantime, its identity changed.
	if after, err := file.Stat(); err == nil && identify(file.Name(), after) == now {
		s.remember(now, pin.SHA256)
	}
	return pin, nil
}

// digest reads r to its end, or until ctx ends.
func digest(ctx context.Context, r io.Reader) (Pin, error) {
	h := sha256.New()
	n, err := io.Copy(h, reader(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return r.Read(p)
	}))
	return Pin{hex.EncodeToString(h.Sum(nil)), n}, err
}

// reader implements io.Reader with a function.
type reader func(p []byte) (int, error)

// Read calls r.
func (r reader) Read(p []byte) (int, error) { return r(p) }
