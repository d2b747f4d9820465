package realtailnet

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/maintest"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// mac is a folder that stands for a Mac, on which the step's own scripts operate the real programs.
type mac struct {
	*scripttest.Mac
	control  *control
	host     fleet.Host
	verified bool
	keys     int    // how many keys this Mac was given
	path     string // of the connection to it
	ports    []string
}

const stepID plan.StepID = "tailscale"

// mac makes one that has never joined.
func (s *control) mac(t *testing.T, name string) *mac {
	t.Helper()
	scripttest.Need(t, "dash", "setsid", "sha256sum", "sed")
	ports, err := maintest.Ports(2)
	must(t, err)
	m := &mac{Mac: scripttest.New(t, []string{"dash"}, "/etc/macfleet", "/etc/resolver", "/Library/", "/usr/local/", "/var/"), control: s}
	m.Folders("/Library/LaunchDaemons", "/usr/local/lib/macfleet/artifacts", "/usr/local/bin", "/var/log", "/var/run", "/etc")
	m.Tool("launchctl", "TESTS="+strconv.Itoa(os.Getpid())+"\n"+scripttest.Text(t, "testdata/launchctl.sh"))
	m.Tool("codesign", "exit 0")
	m.Tool("sync", "exit 0")
	m.Tool("shasum", "exec sha256sum")
	m.Tool("stat", `case "$1 $2" in
  '-f %i %z %m|%c|%u:%g:%Lp|%Su:%Sg:%Lp|%N') format='%i %s %Y|%Z|0:0:%a|root:wheel:%a|%n' ;;
  '-f %i %z %m') format='%i %s %Y' ;;
  '-f %u:%g:%Lp') format='0:0:%a' ;;
  *) echo "no stub for stat $*" >&2; exit 127 ;;
esac
shift 2
exec /usr/bin/stat -c "$format" "$@"`)
	// What an artifact has for macOS is here a script that starts the program for Linux, as this machine can run it.
	m.ports = ports
	artifact := m.artifact(t, "")
	port, err := strconv.Atoi(ports[1])
	must(t, err)
	m.host = stepstest.Host(fleet.Spec{Tailscale: &fleet.Tailscale{Artifact: artifact, Port: &port}})
	m.host.Name = name
	m.host.Tailnet = &fleet.Tailnet{Enabled: true, Tags: []string{fleetTag}, ControlURL: s.url}
	t.Cleanup(func() { m.tool(t, "launchctl", "bootout", "system/com.tailscale.tailscaled") })
	return m
}

// artifact delivers the programs, with a line that the daemon runs when it does not only say its version.
func (m *mac) artifact(t *testing.T, line string) *fleet.Artifact {
	t.Helper()
	archive := programs(t, map[string]string{
		"tailscale": "#!/bin/sh\nexec " + tailscale(t) + " --socket=" + m.Path("/var/run/tailscaled.socket") + " \"$@\"\n",
		"tailscaled": "#!/bin/sh\nexport TS_DEBUG_USE_DERP_HTTP=1\n[ \"$1\" = --version ] || { :\n" + line + "\n}\nexec " + tailscaled(t) +
			" --tun=userspace-networking --socks5-server=127.0.0.1:" + m.ports[0] + " --no-logs-no-support \"$@\"\n",
	})
	sum := sha256.Sum256([]byte(archive))
	a := &fleet.Artifact{Name: "tailscale", Version: "1.102.5", SHA256: hex.EncodeToString(sum[:])}
	m.Put(a.HostPath(), archive)
	return a
}

// programs is an archive of programs.
func programs(t testing.TB, texts map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range texts {
		err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(text))})
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		must(t, err)
	}
	must(t, w.Close(), z.Close())
	return b.String()
}

// tool runs a tool of the Mac, as a person does there.
func (m *mac) tool(t testing.TB, name string, args ...string) result {
	t.Helper()
	a := m.Run(plan.Command{Name: name, Script: name + ` "$@"`, Args: args}, "")
	return result{a.Exit, a.Stdout, a.Stderr}
}

