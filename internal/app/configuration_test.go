package app

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestWithin: what never ends is not waited for, and a Ctrl-C is heard meanwhile.
func TestWithin(t *testing.T) {
	t.Parallel()
	if v, err := within(t.Context(), ordinary, func() (int, error) { return 7, nil }); v != 7 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
	ends := make(chan int)
	defer close(ends) // the functions end with the test
	forEver := func() (int, error) { return <-ends, nil }
	if v, err := within(t.Context(), bounds{time: time.Millisecond}, forEver); v != 0 || !errors.Is(err, errTooLong) {
		t.Errorf("%d, %v", v, err)
	}
	stop, cancel := context.WithCancel(t.Context())
	cancel()
	if v, err := within(stop, ordinary, forEver); v != 0 || !errors.Is(err, errStopped) {
		t.Errorf("%d, %v", v, err)
	}
}

// TestWithinMemory: what fills the memory is given up.
func TestWithinMemory(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	_, err := within(t.Context(), bounds{time: time.Minute, memory: 32 << 20}, func() ([]byte, error) {
		all := make([]byte, 64<<20)
		<-ended
		return all, nil
	})
	close(ended)
	if !errors.Is(err, errTooMuch) {
		t.Errorf("error = %v", err)
	}
}

// TestFormatBounds: fmt ends at the first file that it gives up, since the work on it continues until the process ends. No file is changed.
func TestFormatBounds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names := []string{filepath.Join(dir, "a.fleet.hcl"), filepath.Join(dir, "b.fleet.hcl")}
	crooked := strings.Repeat("a   {\nb=1\n}\n", 10_000)
	for _, name := range names {
		must(t, os.WriteFile(name, []byte(crooked), 0o600))
	}
	var out, problems bytes.Buffer
	env := &Env{Streams: Streams{In: strings.NewReader(""), Out: &out, Err: &problems}, stop: t.Context(), Call: Call{Args: names},
		reading: bounds{time: time.Nanosecond}}
	err := Format(env, FormatOptions{})
	if !errors.Is(err, errTooLong) || !strings.Contains(err.Error(), names[0]) || out.Len()+problems.Len() > 0 {
		t.Errorf("error = %v, said %q and %q", err, out.String(), problems.String())
	}
	for _, name := range names {
		if text, err := os.ReadFile(name); err != nil || string(text) != crooked {
			t.Errorf("%s is changed, %v", name, err)
		}
	}
}

// TestReadingBounds: a configuration that is given up is an error that says what it took.
func TestReadingBounds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "a.fleet.hcl"), []byte("locals {\n"+strings.Repeat("  t = upper(1)\n", 20_000)+"}\n"), 0o600))
	env := &Env{stop: t.Context(), Global: Global{Dir: dir}, reading: bounds{time: time.Nanosecond}}
	if config, _, err := env.read(reading{}); config != nil || !errors.Is(err, errTooLong) || !strings.Contains(err.Error(), "more than 1ns") {
		t.Errorf("config %v, error = %v", config, err)
	}
	err := ordinary.explain(errTooMuch, "a.fleet.hcl line 3")
	if want := "it takes too much memory, more than 1024 MiB; shorten the expression on a.fleet.hcl line 3"; err.Error() != want {
		t.Errorf("error = %v", err)
	}
}
