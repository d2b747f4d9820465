package hosts

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

const (
	daemons     = 34
	parallelism = 32 // as a run has it by default

	ofFleet = "MACFLEET_TEST_FLEET" // set: this process is TestFleet's own
)

// fleetDeadlines are one Client's for all its hosts. They lie far above what a
// real sshd takes on a machine with other work to do, and apart from each other,
// so that each dead peer is ended by the one that is meant for it.
func fleetDeadlines() Deadlines {
	return impatient(func(d *Deadlines) {
		d.Handshake, d.Silence, d.Exchange = 30*time.Second, 35*time.Second, 45*time.Second
	})
}

// member is one host of the fleet: a real sshd, or a stranger.
type member struct {
	target   Target
	stranger *stranger
}

// testFleet is real sshd and every kind of stranger, at fake addresses.
type testFleet struct {
	login    ssh.Signer
	bin      string // stubs of the Mac's tools
	members  []member
	entries  map[string]string
	upstream []*daemon
	peers    []*peer
}

func (f *testFleet) add(name, address string, key ssh.PublicKey, s *stranger) {
	n := len(f.members) + 1
	to := target(name, fmt.Sprintf("192.0.2.%d", n))
	if key != nil {
		to = pinned(to, key)
	}
	f.entries[to.Server.Address+":22"] = address
	f.members = append(f.members, member{to, s})
}

// stand starts the daemons.
func (f *testFleet) stand(t *testing.T) {
	for n := range daemons {
		key := edwards(t)
		d := startDaemon(t, daemonOptions{hostKeys: []any{key}, login: f.login.PublicKey()})
		f.upstream = append(f.upstream, d)
		f.add(fmt.Sprintf("acme-%02d", n+1), d.address, signer(t, key).PublicKey(), nil)
	}
}

// join adds every stranger of the table, and those that need a real sshd.
func (f *testFleet) join(t *testing.T) {
	for _, s := range strangers() {
		if s.alone {
			continue
		}
		var key ssh.PublicKey
		if s.pin {
			key = newKey(t).PublicKey()
		}
		f.stranger(t, s, s.serve(t), key)
	}
}

func (f *testFleet) stranger(t *testing.T, s stranger, handle func(net.Conn), key ssh.PublicKey) {
	p := listen(t, handle)
	f.peers = append(f.peers, p)
	f.add(s.name, p.listener.Addr().String(), key, &s)
}

// realStrangers adds peers that are OpenSSH itself.
func (f *testFleet) realStrangers(t *testing.T) {
	daemonOf := func(login ssh.PublicKey, config string) *daemon {
		return startDaemon(t, daemonOptions{hostKeys: []any{edwards(t)}, login: login, config: config})
	}
	add := func(name, address, code string, phase Phase, by limit, text string) {
		f.add(name, address, nil, &stranger{name: name, code: code, phase: phase, by: by, text: text})
	}
	add("sshd allows no session", daemonOf(f.login.PublicKey(), "MaxSessions 0\n").address,
		"connection-lost", Talking, none, "open failed")
	add("sshd refuses the key", daemonOf(newKey(t).PublicKey(), "").address, "key-not-installed", Authorising, none, "tried once, not again")
	add("sshd runs one command only", daemonOf(f.login.PublicKey(), "ForceCommand echo Welcome to acme\n").address,
		"connection-lost", Talking, none, `"Welcome to acme\n"`)
	add("sshd floods", daemonOf(f.login.PublicKey(), "ForceCommand yes\n").address,
		"connection-lost", Talking, none, "printed more than 4194304 bytes")

	stopped := daemonOf(f.login.PublicKey(), "")
	must(t, stopped.process.Signal(syscall.SIGSTOP))
	add("sshd is stopped", stopped.address, "no-ssh-answer", Handshaking, byHandshake, "")

	// One login under way is all it takes, and this one never finishes.
	busy := daemonOf(f.login.PublicKey(), "MaxStartups 1\n")
	c, err := net.Dial("tcp", busy.address)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	busy.wait("Connection from")
	add("sshd is busy", busy.address, "no-ssh-answer", Handshaking, none, "the host closed the connection")
	f.vanishing(t)
}

