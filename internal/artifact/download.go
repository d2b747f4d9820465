package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/wholefile"
)

// silence is how long a server may send nothing before a download is cancelled.
const silence = time.Minute

// attempts is how often an interrupted download is resumed.
const attempts = 5

// download saves a URL in the cache under its digest. The digest must be want, unless that is
// empty: then an interrupted download is not resumed, because its parts may not match.
func (s *Store) download(ctx context.Context, a fleet.Artifact, want string) (Pin, error) {
	if err := os.MkdirAll(s.Cache, 0o755); err != nil {
		return Pin{}, fmt.Errorf("%s: create the cache: %w", a, err)
	}
	of := sha256.Sum256([]byte(a.Source + "\n" + want))
	path := filepath.Join(s.Cache, ".download-"+hex.EncodeToString(of[:8]))
	part, err := wholefile.Lock(ctx, path, 0o644)
	if err != nil {
		return Pin{}, fmt.Errorf("%s: download into the cache: %w", a, err)
	}
	defer func() { _ = part.Close() }() // what matters was flushed by complete
	if want != "" {
		if file, pin, err := s.checked(ctx, a, s.cached(want)); err == nil { // another process was faster
			_ = file.Close() // only read
			_ = os.Remove(path)
			return pin, nil
		}
	}
	pin, err := s.fill(ctx, a, part, want)
	if err == nil {
		if err = part.Sync(); err == nil {
			err = os.Rename(path, s.cached(pin.SHA256))
		}
		if err != nil {
			err = fmt.Errorf("%s: save the download: %w", a, err)
		}
	}
	noRoom := errors.Is(err, syscall.ENOSPC)
	if noRoom || mismatched(err) || want == "" && err != nil {
		_ = os.Remove(path) // the error was reported already
	}
	if noRoom {
		return Pin{}, fmt.Errorf("%s: disk full: %s; the partial download was deleted; free space or move the configuration: %w", a, s.Cache, err)
	}
	return pin, err
}

// fill downloads the rest of the URL into the partial file.
func (s *Store) fill(ctx context.Context, a fleet.Artifact, part *os.File, want string) (Pin, error) {
	for try := 1; ; try++ {
		if want == "" {
			if err := part.Truncate(0); err != nil {
				return Pin{}, err
			}
		}
		start, err := part.Seek(0, io.SeekEnd)
		if err != nil {
			return Pin{}, err
		}
		if err := s.get(ctx, a, part, start); err != nil {
			after, serr := part.Seek(0, io.SeekEnd)
			if serr == nil && after > start && try < attempts && ctx.Err() == nil && !errors.Is(err, syscall.ENOSPC) {
				continue
			}
			return Pin{}, fmt.Errorf("%s: download %s: %w", a, a.Source, err)
		}
		pin, err := digest(ctx, io.NewSectionReader(part, 0, math.MaxInt64))
		switch {
		case err != nil:
			return Pin{}, fmt.Errorf("%s: read the download: %w", a, err)
		case want == "" || pin.SHA256 == want:
			return pin, nil
		case start == 0 || try >= attempts:
			return Pin{}, &MismatchError{a, pin}
		}
		// The partial file belongs to another file.
		if err := part.Truncate(0); err != nil {
			return Pin{}, err
		}
	}
}

// get sends one request and appends the response to the partial file.
func (s *Store) get(ctx context.Context, a fleet.Artifact, part *os.File, start int64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.Source, http.NoBody)
	if err != nil {
		return err
	}
	if start > 0 {
		r.Header.Set("Range", "bytes="+strconv.FormatInt(start, 10)+"-")
	}
	client := *s.HTTP
	client.CheckRedirect = onlyHTTPS
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // only read
	switch {
	case resp.StatusCode == http.StatusPartialContent && start > 0:
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && start > 0:
		return nil // nothing more: the digest shows whether it is complete
	case resp.StatusCode == http.StatusOK:
		if err := part.Truncate(0); err != nil {
			return err
		}
		if _, err := part.Seek(0, io.SeekStart); err != nil {
			return err
		}
	default:
		return fmt.Errorf("the server responded %s; check the URL", resp.Status)
	}
	quiet := time.AfterFunc(silence, func() { cancel(fmt.Errorf("no data for %s", silence)) })
	defer quiet.Stop()
	_, err = io.Copy(part, reader(func(p []byte) (int, error) {
		n, err := resp.Body.Read(p)
		quiet.Reset(silence) // restarted with all data
		return n, err
	}))
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

func onlyHTTPS(r *http.Request, via []*http.Request) error {
	const most = 10
	switch {
	case r.URL.Scheme != "https":
		return errors.New("the server redirects to a URL without https")
	case len(via) >= most:
		return fmt.Errorf("the server redirected %d times", most)
	}
	return nil
}
