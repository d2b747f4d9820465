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

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/internal/conformance"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// simulatedOwner is a simulated Mac that may be disturbed.
func simulatedOwner(t *testing.T) (*mac.Machine, owned) {
	t.Helper()
	_, key := newKey(t)
	m := newMac(t, func(f *mac.Factory) {
		f.AuthorizedKeys = []string{string(ssh.MarshalAuthorizedKey(key.PublicKey()))}
	})
	return m, owned{user: "m1", key: key, hostKey: ssh.InsecureIgnoreHostKey(), words: []string{"m1"}, begins: func(string) {}, builds: [2][]byte{[]byte("\xcf\xfa build=1\n"), []byte("\xcf\xfa build=2\n")},
		dial: func(ctx context.Context) (net.Conn, error) {
			return serveOnce(t, func(conn *net.TCPConn) { _ = m.Serve(context.Background(), conn, func(string) {}) })(ctx, "tcp", "")
		}}
}

// TestExperiments runs the experiments on a simulated Mac: all of them hold there, and nothing is left.
func TestExperiments(t *testing.T) {
	t.Parallel()
	m, o := simulatedOwner(t)
	before := listing(t, m.Root())
	r, err := o.experiment(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, v := range r.verdicts {
		if v.NotRun == "" {
			ran++
			if !v.Fits {
				t.Errorf("%s: %s is %q\n%s", v.Experiment, v.Key, v.Value, r.output[v.Experiment])
			}
		}
	}
	if ran < 8 {
		t.Errorf("only %d rows were run\n%s", ran, r.text())
	}
	if after := listing(t, m.Root()); after != before {
		t.Errorf("something is left behind:\n%s", after)
	}
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

// TestExperimentsWithAVM runs them on a simulated Mac with Tart, a session and a virtual machine, which is left as it was.
func TestExperimentsWithAVM(t *testing.T) {
	t.Parallel()
	m, o := simulatedOwner(t)
	withAVM(t, m)
	o.vm = "base"
	r, err := o.experiment(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.verdicts {
		if v.NotRun != "" || !v.Fits {
			t.Errorf("%s: %s is %q %s\n%s", v.Experiment, v.Key, v.Value, v.NotRun, r.output[v.Experiment])
		}
	}
	if all, err := m.VMs(); err != nil || len(all) != 1 || all[0].Name != "base" {
		t.Errorf("virtual machines %+v, %v", all, err)
	}
}

// TestExperimentsRefused: a Mac of a fleet is left alone unless somebody says so.
func TestExperimentsRefused(t *testing.T) {
	t.Parallel()
	m, o := simulatedOwner(t)
	if err := m.WriteFile("/etc/macfleet/host.json", []byte("{}"), 0, 0, 0o644); err != nil {
		t.Fatal(err)
	}
	before := listing(t, m.Root())
	if _, err := o.experiment(t.Context()); err == nil || !strings.Contains(err.Error(), "ANYWAY=1") {
		t.Errorf("got %v", err)
	}
	if after := listing(t, m.Root()); after != before {
		t.Errorf("something was changed:\n%s", after)
	}
}

// TestExperimentsInterrupted: a run that is interrupted before an experiment takes back what the ones before have made.
func TestExperimentsInterrupted(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"pf", "swap", "loginwindow"} {
		m, o := simulatedOwner(t)
		before := listing(t, m.Root())
		ctx, cancel := context.WithCancel(t.Context())
		o.begins = func(name string) {
			if name == at {
				cancel()
			}
		}
		if _, err := o.experiment(ctx); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "still there") {
			t.Errorf("%s: %v", at, err)
		}
		cancel()
		nothingLeft(t, m, before)
	}
}

// TestExperimentsKilled: an experiment that is killed before any of the tools that change something is taken back. Where
// that itself is killed, the error says so, and doing it again helps.
func TestExperimentsKilled(t *testing.T) {
	t.Parallel()
	again := 0
	for n := 0; ; n++ {
		m, o := simulatedOwner(t)
		before, begun := listing(t, m.Root()), false
		o.begins = func(string) {
			if !begun {
				m.StrikeAfter(n, mac.Killed)
			}
			begun = true
		}
		_, err := o.experiment(t.Context())
		if !m.Struck() {
			if n-again < 20 || err != nil {
				t.Errorf("killed at %d places, %d of them while all was taken back; undisturbed: %v", n, again, err)
			}
			return
		}
		if err == nil {
			t.Errorf("killed before tool %d, and no error", n)
		} else if strings.Contains(err.Error(), "still there") {
			again++
			if err := o.restore(); err != nil {
				t.Errorf("killed before tool %d, and then %v", n, err)
			}
		}
		nothingLeft(t, m, before)
	}
}

// TestExperimentsGoOn: an experiment whose connection broke goes on, as on a Mac. It is told to stop, ends at its next
// step, and only then is taken back.
func TestExperimentsGoOn(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ experiment, held, next string }{
		{"pf", "pfctl -E", ""},
		{"swap", "launchctl bootstrap system /Library/LaunchDaemons/dev.macfleet.conformance.plist", "launchctl kickstart -k system/dev.macfleet.conformance"},
		{"swap", "launchctl kickstart -k system/dev.macfleet.conformance", "launchctl bootstrap system /Library/LaunchDaemons/dev.macfleet.conformance.plist"},
		{"loginwindow", "launchctl kickstart -k system/com.apple.loginwindow", ""},
	} {
		m, o := simulatedOwner(t)
		before := listing(t, m.Root())
		held, stops := make(chan struct{}), make(chan struct{})
		var mu sync.Mutex
		var tools []string // since it was held
		m.Watch(func(argv []string, _ map[string]string) {
			line := strings.Join(argv, " ")
			mu.Lock()
			first := len(tools) == 0 && line == tc.held && !m.StrikeArmed()
			if first || len(tools) > 0 {
				tools = append(tools, line)
			}
			told := len(tools) > 1 && line == "sleep 3" && !closed(stops)
			if told { // restore.sh waits: it has told the experiment to stop
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
				m.StrikeAfter(0, mac.LineBreaks)
			}
		}
		dial, dials := o.dial, 0
		o.dial = func(ctx context.Context) (net.Conn, error) {
			if dials++; dials > 2 { // to take all back; before that, to run them and to take back what an earlier run left
				<-held
			}
			return dial(ctx)
		}
		if _, err := o.experiment(t.Context()); err == nil || strings.Contains(err.Error(), "still there") {
			t.Errorf("%s: %v", tc.held, err)
		}
		mu.Lock()
		if tc.next != "" && slices.Contains(tools[1:], tc.next) {
			t.Errorf("%s: it went on: %q", tc.held, tools)
		}
		mu.Unlock()
		nothingLeft(t, m, before)
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

// nothingLeft compares a Mac's files, jobs and references of pf with what they were.
func nothingLeft(t *testing.T, m *mac.Machine, before string) {
	t.Helper()
	if after := listing(t, m.Root()); after != before {
		known := strings.Split(before, "\n")
		for line := range strings.Lines(after) {
			if name, _, _ := strings.Cut(line, " "); !slices.Contains(known, strings.TrimSuffix(line, "\n")) {
				t.Errorf("left behind or changed: %s", name)
			}
		}
		if len(after) < len(before) {
			t.Error("files are missing")
		}
	}
	if err := m.Advance(time.Minute); err != nil { // a job that was booted out needs seconds to end
		t.Fatal(err)
	}
	if got := as(t, m, "launchctl list | grep -c macfleet.conformance || :; pfctl -s References 2>/dev/null | grep -c pfctl || :"); got != "0\n0\n" {
		t.Errorf("left are jobs and references: %q", got)
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

// TestExperimentsLeavePF: pf that was enabled without a reference goes off with the last one. It is as before afterwards.
func TestExperimentsLeavePF(t *testing.T) {
	t.Parallel()
	for enable, state := range map[string]string{"pfctl -d; pfctl -e": "Enabled", "pfctl -d; pfctl -E": "Enabled", "pfctl -d": "Disabled"} {
		m, o := simulatedOwner(t)
		withAVM(t, m)
		o.vm = "base"
		as(t, m, enable)
		r, err := o.experiment(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range r.verdicts {
			if v.Experiment == "pf" && !v.Fits {
				t.Errorf("%s: %s: %s is %q", enable, v.Experiment, v.Key, v.Value)
			}
		}
		if got := as(t, m, "pfctl -s info 2>/dev/null | head -n 1"); !strings.HasPrefix(got, "Status: "+state) {
			t.Errorf("%s: pf is not as it was: %s", enable, got)
		}
	}
}

// TestJudgeExperiment: a row that cannot differ says nothing.
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

// TestExperimentsRestored: what a run made that was cut off goes with the next one's beginning, or by hand.
func TestExperimentsRestored(t *testing.T) {
	t.Parallel()
	m, o := simulatedOwner(t)
	before := listing(t, m.Root())
	_, err := m.Run(t.Context(), "root", `mkdir -p /usr/local/lib/macfleet-conformance && cd /usr/local/lib/macfleet-conformance && echo x >daemon && chmod 755 daemon &&
pfctl -E 2>&1 | grep Token | tr -dc 0-9 >token && echo x >/Library/LaunchDaemons/dev.macfleet.conformance.plist`)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.restore(); err != nil {
		t.Fatal(err)
	}
	if after := listing(t, m.Root()); after != before {
		t.Errorf("something is left behind:\n%s", after)
	}
	got, err := m.Run(t.Context(), "root", "pfctl -s References 2>/dev/null | grep -c pfctl || true")
	if err != nil || strings.TrimSpace(string(got.Stdout)) != "0" {
		t.Errorf("references: %s, %v", got.Stdout, err)
	}
}
