package mac

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
)

// Programs of Tailscale and of the node exporter, as the line program= names them.
const (
	tailscaleProgram  = "tailscale"
	tailscaledProgram = "tailscaled"
)

// The defaults of tailscaled on a Mac.
const (
	tailscaleSocket = "/var/run/tailscaled.socket"
	tailscaleState  = "/Library/Tailscale/tailscaled.state"
)

// The states of the daemon's backend.
const (
	stateNoLogin  = "NeedsLogin"
	stateNoAuth   = "NeedsMachineAuth"
	stateStopped  = "Stopped"
	stateStarting = "Starting"
	stateRunning  = "Running"
)

// prefs are the daemon's preferences, as tailscale debug prefs prints them.
type prefs struct {
	ControlURL    string
	RouteAll      bool
	CorpDNS       bool
	RunSSH        bool
	WantRunning   bool
	LoggedOut     bool
	ShieldsUp     bool
	Hostname      string
	AdvertiseTags []string
	NoSNAT        bool
	NetfilterMode int
}

// tailscaleFile is the daemon's state file.
type tailscaleFile struct {
	Machine string `json:"machine"`
	Node    string `json:"node,omitempty"`
	Prefs   prefs  `json:"prefs"`
}

// tailscaled is the daemon in a job of launchd.
type tailscaled struct {
	tailscaleFile
	Version string     `json:"version"` // long form
	State   string     `json:"state"`   // path of its state file
	Socket  string     `json:"socket"`
	Port    int        `json:"port"`
	Backend string     `json:"backend"`
	Seen    agent.Node `json:"seen"`          // its device, as the control server said last
	Key     string     `json:"key,omitempty"` // an auth key in its memory, with which it tries to join for ever
	PID     int        `json:"pid"`
	PeerAPI int        `json:"peer_api"`
	Deaf    bool       `json:"deaf,omitempty"` // it never reaches its control server
}

// startTailscaled starts the daemon in a job's process, or ends it if it cannot run.
func (v *visit) startTailscaled(l *launch, j *job, head []byte, due, now time.Time) {
	d, why, code := v.newTailscaled(l.proc, head)
	if d == nil {
		_, _ = fmt.Fprintln(l.proc.stderr, why)
		j.dies(ending{Code: code}, 0, due, now)
		return
	}
	if hasLine(head, "broken") {
		_, _ = fmt.Fprintln(l.proc.stderr, "panic: runtime error: index out of range")
		j.dies(ending{Code: 2}, 0, due, now)
		return
	}
	d.Deaf = hasLine(head, "deaf")
	_, _ = fmt.Fprintf(l.proc.stderr, "logtail started\nProgram starting: v%s, Go 1.26.6\n", d.Version)
	d.PID, d.PeerAPI = j.PID, 50000+j.PID%9000
	j.Tailscale = d
	v.contactControl(d, true)
}

// newTailscaled reads the flags and the state of a daemon; nil: why it ends, and with which code.
func (v *visit) newTailscaled(p *proc, head []byte) (d *tailscaled, why string, code int) {
	d = &tailscaled{Version: codeValue(head, "long"), State: tailscaleState, Socket: tailscaleSocket, Port: 41641}
	if d.Version == "" {
		d.Version = codeValue(head, "version")
	}
	for _, arg := range p.args() {
		name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch name {
		case "state":
			d.State = value
		case "statedir":
			d.State = path.Join(value, "tailscaled.state")
		case "socket":
			d.Socket = value
		case "port":
			d.Port, _ = strconv.Atoi(value)
		case "no-logs-no-support", "verbose", "tun":
		default:
			return nil, "flag provided but not defined: -" + name, 2
		}
	}
	if p.user.uid != 0 {
		return nil, "tailscaled requires root; use sudo tailscaled (or use --tun=userspace-networking)", 1
	}
	if !v.exists(path.Dir(d.State)) {
		return nil, "store.New: open " + d.State + ": no such file or directory", exitConfig
	}
	d.Backend = stateNoLogin
	data, err := v.read(p, d.State)
	if err == nil && json.Unmarshal(data, &d.tailscaleFile) != nil {
		return nil, "store.New: invalid state file " + d.State, 1
	}
	if d.Machine == "" {
		d.tailscaleFile = tailscaleFile{Machine: newNodeKey("mkey"), Prefs: prefs{CorpDNS: true, LoggedOut: true}}
		v.storeTailscale(d)
	}
	return d, "", 0
}

// newNodeKey returns a new key.
func newNodeKey(kind string) string {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails
	return kind + ":" + hex.EncodeToString(random)
}

// storeTailscale writes the daemon's state file; one that cannot be written is lost.
func (v *visit) storeTailscale(d *tailscaled) {
	data, err := json.MarshalIndent(d.tailscaleFile, "", "  ")
	if err == nil {
		_ = v.writeAs(v.rootProc(), d.State, append(data, '\n'), os.O_TRUNC, 0o600)
	}
}

// rootProc is a process of root's, for what a daemon does to files.
func (v *visit) rootProc() *proc {
	return &proc{session: v.session, user: v.session.users()[0], argv: []string{tailscaledProgram}, dir: "/", umask: 0o077}
}

// control returns the daemon's control server; nil: it cannot be reached.
func (v *visit) control(d *tailscaled) agent.Control {
	all := v.session.machine.world().Tailnets
	if all == nil {
		return nil
	}
	url := d.Prefs.ControlURL
	if url == defaultControl {
		url = ""
	}
	c, err := all.Control(url)
	if err != nil {
		return nil
	}
	return c
}

// defaultControl is Tailscale's own control server.
const defaultControl = "https://controlplane.tailscale.com"

