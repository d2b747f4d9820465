package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/maintest"
)

func TestMain(m *testing.M) { maintest.Main(m) }

func sum(data []byte) string {
	pin, err := digest(context.Background(), bytes.NewReader(data))
	if err != nil {
		panic(err) // reading a buffer cannot fail
	}
	return pin.SHA256
}

// shop is a server with one file, which may interrupt downloads.
type shop struct {
	*httptest.Server
	data     atomic.Pointer[[]byte]
	breaks   atomic.Int64 // bytes after which each response is interrupted; 0: never
	plain    atomic.Bool  // it does not support ranges
	requests atomic.Int64
	served   atomic.Int64
	fail     atomic.Int64 // status of all responses; 0: success
}

func newShop(t *testing.T, data []byte) *shop {
	s := new(shop)
	s.sells(data)
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	t.Cleanup(s.Client().CloseIdleConnections)
	return s
}

// sells replaces the file.
func (s *shop) sells(data []byte) { s.data.Store(&data) }

// ServeHTTP serves the file.
func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	if r.URL.Path == "/elsewhere" {
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		return
	}
	if code := s.fail.Load(); code != 0 {
		w.WriteHeader(int(code))
		return
	}
	data, from := *s.data.Load(), 0
	if text, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok && !s.plain.Load() {
		from, _ = strconv.Atoi(strings.TrimSuffix(text, "-"))
		if from >= len(data) {
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(data)-1, len(data)))
		w.Header().Set("Content-Length", strconv.Itoa(len(data)-from))
		w.WriteHeader(http.StatusPartialContent)
	} else {
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	}
	rest := data[from:]
	if n := int(s.breaks.Load()); n > 0 && n < len(rest) {
		s.served.Add(int64(n)) // first, because the test reads the counter as soon as it has all data
		_, _ = w.Write(rest[:n])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	s.served.Add(int64(len(rest)))
	_, _ = w.Write(rest)
}

func (s *shop) artifact() fleet.Artifact {
	return fleet.Artifact{Name: "tart", Version: "1", Source: s.URL + "/tart.tar.gz", SHA256: sum(*s.data.Load()), Fetch: fleet.FetchPush}
}

func read(t *testing.T, s *Store, a fleet.Artifact) ([]byte, error) {
	t.Helper()
	r, n, err := s.Open(t.Context(), a)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(r)
	if err != nil || int64(len(data)) != n {
		t.Errorf("%d bytes of %d, %v", len(data), n, err)
	}
	return data, nil
}

// reads checks that a store gives these bytes of an artifact, and says that it has it.
func reads(t *testing.T, s *Store, a fleet.Artifact, want []byte) {
	t.Helper()
	if data, err := read(t, s, a); err != nil || !bytes.Equal(data, want) || is(t, s, a) != "here" {
		t.Errorf("%d bytes of %d, %v, %s", len(data), len(want), err, is(t, s, a))
	}
}

// failed checks an error by its text, and by what it is.
func failed(t *testing.T, err, is error, says string) {
	t.Helper()
	if err == nil || is != nil && !errors.Is(err, is) || !strings.Contains(err.Error(), says) {
		t.Errorf("error = %v, want %q", err, says)
	}
}

// cacheOf lists the cache without the receipts.
func cacheOf(s *Store) string {
	entries, _ := os.ReadDir(s.Cache)
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "receipt-") {
			names = append(names, e.Name())
		}
	}
	return strings.Join(names, " ")
}

func TestFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := New(dir, http.DefaultClient)
	path := filepath.Join(dir, "dist", "tart-kubelet")
	put := func(text string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	a := fleet.Artifact{Name: "kubelet", Source: "dist/tart-kubelet", SHA256: sum([]byte("version=1")), Fetch: fleet.FetchPush}
	_, err := read(t, s, a)
	if failed(t, err, fs.ErrNotExist, "artifact.kubelet: open "); is(t, s, a) != "absent" {
		t.Errorf("state %s", is(t, s, a))
	}
	put("version=1")
	absolute := a
	absolute.Source = path
	for _, a := range []fleet.Artifact{a, a, absolute} {
		reads(t, s, a, []byte("version=1"))
	}
	put("version=2")
	_, err = read(t, s, a)
	var wrong *MismatchError
	if !errors.As(err, &wrong) || wrong.Got != (Pin{sum([]byte("version=2")), 9}) || !strings.Contains(err.Error(), "macfleet artifacts lock --update") {
		t.Errorf("error = %v", err)
	}
	if pin, err := s.Hash(t.Context(), a); err != nil || pin != wrong.Got {
		t.Errorf("%+v, %v", pin, err)
	}
	if err := s.Unchanged(t.Context(), a); is(t, s, a) != "changed" || !errors.As(err, &wrong) {
		t.Errorf("state %s, %v", is(t, s, a), err)
	}
	put("")
	_, err = s.Hash(t.Context(), a)
	failed(t, err, nil, "is empty")
	put("version=2")
	unlocked := a
	unlocked.SHA256 = ""
	if err := s.Unchanged(t.Context(), unlocked); err != nil || is(t, s, unlocked) != "here" {
		t.Errorf("not locked: %s, %v", is(t, s, unlocked), err)
	}
	_, err = read(t, s, unlocked)
	failed(t, err, ErrUnlocked, "")
	if os.Getuid() != 0 { // root can always read it
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		_, err = s.Hash(t.Context(), a)
		failed(t, err, fs.ErrPermission, "")
	}
	// Opening a pipe without a writer must not block.
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{"dist", "pipe"} {
		odd := a
		odd.Source = source
		_, err = s.Hash(t.Context(), odd)
		failed(t, err, nil, "an artifact is one file")
	}
}

// TestReceipt: only unchanged files are not read again.
func TestReceipt(t *testing.T) {
	t.Parallel()
	s := New(t.TempDir(), http.DefaultClient)
	path := filepath.Join(s.Dir, "tool")
	if err := os.WriteFile(path, []byte("one"), 0o644); err != nil {
		t.Fatal(err)
	}
	now := func() receipt {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return identify(path, info)
	}
	s.remember(now(), "a digest")
	if got, known := s.recall(now()); !known || got != "a digest" {
		t.Errorf("%q, %t", got, known)
	}
	at := time.Unix(0, now().Modified)
	for name, change := range map[string]func() error{
		"another time": func() error { return os.Chtimes(path, at, at.Add(time.Second)) },
		"another size": func() error { return errors.Join(os.WriteFile(path, []byte("three"), 0o644), os.Chtimes(path, at, at)) },
		"another file": func() error {
			other := path + ".new"
			return errors.Join(os.WriteFile(other, []byte("two"), 0o644), os.Chtimes(other, at, at), os.Rename(other, path))
		},
	} {
		s.remember(now(), "x")
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if _, known := s.recall(now()); known {
			t.Errorf("%s is taken for the file that was read", name)
		}
	}
	if err := os.WriteFile(s.receipt(now().Path), []byte("damaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, known := s.recall(now()); known {
		t.Error("a damaged receipt counts")
	}
}

func TestDownload(t *testing.T) {
	t.Parallel()
	shop := newShop(t, bytes.Repeat([]byte("tart"), 50_000))
	s := New(t.TempDir(), shop.Client())
	a := shop.artifact()
	if is(t, s, a) != "absent" {
		t.Error("cached before the download")
	}
	for range 2 {
		reads(t, s, a, *shop.data.Load())
	}
	if got := shop.requests.Load(); got != 1 {
		t.Errorf("%d requests, want one", got)
	}
	// A damaged cached file is detected and downloaded again.
	if err := os.WriteFile(s.cached(a.SHA256), []byte("spoilt"), 0o644); err != nil {
		t.Fatal(err)
	}
	reads(t, s, a, *shop.data.Load())
	if got := cacheOf(s); got != a.SHA256 {
		t.Errorf("the cache holds %s", got)
	}
}

// TestDownloadResumes an interrupted download, in the same run and in the next.
func TestDownloadResumes(t *testing.T) {
	t.Parallel()
	const all = 200_000
	shop := newShop(t, bytes.Repeat([]byte("tart"), all/4))
	s := New(t.TempDir(), shop.Client())
	a := shop.artifact()
	shop.breaks.Store(20_000)
	_, err := read(t, s, a)
	failed(t, err, nil, "artifact.tart: download https://")
	if got := shop.requests.Load(); got != attempts {
		t.Errorf("%d requests, want %d", got, attempts)
	}
	shop.breaks.Store(60_000)
	reads(t, s, a, *shop.data.Load())
	if got := shop.served.Load(); got != all {
		t.Errorf("%d bytes were served, want %d", got, all)
	}
	// A server without support for ranges sends everything again.
	shop.plain.Store(true)
	shop.sells(bytes.Repeat([]byte("trat"), all/4))
	_, err = read(t, s, shop.artifact())
	failed(t, err, nil, "")
	shop.breaks.Store(0)
	reads(t, s, shop.artifact(), *shop.data.Load())
}

func TestDownloadOtherBytes(t *testing.T) {
	t.Parallel()
	shop := newShop(t, []byte("the right bytes"))
	s := New(t.TempDir(), shop.Client())
	a := shop.artifact()
	other := func(data []byte) {
		t.Helper()
		shop.sells(data)
		var wrong *MismatchError
		if _, err := read(t, s, a); !errors.As(err, &wrong) || wrong.Got.SHA256 != sum(data) || cacheOf(s) != "" {
			t.Errorf("error = %v; the cache holds %s", err, cacheOf(s))
		}
	}
	other([]byte("the wrong bytes, more"))
	// Halves of two files do not match the digest.
	shop.breaks.Store(4)
	long := bytes.Repeat([]byte("a"), 100)
	shop.sells(long)
	a = shop.artifact()
	_, _ = read(t, s, a) // interrupted
	shop.breaks.Store(0)
	other(bytes.Repeat([]byte("b"), 100))
	shop.sells(long)
	reads(t, s, a, long)
}

func TestDownloadFails(t *testing.T) {
	t.Parallel()
	shop := newShop(t, []byte("tart"))
	s := New(t.TempDir(), shop.Client())
	shop.fail.Store(http.StatusNotFound)
	_, err := read(t, s, shop.artifact())
	failed(t, err, nil, "404 Not Found; check the URL")
	a := shop.artifact()
	a.Source = shop.URL + "/elsewhere"
	_, err = read(t, s, a)
	failed(t, err, nil, "without https")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = s.Open(ctx, shop.artifact())
	failed(t, err, nil, "")
}

// TestDownloadAtOnce: one of many concurrent calls downloads.
func TestDownloadAtOnce(t *testing.T) {
	t.Parallel()
	shop := newShop(t, bytes.Repeat([]byte("tart"), 10_000))
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			s := New(dir, shop.Client()) // as in another process
			if data, err := read(t, s, shop.artifact()); err != nil || len(data) != 40_000 {
				t.Errorf("%d bytes, %v", len(data), err)
			}
		})
	}
	all.Wait()
	if got := shop.requests.Load(); got != 1 {
		t.Errorf("%d requests, want one", got)
	}
	if got := cacheOf(New(dir, nil)); got != shop.artifact().SHA256 {
		t.Errorf("the cache holds %s", got)
	}
}

