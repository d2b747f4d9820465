package mac

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const rounds = 25

// counting adds one to a number in a file under a lock of the machine, and to its settings under the
// tools' lock only.
func counting(name string, round int) string {
	return fmt.Sprintf(`while ! mkdir /tmp/lock 2>/dev/null; do sleep 0.001; done
n=$(cat /tmp/n 2>/dev/null); echo $((n + 1)) >/tmp/n; rmdir /tmp/lock
f=$(mktemp /etc/p.XXXXXX) && chmod 0640 "$f" && defaults write /Library/Preferences/p %s%d -int 1`, name, round)
}

// workOn is the other process.
func workOn(dir string) int {
	m, err := Open(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if os.Getenv(otherWork) == "kick" {
		if err := kickOften(context.Background(), m); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	for round := range rounds {
		r, err := m.Run(context.Background(), "root", counting("other", round))
		if err != nil || r.Exit != 0 || len(r.Stderr) > 0 {
			fmt.Fprintf(os.Stderr, "exit %d, %s, %v\n", r.Exit, r.Stderr, err)
			return 1
		}
	}
	return 0
}

func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		other := osexec.CommandContext(t.Context(), os.Args[0])
		other.Env = append(os.Environ(), otherProcess+"="+filepath.Dir(m.Root()))
		if out, err := other.CombinedOutput(); err != nil {
			t.Errorf("the other process: %v\n%s", err, out)
		}
	})
	for round := range rounds {
		must(t, m, "root", counting("own", round))
	}
	wg.Wait()
	got := must(t, m, "root", "cat /tmp/n; stat -f %Lp /etc/p.* | uniq -c; grep -c '<key>' /Library/Preferences/p.plist")
	equal(t, got, fmt.Sprintf("%d\n  %d 640\n%d\n", 2*rounds, 2*rounds, 2*rounds))
}

// TestSpool checks that a process's input is complete, below and above the size of a pipe.
func TestSpool(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 4095, 4096, 4097, 100_000} {
		text := strings.Repeat("x", size)
		file, err := spool(strings.NewReader(text))
		ok(t, err)
		if size == 0 {
			if file != nil {
				t.Error("an empty stream became a file")
			}
			continue
		}
		got, err := io.ReadAll(file)
		if err = errors.Join(err, file.Close()); err != nil || string(got) != text {
			t.Errorf("of %d bytes %d arrived: %v", size, len(got), err)
		}
	}
}
