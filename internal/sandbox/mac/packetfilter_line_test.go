package mac

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"
)

// cutLine returns a machine with a loaded anchor and an armed cut, and a function that runs a command
// over its connection.
func cutLine(t *testing.T, reboot bool) (*Machine, func(line string) (string, error)) {
	t.Helper()
	m, client := login(t, &events{})
	must(t, m, "root", acme+"block; pfctl -f /etc/pf.conf")
	if err := m.ArmCut(reboot); err != nil {
		t.Fatal(err)
	}
	return m, func(line string) (string, error) {
		session, err := client.NewSession()
		if err != nil {
			return "", err
		}
		out, err := session.Output(line)
		return string(out), err
	}
}

const (
	otherRules = `echo 'block drop quick all' | sudo pfctl -q -a acme -f - 2>/dev/null`
	oldRules   = "sudo pfctl -a acme -f /etc/pf.anchors/acme"
)

func reachable(t *testing.T, m *Machine) bool {
	t.Helper()
	ok, err := m.Reachable()
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func TestRulesCutTheLine(t *testing.T) {
	t.Parallel()
	m, exec := cutLine(t, false)
	if out, err := exec(oldRules + " 2>/dev/null; echo there"); err != nil || out != "there\n" {
		t.Fatalf("the same rules: %q, %v", out, err)
	}
	if out, err := exec("echo 'pass all' | sudo pfctl -a acme -f - 2>/dev/null; echo there"); err != nil || out != "there\n" {
		t.Fatalf("rules that block nothing: %q, %v", out, err)
	}
	if out, err := exec(otherRules + "; echo lost; set -e; echo to the end >/tmp/end; cat /tmp/end; sleep 0; mv /tmp/end /tmp/done"); err == nil || strings.Contains(out, "lost") {
		t.Fatalf("other rules: %q, %v", out, err)
	}
	if reachable(t, m) {
		t.Error("the connections are not cut")
	}
	// The script continues without its client.
	waitFor(t, func() bool { _, err := m.ReadFile("/tmp/done"); return err == nil })
	for what, script := range map[string]string{"without pf": "pfctl -d", "with the old rules": "pfctl -e; pfctl -a acme -f /etc/pf.anchors/acme"} {
		must(t, m, "root", otherRules)
		if _, _, exit := run(t, m, "root", script); exit > 1 || !reachable(t, m) {
			t.Errorf("%s: the connections are still cut", what)
		}
		if _, _, exit := run(t, m, "root", "pfctl -e"); exit > 1 {
			t.Error("pf can't be enabled")
		}
	}
	must(t, m, "root", otherRules)
	if reachable(t, m) {
		t.Error("the connections are not cut again")
	}
	if err := m.DisarmCut(false); err != nil {
		t.Fatal(err)
	}
	if !reachable(t, m) {
		t.Error("the connections stay cut")
	}
}

// waitFor waits until the machine reaches a state without a command.
func waitFor(t *testing.T, so func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("timed out")
		}
	}
}

// TestEveryConnectionBreaks checks that an idle connection breaks too.
func TestEveryConnectionBreaks(t *testing.T) {
	t.Parallel()
	key, e := newKey(t), &events{}
	m := newMachine(t, func(f *Factory) { f.AuthorizedKeys = []string{authorized(key)} })
	must(t, m, "root", acme+"block; pfctl -f /etc/pf.conf")
	if err := m.ArmCut(false); err != nil {
		t.Fatal(err)
	}
	var ended sync.WaitGroup
	for range 3 {
		client, err := dial(t, m, "m1", key, e)
		if err != nil {
			t.Fatal(err)
		}
		ended.Go(func() { _ = client.Wait() })
	}
	must(t, m, "root", otherRules)
	ended.Wait()

	// Rules that another process has loaded cut the next request.
	must(t, m, "root", oldRules)
	client, err := dial(t, m, "m1", key, e)
	if err != nil {
		t.Fatal(err)
	}
	if stdout, _, _ := exec(t, client, "echo there", ""); stdout != "there\n" {
		t.Fatalf("with the old rules: %q", stdout)
	}
	other, err := Open(m.dir)
	if err != nil {
		t.Fatal(err)
	}
	must(t, other, "root", otherRules)
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := session.Output("echo there"); err == nil {
		t.Errorf("over a cut connection: %q", out)
	}
}

// TestCutLineRestartsOnce: the Mac restarts when the connections are cut, comes back with the rules on
// its disk, and does not restart again for the same arming.
func TestCutLineRestartsOnce(t *testing.T) {
	t.Parallel()
	m, _ := cutLine(t, true)
	booted := func() string { return must(t, m, "root", "sysctl -n kern.boottime") }
	first := booted()
	must(t, m, "root", otherRules)
	if err := m.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := booted()
	if second == first {
		t.Error("the Mac did not restart")
	}
	if !reachable(t, m) {
		t.Error("the rules on the disk cut the connections too")
	}
	must(t, m, "root", otherRules)
	if reachable(t, m) {
		t.Error("other rules no longer cut the connections")
	}
	if booted() != second {
		t.Error("the Mac restarted twice")
	}
	armed, err := m.CutArmed(true)
	if err != nil || !armed {
		t.Errorf("armed: %t, %v", armed, err)
	}
}
