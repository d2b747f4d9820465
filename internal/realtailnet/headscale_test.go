package realtailnet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/maintest"
)

// patience is how long a state may take. All of them are awaited, so a busy machine only takes longer.
const patience = 90 * time.Second

// Tags of the devices. The policy lets what scrapes reach port 9100 of the fleet, and nothing else.
const (
	fleetTag  = "tag:fleet"
	scrapeTag = "tag:scrape"
	retagged  = "tag:fleet-new"
)

const policy = `{
	"tagOwners": {"tag:fleet": ["ops@"], "tag:fleet-new": ["ops@"], "tag:scrape": ["ops@"]},
	"grants": [{"src": ["tag:scrape"], "dst": ["tag:fleet"], "ip": ["tcp:9100"]}]
}`

// shared is the control server of all tests but those that freeze one.
var shared struct {
	once   sync.Once
	server *control
	err    error
}

// server returns the shared control server.
func server(t *testing.T) *control {
	t.Helper()
	path := headscale(t)
	shared.once.Do(func() {
		var dir string
		if dir, shared.err = os.MkdirTemp("", "headscale-"); shared.err == nil {
			shared.server, shared.err = startControl(path, dir)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// ownServer returns a control server that this test may freeze.
func ownServer(t *testing.T) *control {
	t.Helper()
	s, err := startControl(headscale(t), t.TempDir())
	must(t, err)
	t.Cleanup(s.stop)
	return s
}

// control is a running Headscale.
type control struct {
	path, dir string
	url       string
	process   *process
}

// startControl starts Headscale in a folder. Its DERP server is its own: a map of none is refused.
func startControl(path, dir string) (*control, error) {
	ports, err := maintest.Ports(3)
	if err != nil {
		return nil, err
	}
	s := &control{path: path, dir: dir, url: "http://127.0.0.1:" + ports[0]}
	config := map[string]any{
		"server_url":            s.url,
		"listen_addr":           "127.0.0.1:" + ports[0],
		"metrics_listen_addr":   "",
		"grpc_listen_addr":      "127.0.0.1:" + ports[1],
		"unix_socket":           filepath.Join(dir, "sock"),
		"noise":                 map[string]any{"private_key_path": filepath.Join(dir, "noise.key")},
		"prefixes":              map[string]any{"v4": "100.64.0.0/10", "v6": "fd7a:115c:a1e0::/48", "allocation": "sequential"},
		"disable_check_updates": true,
		"derp": map[string]any{
			"server": map[string]any{
				"enabled": true, "region_id": 999, "region_code": "test", "region_name": "test",
				"stun_listen_addr": "127.0.0.1:" + ports[2], "private_key_path": filepath.Join(dir, "derp.key"),
				"automatically_add_embedded_derp_region": true, "ipv4": "127.0.0.1", "verify_clients": false,
			},
			"urls": []string{}, "paths": []string{}, "auto_update_enabled": false,
		},
		"database": map[string]any{"type": "sqlite", "sqlite": map[string]any{"path": filepath.Join(dir, "db.sqlite")}},
		"dns":      map[string]any{"magic_dns": true, "base_domain": "tail.acme.test", "override_local_dns": false},
		"policy":   map[string]any{"mode": "file", "path": filepath.Join(dir, "policy.json")},
		"log":      map[string]any{"level": "info", "format": "text"},
		"cli":      map[string]any{"timeout": patience.String()}, // the default is 5 s, and a loaded machine takes longer
	}
	text, err := json.Marshal(config) // JSON is YAML too
	if err != nil {
		return nil, err
	}
	for name, content := range map[string]string{"config.yaml": string(text), "policy.json": policy} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	if s.process, err = startProcess(filepath.Join(dir, "log"), nil, path, "-c", s.config(), "serve"); err != nil {
		return nil, err
	}
	err = await("Headscale to be healthy", func() (bool, error) {
		client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		answer, err := client.Get(s.url + "/health")
		if err != nil {
			return false, s.process.ended()
		}
		return answer.StatusCode == http.StatusOK, answer.Body.Close()
	})
	if err == nil {
		_, err = s.run("users", "create", "ops")
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *control) config() string { return filepath.Join(s.dir, "config.yaml") }

func (s *control) stop() {
	s.process.stop()
	_ = os.RemoveAll(s.dir) // in the folder of temporary files
}

// run runs a command of Headscale and returns its output.
func (s *control) run(args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.path, append([]string{"-c", s.config()}, args...)...)
	var told bytes.Buffer
	cmd.Stderr = &told
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("headscale %s: %w: %s%s", strings.Join(args, " "), err, out, told.Bytes())
	}
	return out, nil
}

// ask runs a command that prints JSON.
func (s *control) ask(t testing.TB, into any, args ...string) {
	t.Helper()
	out, err := s.run(append(args, "-o", "json")...)
	must(t, err)
	if into == nil {
		return
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("headscale %s: %v in %s", strings.Join(args, " "), err, out)
	}
}

// expires ends a device's node key, and says whether its daemon knows. If another device changes at the same moment, Headscale 0.29.1 announces
// a policy change in place of this one (persistNodeToDB and SetNodeExpiry in state.go), and the daemon never learns its new name or
// expiry. It does when the change is made again.
func (s *control) expires(t testing.TB, id string) func(status) bool {
	var made time.Time
	return func(now status) bool {
		if time.Since(made) > 5*time.Second {
			s.ask(t, nil, "nodes", "expire", "--identifier", id)
			made = time.Now()
		}
		return now.BackendState == "NeedsLogin"
	}
}

// key makes a key with which one device joins once, with tags.
func (s *control) key(t testing.TB, tags ...string) string {
	t.Helper()
	var made struct{ Key string }
	s.ask(t, &made, "preauthkeys", "create", "--user", "1", "--expiration", "10m", "--tags", strings.Join(tags, ","))
	if made.Key == "" {
		t.Fatal("Headscale made no key")
	}
	return made.Key
}

// node is a device as Headscale lists it.
type node struct {
	ID        int      `json:"id"`
	Name      string   `json:"name"`       // what the machine calls itself
	GivenName string   `json:"given_name"` // first label of its name, unique
	Addresses []string `json:"ip_addresses"`
	Tags      []string `json:"tags"`
	Online    bool     `json:"online"`
}

// nodes are the devices that call themselves one of names; without names all of them.
func (s *control) nodes(t testing.TB, names ...string) []node {
	t.Helper()
	var all, found []node
	s.ask(t, &all, "nodes", "list")
	for _, n := range all {
		for _, name := range names {
			if n.Name == name {
				found = append(found, n)
			}
		}
	}
	if len(names) == 0 {
		return all
	}
	return found
}

// limited returns a command that is killed at the end of patience.
func limited(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second // a process left behind would keep the streams open
	return cmd
}

// process is a program that runs until the test ends it.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	err  error // after done
}

// startProcess starts a program whose output goes to a file. It dies with the tests.
func startProcess(log string, env []string, name string, args ...string) (*process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p := &process{cmd: exec.Command(name, args...), log: log, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = file, file
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// ended returns an error if the program has ended by itself.
func (p *process) ended() error {
	select {
	case <-p.done:
		text, _ := os.ReadFile(p.log)
		return fmt.Errorf("%s ended: %v\n%s", filepath.Base(p.cmd.Path), p.err, text)
	default:
		return nil
	}
}

// stop ends the program: by SIGTERM, and at the end of patience by SIGKILL.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGCONT) // it may be frozen or gone
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// await calls a function until it reports true, which an error ends.
func await(what string, reached func() (bool, error)) error {
	deadline := time.Now().Add(patience)
	for {
		ok, err := reached()
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		if ok {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no %s after %s", what, patience)
		}
		time.Sleep(50 * time.Millisecond) // between two looks; nothing depends on its length
	}
}
