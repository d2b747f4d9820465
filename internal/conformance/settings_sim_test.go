package conformance_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/internal/conformance"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// simulatedOwner is a simulated Mac that may be disrupted.
func simulatedOwner(t *testing.T) (*mac.Machine, owned) {
	t.Helper()
	_, key := newKey(t)
	m := newMac(t, func(f *mac.Factory) { f.AuthorizedKeys = []string{string(ssh.MarshalAuthorizedKey(key.PublicKey()))} })
	return m, owned{user: "m1", key: key, hostKey: ssh.InsecureIgnoreHostKey(), words: []string{"m1"}, begins: func(string) {}, builds: [2][]byte{[]byte("\xcf\xfa build=1\n"), []byte("\xcf\xfa build=2\n")},
		dial: func(ctx context.Context) (net.Conn, error) {
			return serveOnce(t, func(conn *net.TCPConn) { _ = m.Serve(context.Background(), conn, func(string) {}) })(ctx, "tcp", "")
		}}
}

// TestExperiments runs the experiments on a simulated Mac: all expectations hold, and nothing is left behind.
func TestExperiments(t *testing.T) {
	t.Parallel()
	m, o := simulatedOwner(t)
	unchanged := listed(t, m)
	if ran := o.fitting(t, "").ran(); ran < 8 {
		t.Errorf("only %d rows were run", ran)
	}
	unchanged()
}