// cli runs the Mac's tailscale.
func (m *mac) cli(t testing.TB, args ...string) result {
	t.Helper()
	r := m.tool(t, "/usr/local/bin/tailscale", args...)
	if r.code != 0 {
		t.Fatalf("%s: tailscale %s: %+v", m.host.Name, strings.Join(args, " "), r)
	}
	return r
}

// here is a command whose arguments are paths of this folder.
func (m *mac) here(c plan.Command) plan.Command {
	c.Args = slices.Clone(c.Args)
	for i, arg := range c.Args {
		c.Args[i] = m.Here(arg)
	}
	return c
}

// listed is what the control server lists, as the provider reports it to the step.
func (m *mac) listed(t testing.TB) *plan.PeerSeen {
	t.Helper()
	seen := &plan.PeerSeen{Listing: inventory.Listing{Tailnet: &inventory.Tailnet{Keys: inventory.Present([]inventory.DeviceKey{}), MagicDNS: inventory.Present(true)}}}
	for _, n := range m.control.nodes(t) {
		d := inventory.Device{ID: strconv.Itoa(n.ID), Name: n.GivenName, HostName: n.Name, Addresses: n.Addresses, Tags: n.Tags, Approved: true, Connected: n.Online}
		if d.Claims(m.host.Name) {
			seen.Tailnet.Devices = append(seen.Tailnet.Devices, d)
		}
	}
	return seen
}

// look asks the step's probes and compares.
func (m *mac) look(t testing.TB) plan.Finding {
	t.Helper()
	return m.compare(t, m.listed(t))
}

// compare is look with what the control server listed.
func (m *mac) compare(t testing.TB, listed *plan.PeerSeen) plan.Finding {
	t.Helper()
	step := stepstest.StepOf(t, stepID, m.host)
	v := plan.View{Host: m.host, Facts: plan.Facts{}, Root: true, Verified: m.verified, Peers: []plan.HostPeer{{Peer: inventory.TailnetService, Seen: listed}}, Path: m.path}
	_, err := os.Stat(m.Path("/etc/macfleet/pending/tailscale"))
	v.Pending = err == nil
	for _, p := range step.Probes() {
		a := m.Run(m.here(p.Command), "")
		v.Facts[p.ID] = inventory.Present(a)
	}
	f := step.Diff(v)
	stepstest.Sound(t, stepID, v, f)
	if len(f.Unread) > 0 {
		t.Fatalf("%s: unread: %+v", m.host.Name, f.Unread)
	}
	return f
}

// perform makes a change, on the host or at the control server.
func (m *mac) perform(t testing.TB, c plan.Change) plan.Answer {
	t.Helper()
	if c.Peer == nil {
		return m.Run(m.here(c.Command), m.input(t, c))
	}
	id := c.Peer.Entry.ID
	switch c.Peer.Verb {
	case inventory.DeleteEntry:
		m.control.ask(t, nil, "nodes", "delete", "--identifier", id, "--force")
	case inventory.RetagDevice:
		m.control.ask(t, nil, "nodes", "tag", "--identifier", id, "--tags", strings.Join(c.Peer.To, ","))
	case inventory.RenameDevice:
		m.control.ask(t, nil, "nodes", "rename", "--identifier", id, c.Peer.To[0])
	default:
		t.Fatalf("Headscale has nothing for %+v", c.Peer)
	}
	return plan.Answer{}
}

// upTo makes the planned changes before one, and returns that.
func (m *mac) upTo(t testing.TB, is func(plan.Change) bool) plan.Change {
	t.Helper()
	f := m.look(t)
	for _, c := range f.Changes {
		if is(c) {
			return c
		}
		if a := m.perform(t, c); a.Exit != 0 {
			t.Fatalf("%s: %+v", c.Command.Name, a)
		}
	}
	t.Fatalf("it is not among\n%s", changes(f))
	return plan.Change{}
}

