// Package artifact has the files of artifacts on this machine: those beside the
// configuration, and those that were downloaded, in a cache.
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

// Pin is what an artifact's bytes are.
type Pin struct {
	SHA256 string // small hex
	Size   int64  // bytes
}

// MismatchError says that a source has other bytes than the configuration says.
type MismatchError struct {
	Artifact fleet.Artifact
	Got      Pin
}

// Error names both digests, and what to type.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s: %s has the SHA-256 %s, and the configuration says %s; %s", e.Artifact, e.Artifact.Source, e.Got.SHA256, e.Artifact.SHA256, e.Remedy())
}

// Remedy is what to type or do.
func (e *MismatchError) Remedy() string {
	return "if it was changed on purpose, run macfleet artifacts lock --update " + e.Artifact.Name + "; else bring back the file that was locked"
}

// ErrUnlocked is the cause where an artifact has no digest.
var ErrUnlocked = errors.New("it has no sha256; run macfleet artifacts lock")

// Open returns the bytes of an artifact, downloaded where they are not in the
// cache, and how many there are. Their digest was compared; what was compared
// once is not read again for it until it changes. The reader is an *os.File.
// The error is a *MismatchError where the bytes are others.
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

// mismatched reports whether a file has other bytes than were locked.
func mismatched(err error) bool {
	_, is := errors.AsType[*MismatchError](err)
	return is
}

// State looks for an artifact, and downloads nothing: whether its bytes are on this
// machine, or else a file of it that has other bytes than were locked. A file beside the
// configuration is read where that was not done since it changed last; what the cache
// has is taken for what its name says, as it is downloaded again where it is not.
func (s *Store) State(ctx context.Context, a fleet.Artifact) (here, changed bool) {
	info, err := os.Stat(s.path(a))
	if err != nil || !info.Mode().IsRegular() {
		return false, false
	}
	err = s.Unchanged(ctx, a)
	return err == nil, mismatched(err)
}

// Unchanged returns a *MismatchError where an artifact's file beside the configuration
// has other bytes than were locked, and another error where it cannot be read: an
// upload of it would fail. Of a file that is not there, or has no digest yet, nothing is
// said: the hosts may have it.
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

// Hash returns what an artifact's bytes are now, whatever the configuration says
// of them. A URL is downloaded, and its bytes are in the cache then.
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

// path returns where an artifact lies on this machine, or would lie.
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

// checked opens a file and compares its digest, or only takes it where a is not
// locked.
func (s *Store) checked(ctx context.Context, a fleet.Artifact, path string) (*os.File, Pin, error) {
	// To open a pipe would wait for somebody who writes into it.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, Pin{}, fmt.Errorf("%s: read %s: it is no file; an artifact is one file, such as an archive", a, path)
	}
	file, err := os.Open(path)
	if err != nil {
		remedy := "make the file, or correct the source"
		if errors.Is(err, fs.ErrPermission) {
			remedy = "macfleet's user must be able to read it"
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

// pin returns what a file's bytes are, and leaves it at its beginning.
func (s *Store) pin(ctx context.Context, file *os.File) (Pin, error) {
	info, err := file.Stat()
	if err != nil {
		return Pin{}, err
	}
	if info.Size() == 0 {
		return Pin{}, errors.New("it is empty; what made it has failed")
	}
	now := identify(file.Name(), info)
	if sum, known := s.recall(now); known {
		return Pin{sum, info.Size()}, nil
	}
	pin, err := digest(ctx, io.NewSectionReader(file, 0, math.MaxInt64))
	if err != nil {
		return Pin{}, err
	}
	// A file that was written meanwhile has another identity than the one read.
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

// reader is a function that reads.
type reader func(p []byte) (int, error)

// Read calls r.
func (r reader) Read(p []byte) (int, error) { return r(p) }