func (d *tailscaled) contact(hostName string) agent.NodeContact {
	if d.Prefs.Hostname != "" {
		hostName = d.Prefs.Hostname
	}
	return agent.NodeContact{MachineKey: d.Machine, NodeKey: d.Node, HostName: hostName, Version: d.Version, OS: "macOS", Port: d.Port}
}

// contactControl lets the daemon contact its control server: one with a key in its memory tries to join with it.
func (v *visit) contactControl(d *tailscaled, starting bool) {
	if d.Deaf {
		d.Backend = stateStarting
		return
	}
	name, _ := v.hostName()
	server := v.control(d)
	if d.Key != "" && d.Backend != stateRunning {
		if server != nil {
			_ = v.join(d, server, d.Key)
		}
		return
	}
	switch {
	case d.Node == "" || d.Prefs.LoggedOut:
		d.Backend = stateNoLogin
		return
	case !d.Prefs.WantRunning:
		d.Backend = stateStopped
		return
	case server == nil:
		if starting {
			d.Backend = stateStarting
		}
		d.Seen.Online = false
		return
	}
	n, err := server.Node(d.contact(name))
	var refused agent.RefusedNode
	switch {
	case errors.As(err, &refused) && refused.Gone:
		if starting || !refused.Late {
			d.Backend, d.Node, d.Seen = stateNoLogin, "", agent.Node{}
			v.storeTailscale(d)
		}
	case err != nil:
		if starting {
			d.Backend = stateStarting
		}
		d.Seen.Online = false
	default:
		d.follow(n)
	}
}

// follow takes what the control server said.
func (d *tailscaled) follow(n agent.Node) {
	d.Seen = n
	switch {
	case n.Expired:
		d.Backend = stateNoLogin
	case !n.Approved:
		d.Backend = stateNoAuth
	default:
		d.Backend = stateRunning
	}
}

// join registers the daemon with an auth key.
func (v *visit) join(d *tailscaled, server agent.Control, key string) error {
	name, _ := v.hostName()
	if d.Node == "" || d.Seen.Expired {
		d.Node = newNodeKey("nodekey")
	}
	n, err := server.Register(agent.NodeRegistration{NodeContact: d.contact(name), AuthKey: key, Tags: d.Prefs.AdvertiseTags})
	if err != nil {
		var refused agent.RefusedNode
		if errors.As(err, &refused) && d.Seen.ID == "" {
			d.Node = ""
		}
		return err
	}
	d.Key, d.Prefs.LoggedOut, d.Prefs.WantRunning = "", false, true
	d.follow(n)
	v.storeTailscale(d)
	return nil
}

// tendTailnet lets the daemon contact its control server, as it does all the time.
func (s *session) tendTailnet() error {
	held, err := s.machine.pending()
	if err != nil || held == nil || held.tailscale() == nil {
		return err
	}
	return s.visit(func(v *visit) error {
		return v.changeLaunchd(func(m *manager, _ time.Time) error {
			if d := m.tailscale(); d != nil {
				v.contactControl(d, false)
			}
			return nil
		})
	})
}

// tailscale returns the running daemon, or nil.
func (m *manager) tailscale() *tailscaled {
	for _, target := range slices.Sorted(maps.Keys(m.Jobs)) {
		if j := m.Jobs[target]; j.Tailscale != nil && j.PID != 0 && j.PID == j.Tailscale.PID && !j.leaving() && m.Halt == nil {
			return j.Tailscale
		}
	}
	return nil
}

// tailnetIP is the address that the daemon has on its interface; empty: none.
func (m *manager) tailnetIP() string {
	if d := m.tailscale(); d != nil && len(d.Seen.Addresses) > 0 {
		return d.Seen.Addresses[0]
	}
	return ""
}

// up reports whether the daemon's interface carries packets.
func (d *tailscaled) up() bool { return d != nil && d.Backend == stateRunning }

// tailnetNotes are the connections to control servers when they were last reported.
type tailnetNotes struct {
	Node string `json:"node"`
	URL  string `json:"url,omitempty"`
}

var tailnetRecord = inFirmware("tailnet")

// reportTailnet reports a daemon that has ended to its control server.
func (v *visit) reportTailnet(m *manager) error {
	var last, now tailnetNotes
	if v.recall(tailnetRecord, &last) != nil {
		last = tailnetNotes{}
	}
	if d := m.tailscale(); d != nil && d.Node != "" && d.Prefs.WantRunning && !d.Prefs.LoggedOut {
		now = tailnetNotes{d.Node, d.Prefs.ControlURL}
	}
	if last == now {
		return nil
	}
	if last.Node != "" && last.Node != now.Node {
		if server := v.control(&tailscaled{tailscaleFile: tailscaleFile{Prefs: prefs{ControlURL: last.URL}}}); server != nil {
			if err := server.Disconnect(last.Node); err != nil {
				return err
			}
		}
	}
	return v.keep(tailnetRecord, now)
}

// TailnetAddress returns the address at which the machine answers in its tailnet; empty: it does not.
func (m *Machine) TailnetAddress() (address string, err error) {
	err = m.asRoot(func(v *visit, _ *proc) error {
		l, _, err := v.launchd()
		if err == nil && l.tailscale().up() {
			address = l.tailnetIP()
		}
		return err
	})
	return address, err
}

// runTailscaled is tailscaled outside a job of launchd.
func (p *proc) runTailscaled(head []byte) int {
	p.watched()
	if slices.Equal(p.args(), []string{"--version"}) || slices.Equal(p.args(), []string{"-version"}) {
		p.printf("%s\n", versionText(head))
		return 0
	}
	return p.unmodelled("tailscaled that launchd has not started")
}

func versionText(head []byte) string {
	return codeValue(head, "version") + "\n  tailscale commit: ERR-BuildInfo\n  long version: " + codeValue(head, "long") + "\n  go version: go1.26.6"
}