// fitting runs the experiments, of which those of a name, or all, must be as expected.
func (o owned) fitting(t *testing.T, name string) findings {
	t.Helper()
	r, err := o.experiment(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.verdicts {
		if v.NotRun == "" && !v.Fits && (name == "" || v.Experiment == name) {
			t.Errorf("%s: %s is %q\n%s", v.Experiment, v.Key, v.Value, r.output[v.Experiment])
		}
	}
	return r
}

// ran counts the rows that were run.
func (r findings) ran() (n int) {
	for _, v := range r.verdicts {
		if v.NotRun == "" {
			n++
		}
	}
	return n
}

// withAVM gives a simulated Mac Tart, a session and a virtual machine.
func withAVM(t *testing.T, m *mac.Machine) {
	t.Helper()
	const bundle = "/usr/local/lib/tart.app/Contents/"
	for name, text := range map[string]string{bundle + "MacOS/tart": "program=tart\nversion=2.32.1\n", bundle + "Info.plist": "x", bundle + "embedded.provisionprofile": "x",
		bundle + "_CodeSignature/CodeResources": "x", "/usr/local/bin/tart": "#!/bin/sh\nexec " + bundle + "MacOS/tart \"$@\"\n"} {
		if err := m.WriteFile(name, []byte(text), 0, 0, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(m.LogIn(), m.AddVM("base")); err != nil {
		t.Fatal(err)
	}
}

// TestExperimentsWithAVM runs them on a simulated Mac with Tart, a session and a virtual machine, which stays unchanged.
func TestExperimentsWithAVM(t *testing.T) {
	t.Parallel()
	m, o := simulatedOwner(t)
	withAVM(t, m)
	o.vm = "base"
	if r := o.fitting(t, ""); r.ran() != len(r.verdicts) {
		t.Errorf("not all rows were run:\n%s", r.text())
	}
	if all, err := m.VMs(); err != nil || len(all) != 1 || all[0].Name != "base" {
		t.Errorf("virtual machines %+v, %v", all, err)
	}
}

// TestExperimentsRefused checks that a member of a fleet is not touched without ANYWAY=1.
func TestExperimentsRefused(t *testing.T) {
	t.Parallel()
	m, o := simulatedOwner(t)
	if err := m.WriteFile("/etc/macfleet/host.json", []byte("{}"), 0, 0, 0o644); err != nil {
		t.Fatal(err)
	}
	unchanged := listed(t, m)
	if _, err := o.experiment(t.Context()); err == nil || !strings.Contains(err.Error(), "ANYWAY=1") {
		t.Errorf("got %v", err)
	}
	unchanged()
}

// TestExperimentsInterrupted checks that an interrupted run reverts the experiments so far.
func TestExperimentsInterrupted(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"pf", "swap", "loginwindow"} {
		m, o := simulatedOwner(t)
		unchanged := listed(t, m)
		ctx, cancel := context.WithCancel(t.Context())
		o.begins = func(name string) {
			if name == at {
				cancel()
			}
		}
		if _, err := o.experiment(ctx); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "still has changes") {
			t.Errorf("%s: %v", at, err)
		}
		cancel()
		unchanged()
	}
}

// TestExperimentsKilled kills an experiment before each tool that changes something: the changes are
// reverted. If the revert is killed too, the error reports it, and a second revert succeeds.
func TestExperimentsKilled(t *testing.T) {
	t.Parallel()
	again := 0
	for n := 0; ; n++ {
		m, o := simulatedOwner(t)
		unchanged, begun := listed(t, m), false
		o.begins = func(string) {
			if !begun {
				m.InterruptAfter(n, mac.Killed)
			}
			begun = true
		}
		_, err := o.experiment(t.Context())
		if !m.Interrupted() {
			if n-again < 20 || err != nil {
				t.Errorf("killed at %d places, %d of them during the revert; without a kill: %v", n, again, err)
			}
			return
		}
		if err == nil {
			t.Errorf("killed before tool %d, but there is no error", n)
		} else if strings.Contains(err.Error(), "still has changes") {
			again++
			if err := o.restore(); err != nil {
				t.Errorf("killed before tool %d, and then %v", n, err)
			}
		}
		unchanged()
	}
}

// TestExperimentsContinue checks an experiment whose connection breaks: it continues, as on a Mac. It
// receives a stop, exits at its next step, and only then is reverted.
func TestExperimentsContinue(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ experiment, held, next string }{
		{"pf", "pfctl -E", ""},
		{"swap", "launchctl bootstrap system /Library/LaunchDaemons/dev.macfleet.conformance.plist", "launchctl kickstart -k system/dev.macfleet.conformance"},
		{"swap", "launchctl kickstart -k system/dev.macfleet.conformance", "launchctl bootstrap system /Library/LaunchDaemons/dev.macfleet.conformance.plist"},
		{"loginwindow", "launchctl kickstart -k system/com.apple.loginwindow", ""},
	} {
		m, o := simulatedOwner(t)
		unchanged := listed(t, m)
		held, stops := make(chan struct{}), make(chan struct{})
		var mu sync.Mutex
		var tools []string // since it was paused
		m.Watch(func(argv []string, _ map[string]string) {
			line := strings.Join(argv, " ")
			mu.Lock()
			first := len(tools) == 0 && line == tc.held && !m.InterruptPending()
			if first || len(tools) > 0 {
				tools = append(tools, line)
			}
			stopping := len(tools) > 1 && line == "sleep 3" && !closed(stops)
			if stopping { // restore.sh waits for the experiment to stop
				close(stops)
			}
			mu.Unlock()
			if first {
				close(held)
				<-stops
			}
		})
		o.begins = func(name string) {
			if name == tc.experiment {
				m.InterruptAfter(0, mac.ConnectionBreaks)
			}
		}
		dial, dials := o.dial, 0
		o.dial = func(ctx context.Context) (net.Conn, error) {
			if dials++; dials > 2 { // for the revert at the end; the first two are for the run and for the revert at its start
				<-held
			}
			return dial(ctx)
		}
		if _, err := o.experiment(t.Context()); err == nil || strings.Contains(err.Error(), "still has changes") {
			t.Errorf("%s: %v", tc.held, err)
		}
		mu.Lock()
		if tc.next != "" && slices.Contains(tools[1:], tc.next) {
			t.Errorf("%s: the experiment continued: %q", tc.held, tools)
		}
		mu.Unlock()
		unchanged()
	}
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// listed returns a function that compares a Mac's files, jobs and pf references with those of now.
func listed(t *testing.T, m *mac.Machine) (unchanged func()) {
	t.Helper()
	before := listing(t, m.Root())
	return func() {
		t.Helper()
		if diff := cmp.Diff(before, listing(t, m.Root())); diff != "" {
			t.Errorf("files (-before +after):\n%s", diff)
		}
		if err := m.Advance(time.Minute); err != nil { // a job that was booted out needs seconds to exit
			t.Fatal(err)
		}
		if got := as(t, m, "launchctl list | grep -c macfleet.conformance || :; pfctl -s References 2>/dev/null | grep -c pfctl || :"); got != "0\n0\n" {
			t.Errorf("left are jobs and references: %q", got)
		}
	}
}

// as runs a script as root on a simulated Mac.
func as(t *testing.T, m *mac.Machine, script string) string {
	t.Helper()
	got, err := m.Run(t.Context(), "root", script)
	if err != nil || got.Exit != 0 {
		t.Fatalf("%s: %s, %v", script, got.Stderr, err)
	}
	return string(got.Stdout)
}

// TestExperimentsLeavePF checks that pf has its former state afterwards: releasing the last reference
// disables a pf that was enabled without one.
func TestExperimentsLeavePF(t *testing.T) {
	t.Parallel()
	for enable, state := range map[string]string{"pfctl -d; pfctl -e": "Enabled", "pfctl -d; pfctl -E": "Enabled", "pfctl -d": "Disabled"} {
		m, o := simulatedOwner(t)
		withAVM(t, m)
		o.vm = "base"
		as(t, m, enable)
		o.fitting(t, "pf")
		if got := as(t, m, "pfctl -s info 2>/dev/null | head -n 1"); !strings.HasPrefix(got, "Status: "+state) {
			t.Errorf("%s: pf does not have its former state: %s", enable, got)
		}
	}
}

// TestJudgeExperiment checks that every row can differ.
func TestJudgeExperiment(t *testing.T) {
	t.Parallel()
	for _, e := range conformance.Experiments() {
		got := conformance.JudgeExperiment(e, conformance.Result{Stdout: "on before: Enabled\non afterwards: Disabled\nkickstart after a swap: other\nthe last reference gone: Enabled\n"})
		for _, v := range got {
			if v.Fits {
				t.Errorf("%s: %s accepts %q", e.Name, v.Key, v.Value)
			}
		}
	}
	pf := conformance.Experiments()[0]
	for before, after := range map[string]string{"Enabled": "Enabled", "Disabled": "Disabled"} {
		for _, v := range conformance.JudgeExperiment(pf, conformance.Result{Stdout: "on before: " + before + "\non afterwards: " + after + "\n"}) {
			if v.Key == "on afterwards" && !v.Fits {
				t.Errorf("%s before and after is refused", before)
			}
		}
	}
}

// TestExperimentsRestored checks that what an aborted run left is removed by the next run or by hand.
func TestExperimentsRestored(t *testing.T) {
	t.Parallel()
	m, o := simulatedOwner(t)
	unchanged := listed(t, m)
	as(t, m, `mkdir -p /usr/local/lib/macfleet-conformance && cd /usr/local/lib/macfleet-conformance && echo x >daemon && chmod 755 daemon &&
pfctl -E 2>&1 | grep Token | tr -dc 0-9 >token && echo x >/Library/LaunchDaemons/dev.macfleet.conformance.plist`)
	if err := o.restore(); err != nil {
		t.Fatal(err)
	}
	unchanged()
}