// input is what a change's script reads: a new key, as the step renders it.
func (m *mac) input(t testing.TB, c plan.Change) string {
	t.Helper()
	if c.Input == plan.NoInput {
		return ""
	}
	m.keys++
	key, err := secret.New(m.control.key(t, m.host.Tailnet.OwnTags()...))
	must(t, err)
	text, err := steps.Input(steps.InputFor{Kind: c.Input, Host: m.host}, key)
	must(t, err)
	return text.Reveal()
}

// apply makes the changes that the step plans, checks that nothing differs afterwards, and returns the reasons, each once.
func (m *mac) apply(t testing.TB) string {
	t.Helper()
	f := m.look(t)
	if f.Refused != nil {
		t.Fatalf("%s: refused: %+v", m.host.Name, f.Refused)
	}
	var reasons []string
	for _, c := range f.Changes {
		if code := c.Reason.Code.String(); !slices.Contains(reasons, code) {
			reasons = append(reasons, code)
		}
		if a := m.perform(t, c); a.Exit != 0 {
			t.Fatalf("%s: %s: %+v\n%s", m.host.Name, c.Command.Name, a, tail([]byte(m.Read("/var/log/tailscaled.log")), 20))
		}
	}
	m.converged(t)
	return strings.Join(reasons, " ")
}

// converged waits until nothing differs: what is changed at the control server reaches the daemon a moment later.
func (m *mac) converged(t testing.TB) {
	t.Helper()
	m.verified = true
	m.settled(t)
	var f plan.Finding
	err := await("host without a difference", func() (bool, error) {
		f = m.look(t)
		return len(f.Changes) == 0 && f.Refused == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v: %+v in\n%s\n%s", m.host.Name, err, f.Refused, changes(f), f.Facts)
	}
}

// settled records that no step is in progress.
func (m *mac) settled(t testing.TB) {
	t.Helper()
	if err := os.Remove(m.Path("/etc/macfleet/pending/tailscale")); err != nil && !errors.Is(err, os.ErrNotExist) { // as the engine does
		t.Fatal(err)
	}
}

// changes names a finding's changes.
func changes(f plan.Finding) string {
	var out strings.Builder
	for _, c := range f.Changes {
		out.WriteString(c.Reason.Code.String() + ": " + c.Reason.Text + ": " + c.Command.Name + "\n")
	}
	return out.String()
}

// single fails unless the host has one device, with its name and tags.
func (m *mac) single(t testing.TB) {
	t.Helper()
	nodes := m.control.nodes(t, m.host.Name)
	if len(nodes) != 1 || nodes[0].GivenName != m.host.Name || !slices.Equal(nodes[0].Tags, m.host.Tailnet.OwnTags()) {
		t.Errorf("%s has the devices %+v", m.host.Name, nodes)
	}
}

// id is the id of the host's only device.
func (m *mac) id(t testing.TB) string {
	t.Helper()
	nodes := m.control.nodes(t, m.host.Name)
	if len(nodes) != 1 {
		t.Fatalf("%s has the devices %+v", m.host.Name, nodes)
	}
	return strconv.Itoa(nodes[0].ID)
}

// begin starts a change's script, in its own process group.
func (m *mac) begin(t testing.TB, c plan.Change, stdin string) *exec.Cmd {
	t.Helper()
	command := m.here(c.Command)
	cmd := limited(t, "dash", append([]string{"-c", m.Here(command.Script), "sh"}, command.Args...)...)
	cmd.Env = []string{"PATH=" + m.Bin + ":/usr/bin:/bin", "LC_ALL=C", "STATE=" + m.State, "ROOT=" + m.Root}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Stdin = strings.NewReader(stdin)
	must(t, cmd.Start())
	return cmd
}