// vanishing adds an sshd that goes away in the middle of a command: a relay
// before it stops copying once the command has started, and not before the relay
// has stopped does the command print anything.
func (f *testFleet) vanishing(t *testing.T) {
	fifo := filepath.Join(openDir(t), "fifo")
	must(t, syscall.Mkfifo(fifo, 0o666))
	d := startDaemon(t, daemonOptions{hostKeys: []any{edwards(t)}, login: f.login.PublicKey(),
		config: fmt.Sprintf("ForceCommand read -r go <%s; /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"\n", fifo)})
	r := newRelay()
	copying := r.inFrontOfAddress(t, d.address)
	s := stranger{name: "sshd vanishes", code: "connection-lost", phase: Talking, by: bySilence}
	f.stranger(t, s, func(c net.Conn) {
		var vanishing sync.WaitGroup
		vanishing.Go(func() {
			d.wait("Starting session")
			close(r.gone)
			if err := os.WriteFile(fifo, []byte("go\n"), 0); err != nil {
				t.Error(err)
			}
		})
		copying(c)
		vanishing.Wait()
	}, nil)
}

// words are a few values that a shell could mistake.
func words() []string { return []string{"", "it's", "a\nb\n", "$(touch acme)"} }

// probes ask enough to tell the hosts apart.
func (m member) probes() []plan.Probe {
	return []plan.Probe{probe("a.name", echo, m.target.Server.Name), probe("a.words", echo, words()...), probe("a.fails", "echo oh >&2; exit 3")}
}

// meet observes one host, and returns an error as a run sees it.
func (m member) meet(t *testing.T, c *Client) (plan.HostSeen, error) {
	// Only the Client's own deadlines may end it, so this one lies far behind them.
	ctx, cancel := context.WithTimeout(context.Background(), 6*patience)
	defer cancel()
	conn, err := c.Connect(ctx, m.target)
	if err != nil {
		return plan.HostSeen{}, err
	}
	defer conn.Close()
	seen := conn.Observe(ctx, m.probes())
	if seen.Trouble != nil {
		text, _ := strings.CutPrefix(seen.Trouble.Text, string(Talking)+": ")
		return seen, &Error{Host: m.target.Server.Name, Code: seen.Trouble.Code, Phase: Talking, Remedy: seen.Trouble.Remedy, Err: fmt.Errorf("%s", text)}
	}
	return seen, nil
}

// judge compares what was seen of a host with what it is.
func (m member) judge(t *testing.T, d Deadlines, seen plan.HostSeen, err error) {
	if s := m.stranger; s != nil && s.code != "" {
		wantErrorOf(t, m.target.Server.Name, err, s.code, s.phase, s.says(d, false))
		return
	}
	if err != nil {
		t.Errorf("%s, which is healthy: %v", m.target.Server.Name, err)
		return
	}
	is(t, m.target.Server.Name+": pinned", seen.Pinned, m.target.Trust.Pin != nil)
	want := plan.Facts{"a.name": said(0, "<"+m.target.Server.Name+">", ""), "a.words": said(0, echoed(words()), ""), "a.fails": said(3, "", "oh\n")}
	got := make(plan.Facts)
	for id := range want {
		got[id] = seen.Facts.Get(id)
	}
	is(t, m.target.Server.Name+": facts", got, want)
	if diff := cmp.Diff([]inventory.Seen[string]{inventory.Present("C07ACME001"), inventory.Present("26.3")},
		[]inventory.Seen[string]{seen.Serial, seen.OSVersion}, whole); diff != "" {
		t.Errorf("%s: serial and version (-want +got):\n%s", m.target.Server.Name, diff)
	}
}

// TestFleet observes more real sshd through one Client than it contacts at once, together with
// a host of every other kind: each dead peer has its own error, and the
// real ones answer as if there were no others. It runs in its own process, because it
// counts the descriptors of the whole process, and mostly waits.
func TestFleet(t *testing.T) {
	need(t, "sshd", "dash", "perl")
	if os.Getenv(ofFleet) == "" {
		t.Parallel()
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFleet$", "-test.timeout=5m")
		cmd.Env = append(os.Environ(), ofFleet+"=1")
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, said)
		}
		return
	}
	f := &testFleet{login: newKey(t), bin: filepath.Join(openDir(t), "bin"), entries: make(map[string]string)}
	write(t, filepath.Join(f.bin, "sw_vers"), "#!/bin/sh\necho 26.3\n", 0o755)
	write(t, filepath.Join(f.bin, "ioreg"), "#!/bin/sh\ncat <<'E'\n"+ioregText+"E\n", 0o755)
	f.stand(t)

	f.join(t)
	f.realStrangers(t)
	f.observe(t)
	for i, d := range f.upstream {
		is(t, fmt.Sprintf("sshd %d: refused logins", i), containing(strings.Split(d.log(), "\n"), "Failed "), 0)
	}
}

// observe asks every host at once and looks for what stays behind.
func (f *testFleet) observe(t *testing.T) {
	before, running := descriptors(t), goleak.IgnoreCurrent()
	c := New(Options{User: me(t), Key: f.login, Dial: f.dial(t), Deadlines: fleetDeadlines(), Prologue: withStubs(f.bin)})
	type result struct {
		seen plan.HostSeen
		err  error
	}
	results := make([]result, len(f.members))
	var g errgroup.Group
	g.SetLimit(parallelism)
	// The strangers first: who waits for a dead host must not hold up the others.
	for i, m := range slices.Backward(f.members) {
		g.Go(func() error {
			results[i].seen, results[i].err = m.meet(t, c)
			return nil
		})
	}
	_ = g.Wait() // no error comes from it
	for i, m := range f.members {
		m.judge(t, c.opts.Deadlines, results[i].seen, results[i].err)
	}
	is(t, "connections", c.Stats().Connections, int64(len(f.members)))
	for _, p := range f.peers {
		p.hungUp(t)
	}
	// A connection's descriptor is closed when its last reader has gone.
	if err := goleak.Find(running); err != nil {
		t.Errorf("after the fleet was observed: %v", err)
	}
	if diff := cmp.Diff(before, descriptors(t)); diff != "" {
		t.Errorf("descriptors (-before +after):\n%s", diff)
	}
}

// dial reaches the fleet. What a failing test leaves open is closed at its end, or
// every daemon would wait for its session.
func (f *testFleet) dial(t *testing.T) Dial {
	var mu sync.Mutex
	var open []net.Conn
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			_ = c.Close() // all are closed already when the test has passed
		}
	})
	reach := book(f.entries)
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := reach(ctx, network, address)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			open = append(open, c)
		}
		return c, err
	}
}

// descriptors returns what this process holds open.
func descriptors(t *testing.T) map[string]string {
	t.Helper()
	const dir = "/proc/self/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Logf("descriptors are not counted here: %v", err)
		return nil
	}
	open := make(map[string]string)
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join(dir, e.Name()))
		// The folder's own descriptor has gone already.
		if err == nil && !strings.HasSuffix(to, "/fd") {
			open[e.Name()] = to
		}
	}
	return open
}
