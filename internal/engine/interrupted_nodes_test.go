package engine_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/agent"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

var errBroken = errors.New("the line to the cluster broke")

// victim is a Mac that is, or becomes, a Node, and is interrupted meanwhile.
type victim struct {
	world   *sandbox.World
	dir     string
	engine  *engine.Engine
	spec    *fleet.Spec
	machine *mac.Machine
	patient engine.Hosts // for which no clock runs ahead
	hurried engine.Hosts
}

// victimIn finds the Mac of a world that is a member, and an engine that makes a Node of it.
func victimIn(t *testing.T, dir string) *victim {
	t.Helper()
	v := victimOf(t, dir)
	v.is(t, member(t, v.world))
	return v
}

// victimOf is a world without a victim yet.
func victimOf(t *testing.T, dir string) *victim {
	t.Helper()
	v := &victim{dir: dir, world: opened(t, dir)}
	c := nodes(1)
	v.spec, v.engine = &c.Fleets[0].Groups[0].Spec, runNodes(t, v.world, c)
	return v
}

// is names the Mac that is interrupted.
func (v *victim) is(t *testing.T, host string) {
	t.Helper()
	var err error
	if v.machine, err = v.world.Mac(host); err != nil {
		t.Fatal(err)
	}
	v.patient, v.hurried = v.engine.Hosts, overtaken(t, v.world, v.machine)
}

// interruption hits a run on a host after n others of its kind, and reports whether it fell.
type interruption func(v *victim, n int) (fell func() bool)

// interruptions are what may hit a run on a host. TestFaultMatrix has what hits calls of the cluster.
func interruptions() map[string]interruption {
	return map[string]interruption{"the line breaks": onHost(mac.ConnectionBreaks), "killed": onHost(mac.Killed)}
}

// onHost interrupts on the Mac, or on the way to it.
func onHost(kind mac.Interruption) interruption {
	return func(v *victim, n int) func() bool {
		v.engine.Hosts = v.hurried
		v.machine.InterruptAfter(n, kind)
		return func() bool { v.engine.Hosts = v.patient; return v.machine.Interrupted() }
	}
}

// interruptedAt applies what is configured with an interruption, and once more if it fell: then all
// is as want says, and nothing exists twice.
func (v *victim) interruptedAt(t *testing.T, n int, interruption interruption, want []string) bool {
	t.Helper()
	v.later(t)
	p := planned(t, v.engine)
	fell := interruption(v, n)
	r, err := applying(t, t.Context(), v.engine, p)
	if !fell() {
		if err != nil || !r.Converged() {
			t.Errorf("not interrupted after %d: %v, failures %+v", n, err, r.Failures)
		}
		return false
	}
	if r := apply(t, v.engine); !r.Converged() {
		t.Errorf("interrupted after %d: %q is left, failures %+v", n, codesOf(r.After, r.After.Hosts[0].Name), r.Failures)
	}
	if got := v.remains(t); want != nil && !slices.Equal(got, want) {
		t.Errorf("interrupted after %d: (-want +got)\n%s", n, cmp.Diff(want, got))
	}
	if v.spec.TartKubelet != nil {
		v.freshProcess(t, n)
	} else if all, err := v.machine.Kubelets(); err != nil || slices.ContainsFunc(all, agent.Kubelet.Runs) {
		t.Errorf("interrupted after %d: %v, and of kubelets there are %+v", n, err, all)
	}
	return true
}

// later lets time pass on the host: its files tell only the second of a change.
func (v *victim) later(t *testing.T) {
	t.Helper()
	must(t, v.machine.Advance(2*time.Second))
}

// freshProcess finds one kubelet, which was started after all that it runs from was
// last changed: equal files below an old process are not a verification.
func (v *victim) freshProcess(t *testing.T, n int) {
	t.Helper()
	all, err := v.machine.Kubelets()
	must(t, err)
	all = slices.DeleteFunc(all, func(k agent.Kubelet) bool { return !k.Runs() })
	if len(all) != 1 || all[0].Version != v.spec.TartKubelet.Artifact.Version || all[0].MaxPods != *v.spec.TartKubelet.MaxPods {
		t.Errorf("interrupted after %d: these kubelets run: %+v", n, all)
		return
	}
	const files = "/usr/local/bin/tart-kubelet /Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist /etc/tart-kubelet/kubeconfig"
	at := func(layout, text string) time.Time {
		when, err := time.Parse(layout, strings.TrimSpace(text))
		must(t, err)
		return when
	}
	started, changes, _ := strings.Cut(runs(t, v.machine, "root", fmt.Sprintf("ps -o lstart= -p %d; stat -f '%%Sc|%%N' %s", all[0].PID, files)), "\n")
	for line := range strings.Lines(changes) {
		if changed, name, _ := strings.Cut(line, "|"); at("Jan _2 15:04:05 2006", changed).After(at(time.ANSIC, started)) {
			t.Errorf("interrupted after %d: %s was changed at %s, and its process is from %s", n, name, changed, started)
		}
	}
}

