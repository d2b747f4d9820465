package store_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type value struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "value.json")
	want := value{"<acme>", 7}
	if err := store.WriteJSON(path, want); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if text := "{\n  \"name\": \"<acme>\",\n  \"count\": 7\n}\n"; err != nil || string(data) != text {
		t.Errorf("the file holds %q, want %q (%v)", data, text, err)
	}
	var got value
	if err := store.ReadJSON(path, &got); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := store.ReadJSON(path+".none", &got); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestFaultsNameFileAndLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "value.json")
	for text, want := range map[string]string{
		"":                        ":1:",
		"{\n\"name\": \"a\",\n,}": ":3:",
		"{\n\"name\": 7}":         ":2:",
		"{\n\n\"nmae\": \"a\"\n}": "nmae",
		"{\"name\": \"a\"}\n{}":   ":2:",
		"{\"name\": \"a\", \"count\": \"\\u0000\"": path,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := store.ReadJSON(path, &value{})
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %s", text, err, want)
		}
	}
}

func TestFailedWriteLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "value.json")
	if err := os.MkdirAll(filepath.Join(path, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := store.WriteJSON(path, value{}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a write over a folder: %v", err)
	}
	if err := store.WriteJSON(path, func() {}); err == nil {
		t.Error("a function became JSON")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v %v", entries, err)
	}
	if err := store.WriteJSON(filepath.Join(dir, "none", "value.json"), value{}); err == nil {
		t.Error("a write into a missing folder")
	}
}

// TestLockExcludes counts with two lockers of one file, which stand for two processes.
func TestLockExcludes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	counter := filepath.Join(dir, "counter.json")
	if err := store.WriteJSON(counter, value{}); err != nil {
		t.Fatal(err)
	}
	lockers := []*store.Locker{store.NewLocker(filepath.Join(dir, "lock")), store.NewLocker(filepath.Join(dir, "lock"))}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for range 25 {
				unlock, err := lockers[i%2].Lock()
				if err != nil {
					t.Error(err)
					return
				}
				var v value
				err = store.ReadJSON(counter, &v)
				v.Count++
				err = errors.Join(err, store.WriteJSON(counter, v))
				unlock()
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	var v value
	if err := store.ReadJSON(counter, &v); err != nil || v.Count != 200 {
		t.Errorf("counted %d, want 200 (%v)", v.Count, err)
	}
	if _, err := store.NewLocker(filepath.Join(dir, "none", "lock")).Lock(); err == nil {
		t.Error("a lock in a missing folder")
	}
}