// TestHash downloads the current content of a URL, and caches it.
func TestHash(t *testing.T) {
	t.Parallel()
	shop := newShop(t, []byte("version 1"))
	s := New(t.TempDir(), shop.Client())
	a := shop.artifact()
	for _, text := range []string{"version 1", "version two"} {
		data := []byte(text)
		shop.sells(data)
		if pin, err := s.Hash(t.Context(), a); err != nil || pin != (Pin{sum(data), int64(len(data))}) {
			t.Errorf("%+v, %v", pin, err)
		}
	}
	now := shop.artifact()
	before := shop.requests.Load()
	if reads(t, s, now, []byte("version two")); shop.requests.Load() != before {
		t.Error("what was hashed is downloaded again")
	}
	shop.breaks.Store(1)
	if _, err := s.Hash(t.Context(), a); err == nil || strings.Contains(cacheOf(s), "download") {
		t.Errorf("error = %v; the cache holds %s", err, cacheOf(s))
	}
}

// full is a disk that has no room, seen from a server: what fails is the same copy.
type full struct{}

// RoundTrip answers with some bytes and then as a full disk does.
func (full) RoundTrip(r *http.Request) (*http.Response, error) {
	body := io.MultiReader(strings.NewReader("some bytes"), iotest.ErrReader(syscall.ENOSPC))
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body), Request: r}, nil
}

// TestDownloadToAFullDisk reports it, leaves nothing, and does not retry.
func TestDownloadToAFullDisk(t *testing.T) {
	t.Parallel()
	s := New(t.TempDir(), &http.Client{Transport: full{}})
	a := fleet.Artifact{Name: "tart", Source: "https://releases.acme.dev/tart", SHA256: sum(nil)}
	_, err := read(t, s, a)
	failed(t, err, syscall.ENOSPC, "artifact.tart: disk full: "+s.Cache)
	if got := cacheOf(s); got != "" {
		t.Errorf("the cache holds %s", got)
	}
}

// is returns an artifact's state on this machine, in one word.
func is(t *testing.T, s *Store, a fleet.Artifact) string {
	t.Helper()
	here, changed := s.State(t.Context(), a)
	return map[[2]bool]string{{true, false}: "here", {false, true}: "changed", {false, false}: "absent"}[[2]bool{here, changed}]
}