// remains lists what exists: the host's files, what launchd has of macfleet, and the cluster's objects.
func (v *victim) remains(t *testing.T) []string {
	t.Helper()
	out := remains(t, v.machine.Root())
	for _, folder := range []string{"usr/local", "private/var/log", "private/var/lib"} {
		out = append(out, listed(t, v.machine.Root(), folder, true)...)
	}
	said, err := v.machine.Run(t.Context(), "root", "launchctl list | awk '{ print $3 }' | grep macfleet | sort; tart --version")
	must(t, err)
	out = append(out, strings.Split(string(said.Stdout), "\n")...)
	return append(out, listed(t, v.dir, "kubernetes", false)...)
}

// listed lists the files of a folder, with what each says that is the same in every run.
func listed(t *testing.T, root, folder string, content bool) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		var text []byte
		if content && d.Type().IsRegular() && !strings.HasSuffix(name, ".log") {
			if text, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		if strings.HasSuffix(name, ".receipt") { // all but when it was, and the inode
			text, _, _ = bytes.Cut(text, []byte("\nfile "))
		}
		if strings.HasSuffix(name, ".bundle") { // so here: kind, owner, mode, digest and name are left
			text = stamps.ReplaceAll(text, []byte("$1"))
		}
		out = append(out, fmt.Sprintf("%s %.4x", name, sha256.Sum256(text)))
		return nil
	})
	must(t, err)
	return out
}

// stamps are the inode, size and time of an entry in the note of an unpacked bundle.
var stamps = regexp.MustCompile(`(?m)^([a-z]) [0-9]+ [0-9]+ [0-9]+`)

// TestJoinInterrupted interrupts a first join anywhere: at each tool on the host that may
// change something, and at each command.
func TestJoinInterrupted(t *testing.T) {
	t.Parallel()
	joiner := func(t *testing.T) *victim { return victimIn(t, prepared(t, 3, hostCore("production", 1))) }
	clean := joiner(t)
	converges(t, clean.engine)
	want := clean.remains(t)
	eachInterruption(t, 2, func(t *testing.T, n int, interruption interruption) bool {
		return joiner(t).interruptedAt(t, n, interruption, want)
	})
}

// eachInterruption lets each interruption fall at one place after the other, in parallel shares. at reports whether it fell.
func eachInterruption(t *testing.T, shares int, at func(t *testing.T, n int, interruption interruption) bool) {
	t.Helper()
	for name, interruption := range interruptions() {
		for first := range shares {
			parallel(t, fmt.Sprintf("%s, share %d", name, first), func(t *testing.T) {
				everywhere(t, first, shares, func(t *testing.T, n int) bool { return at(t, n, interruption) })
			})
		}
	}
}

// everywhere interrupts at a share of the places, until no interruption falls any more.
func everywhere(t *testing.T, share, shares int, at func(t *testing.T, n int) bool) {
	t.Helper()
	first, step := interruptionsOf(t, share, shares)
	for n := first; ; n += step {
		fell := false
		t.Run(fmt.Sprint(n), func(t *testing.T) { fell = at(t, n) }) // which closes what it has opened
		if !fell {
			if n == 0 {
				t.Error("no interruption fell")
			}
			return
		}
		if n > 1000 {
			t.Fatal("there is no end")
		}
	}
}

// TestRollInterrupted interrupts rolls anywhere: of the kubelet, of tart, of what the kubelet
// is given. A Mac is rolled to and fro between two versions.
func TestRollInterrupted(t *testing.T) {
	t.Parallel()
	rolls, kinds := slices.Sorted(maps.Keys(rollsOf())), slices.Sorted(maps.Keys(interruptions()))
	for _, row := range pairs(t, len(rolls), len(kinds)) {
		roll, kind := rolls[row[0]], kinds[row[1]]
		parallel(t, roll+", "+kind, func(t *testing.T) {
			rollsInterrupted(t, rollsOf()[roll], interruptions()[kind])
		})
	}
}

func rollsInterrupted(t *testing.T, configure func(*fleet.Spec, bool), interruption interruption) {
	t.Helper()
	v := victimIn(t, prepared(t, 3, nodes(1)))
	second, want := true, map[bool][]string{}
	for range 3 { // the first knows no version from before
		configure(v.spec, second)
		converges(t, v.engine)
		want[second] = v.remains(t)
		second = !second
	}
	everywhere(t, 0, 1, func(t *testing.T, n int) bool {
		configure(v.spec, second)
		second = !second
		return v.interruptedAt(t, n, interruption, want[!second])
	})
}
