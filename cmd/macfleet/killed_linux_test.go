package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/internal/app"
	"github.com/macfleet/macfleet/internal/runcheck"
	"github.com/macfleet/macfleet/internal/runlog"
)

// Seven commits kill an apply at each third line, and make matrix does at each line.
var (
	share       = flag.String("shard", cmp.Or(os.Getenv("MACFLEET_TEST_SHARD"), "0"), "kill an apply at share N (0 to 6) of its lines, or all")
	killedEvery = flag.Int("killed.every", 3, "kill an apply at each so-many-th line of what it says")
)

// killedAtLines returns the lines to kill at, all or a share of those that an apply prints.
func killedAtLines(t *testing.T, lines int) []int {
	t.Helper()
	const shares = 7
	mine, err := strconv.Atoi(*share)
	if *share != "all" && (err != nil || mine < 0 || mine >= shares) {
		t.Fatalf("-shard %s: write 0 to %d, or all", *share, shares-1)
	}
	var out []int
	for i, n := 0, 1; n < lines; i, n = i+1, n+*killedEvery {
		if *share == "all" || i%shares == mine {
			out = append(out, n)
		}
	}
	t.Logf("share %s of %d (-shard, MACFLEET_TEST_SHARD): after lines %v of %d", *share, shares, out, lines)
	return out
}

// TestKilledAnywhere kills processes by signal. Wherever that happens, the next plan reports the
// interrupted run, and the next apply converges to the same result as a run without a kill. The
// matrix of faults stops between two exact operations; here whole processes die, with their
// files, locks and connections.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	whole := newPlace(t)
	stdout, _ := whole.says(app.ExitDone, "apply", "--auto-approve", "--json")
	want, lines := whole.lasting(), strings.Count(stdout, "\n")
	var points, killed atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d points, %d interrupted", points.Load(), killed.Load())
		if killed.Load() == 0 {
			t.Error("no run was interrupted")
		}
	})
	for _, n := range killedAtLines(t, lines) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			points.Add(1)
			if p.killedAt(n) {
				killed.Add(1)
			}
			if got := p.lasting(); !slices.Equal(got, want) {
				t.Errorf("(-want +got)\n%s", gocmp.Diff(want, got))
			}
		})
	}
}

// killedAt kills an apply once it has printed n lines, then runs plan and apply. It returns
// false if the signal came before the record or after its end.
func (p place) killedAt(n int) bool {
	p.t.Helper()
	first := p.command(context.Background(), "apply", "--auto-approve", "--json", shortLock)
	out, err := first.StdoutPipe()
	if err == nil {
		err = first.Start()
	}
	must(p.t, err)
	one := make([]byte, 1) // reads no further: the process continues while its pipe has room
	for seen := 0; seen < n; {
		if _, err := out.Read(one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			p.t.Fatal(err)
		}
		if one[0] == '\n' {
			seen++
		}
	}
	must(p.t, first.Process.Signal(syscall.SIGKILL))
	_ = first.Wait() // the record says how it ended
	r, path := p.lastRecord()
	killed := path != "" && r.Outcome() == runlog.BrokeOff
	stdout, stderr := p.says(app.ExitDone, "plan")
	equal(p.t, strings.Contains(stderr, " was interrupted at "), killed, "killed after", n, "the next plan prints", stdout, stderr)
	stdout, _ = p.says(app.ExitDone, "apply", "--auto-approve")
	has(p.t, stdout, "6/6 hosts converged", "killed after", n, "the next apply says")
	p.says(app.ExitDone, "plan", "--detailed-exitcode")
	if stdout, _ := p.says(app.ExitDone, "lock", "status"); !strings.Contains(stdout, "not locked") {
		p.t.Errorf("killed after %d: %s", n, stdout)
	}
	if path != "" {
		for _, v := range runcheck.Violations(r) {
			p.t.Errorf("killed after %d: %s", n, v)
		}
	}
	return killed
}

// lastRecord reads the newest record, if there is one.
func (p place) lastRecord() (runlog.Record, string) {
	p.t.Helper()
	path, err := runlog.Find(filepath.Join(p.dir, "world", "runs"), runlog.Last)
	if err != nil {
		return runlog.Record{}, ""
	}
	r, err := runlog.Read(path)
	must(p.t, err)
	return r, path
}

// lasting is what runs leave permanently: the members and the files of the Macs. It omits
// notes about runs, and partial files of simulated tools and of new Macs, which died with
// the process.
func (p place) lasting() []string {
	p.t.Helper()
	stdout, _ := p.says(app.ExitDone, "hosts", "-o", "name")
	out := strings.Fields(stdout)
	root := filepath.Join(p.dir, "world", "macs")
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		short, _ := filepath.Rel(root, name)
		if err != nil || d.IsDir() || !strings.Contains(name, "/root/") || strings.HasPrefix(short, ".") ||
			strings.Contains(name, "/etc/macfleet/runs/") || strings.HasPrefix(d.Name(), ".new-") {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		out = append(out, fmt.Sprintf("%s %s", info.Mode(), regexp.MustCompile(`[0-9a-f]{32,}`).ReplaceAllString(short, "*")))
		return err
	})
	must(p.t, err)
	return out
}
