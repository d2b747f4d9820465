package conformance_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

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

// TestExperimentsInterrupted: what was made until then is taken back.
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
		if after := listing(t, m.Root()); after != before {
			t.Errorf("%s: something is left behind:\n%s", at, after)
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
