package realtailnet

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/maintest"
)

// machine is a computer with tailscaled. It has no network interface for the tailnet: connections to its address arrive
// at the loopback, and programs reach the tailnet through the SOCKS proxy.
type machine struct {
	control *control
	name    string
	dir     string // its files
	proxy   string // port
	port    string // of WireGuard
	process *process
}

// machine starts a machine that has not joined.
func (s *control) machine(t *testing.T, name string) *machine {
	t.Helper()
	ports, err := maintest.Ports(2)
	must(t, err)
	dir, err := os.MkdirTemp("", "ts-") // the path of a socket has at most 107 characters
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // in the folder of temporary files
	m := &machine{control: s, name: name, dir: dir, proxy: ports[0], port: ports[1]}
	m.start(t)
	t.Cleanup(m.stop)
	return m
}

func (m *machine) file(name string) string { return filepath.Join(m.dir, name) }

// start starts tailscaled with the state that there is.
func (m *machine) start(t *testing.T) {
	t.Helper()
	p, err := startProcess(m.file("log"), []string{"TS_DEBUG_USE_DERP_HTTP=1"}, tailscaled(t),
		"--tun=userspace-networking", "--statedir="+m.dir, "--state="+m.file("state"), "--socket="+m.file("sock"),
		"--port="+m.port, "--socks5-server=127.0.0.1:"+m.proxy, "--no-logs-no-support")
	must(t, err)
	m.process = p
	m.await(t, "daemon that answers", func(s status) bool { return s.BackendState != "NoState" && s.BackendState != "" })
}

func (m *machine) stop() { m.process.stop() }

// result is how a command ended.
type result struct {
	code        int
	out, errout string
}

// cli runs a command of tailscale.
func (m *machine) cli(t testing.TB, args ...string) result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tailscale(t), append([]string{"--socket=" + m.file("sock")}, args...)...)
	var out, told bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &told
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("tailscale %s: %v", strings.Join(args, " "), err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), told.String()}
}

// up joins with a key, with the arguments that macfleet's script has.
func (m *machine) up(t testing.TB, key string) result {
	t.Helper()
	path := m.file("key")
	must(t, os.WriteFile(path, []byte(key), 0o600))
	defer os.Remove(path)
	return m.cli(t, "up", "--login-server="+m.control.url, "--auth-key=file:"+path, "--hostname="+m.name,
		"--accept-dns=false", "--accept-routes=false", "--ssh=false", "--timeout=80s")
}

// join joins with a new key and returns the status.
func (m *machine) join(t testing.TB, tags string) status {
	t.Helper()
	if r := m.up(t, m.control.key(t, tags)); r.code != 0 {
		t.Fatalf("%s did not join: %d: %s%s", m.name, r.code, r.out, r.errout)
	}
	return m.await(t, "joined daemon", func(s status) bool { return s.BackendState == "Running" && len(s.Self.Addresses) > 0 })
}

// bothJoin lets a host of the fleet and a machine that scrapes join at the same time.
func bothJoin(t testing.TB, host, scraper *machine) (ofHost, ofScraper status) {
	t.Helper()
	joined := make(chan status)
	go func() {
		defer close(joined) // also after a failure
		joined <- scraper.join(t, scrapeTag)
	}()
	ofHost = host.join(t, fleetTag)
	ofScraper, ok := <-joined
	if !ok {
		t.FailNow()
	}
	return ofHost, ofScraper
}

// status is what the tests read of the daemon's status besides what macfleet's parsers read.
type status struct {
	Version      string
	BackendState string
	HaveNodeKey  bool
	AuthURL      string
	Health       []string
	Self         struct {
		ID        string
		HostName  string
		DNSName   string
		Addresses []string `json:"TailscaleIPs"`
		Tags      []string
		Expired   bool
		Online    bool
	}
	Peer map[string]struct{ HostName string }
}

// label is the first label of the device's name.
func (s status) label() string {
	label, _, _ := strings.Cut(s.Self.DNSName, ".")
	return label
}

// status asks the daemon. Nothing is returned if it does not answer.
func (m *machine) status(t testing.TB) status {
	t.Helper()
	var s status
	if r := m.cli(t, "status", "--json"); r.out != "" {
		if err := json.Unmarshal([]byte(r.out), &s); err != nil {
			t.Fatalf("tailscale status --json: %v in %s", err, r.out)
		}
	}
	return s
}

// await waits until the daemon's status is as a test expects it.
func (m *machine) await(t testing.TB, what string, reached func(status) bool) status {
	t.Helper()
	var s status
	err := await(what+" on "+m.name, func() (bool, error) {
		s = m.status(t)
		return reached(s), m.process.ended()
	})
	if err != nil {
		log, _ := os.ReadFile(m.file("log"))
		t.Fatalf("%v; the last status is %+v\n%s", err, s, tail(log, 40))
	}
	return s
}

// tail returns the last lines of a text.
func tail(text []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
