// Package hosts is the only package that connects to Macs over SSH: it dials, checks host keys,
// runs all probes of a host in one exec, and runs changes.
package hosts

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts/sshconfig"
	"github.com/macfleet/macfleet/hosts/tailnet"
)

// Dial opens a TCP connection: net.Dialer.DialContext, except in tests and the sandbox.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// DefaultStarts limits concurrent logins, because of this machine's CPU and network. A login
// to a distant host takes about a second.
const DefaultStarts = 192

// DefaultUploads limits concurrent uploads, which share one uplink.
const DefaultUploads = 4

// Deadlines are the time limits of all phases.
type Deadlines struct {
	Dial      time.Duration // until the TCP connection is open
	Handshake time.Duration // from there until the login is done
	Question  time.Duration // one probe, on the host; whole seconds, at least one
	Change    time.Duration // one change, on the host; whole seconds, at least one
	Exchange  time.Duration // one exec with all its probes, beyond the changes' own time
	Silence   time.Duration // without data from the host, including keepalive answers
	Undo      time.Duration // until a change that may cut the connection is confirmed; whole seconds
	Return    time.Duration // beyond that, until a host that undoes a change or restarts answers again
	Job       time.Duration // one detached change
}

// DefaultUndo is the time limit for confirming a change.
const DefaultUndo = 60 * time.Second

// DefaultDeadlines suit hosts on another continent. Handshake is shorter than Silence, so that
// a host that never answers always fails with the same one.
func DefaultDeadlines() Deadlines {
	return Deadlines{Dial: 10 * time.Second, Handshake: 15 * time.Second, Question: 10 * time.Second,
		Change: 60 * time.Second, Exchange: 60 * time.Second, Silence: 20 * time.Second,
		Undo: DefaultUndo, Return: 5 * time.Minute, Job: time.Hour}
}

// Options configure a Client. A zero field means the default.
type Options struct {
	User      string     // login user
	Key       ssh.Signer // the configuration's key; nil: none
	KeySource string     // source of Key, for messages
	Previous  ssh.Signer // offered after Key to hosts that do not accept that one yet; nil: none
	Dial      Dial
	Deadlines Deadlines
	Prologue  string // precedes every script
	// Config returns the settings of the person's own ssh configuration for a machine with one
	// or more names (sshconfig.Config.Lookup); nil: it is ignored.
	Config   func(user string, names ...string) (sshconfig.Settings, error)
	Agent    string                                         // socket of the ssh agent; empty: none
	Via      []string                                       // paths in order of preference; usually only Public
	Tailnet  func(context.Context) (tailnet.Devices, error) // devices of the tailnet; by default from this machine's Tailscale
	Starts   int                                            // concurrent logins
	Uploads  int                                            // concurrent uploads
	Progress func(Progress)                                 // of uploads; called often and concurrently
	Log      *slog.Logger                                   // logs connections and execs, without their content
	// ArtifactFolder returns a server's artifact folder by its id; nil:
	// fleet.ArtifactFolder. Simulated servers on one machine need separate folders.
	ArtifactFolder func(server string) string
	Poll           time.Duration // polling interval on a host
}

// Client connects to hosts. It is safe for concurrent use.
type Client struct {
	opts    Options
	stats   stats
	mu      sync.Mutex
	spent   map[string]Spent // by server id, as a claim renames the host
	starts  chan struct{}    // slots of logins
	uploads chan struct{}    // slots of uploads
	turns   turns
	files   sync.Map // contents of IdentityFiles by path: each is read once
	agents  sync.Map // keys of ssh agents by socket: each is read once
	epochs  sync.Map // epochs assigned by hosts, an int64 by host and run
	jumps   jumps
	tailnet localTailnet
	now     func() time.Time
}

// usual returns the default Options.
func usual() Options {
	return Options{
		KeySource: "the configuration", Prologue: DefaultPrologue, Via: []string{Public},
		Dial: (&net.Dialer{}).DialContext, Config: (*sshconfig.Config)(nil).Lookup,
		Tailnet: tailnet.Ask, Deadlines: DefaultDeadlines(), Poll: 2 * time.Second, Starts: DefaultStarts, Uploads: DefaultUploads,
		Progress: func(Progress) {}, Log: slog.New(slog.DiscardHandler),
		ArtifactFolder: func(string) string { return fleet.ArtifactFolder },
	}
}

// complete sets the fields of a struct that are zero.
func complete(s, usual reflect.Value) {
	for i := range s.NumField() {
		if f := s.Field(i); f.Kind() == reflect.Struct {
			complete(f, usual.Field(i))
		} else if f.IsZero() {
			f.Set(usual.Field(i))
		}
	}
}

// New returns a Client.
func New(o Options) *Client {
	complete(reflect.ValueOf(&o).Elem(), reflect.ValueOf(usual()))
	c := &Client{opts: o, spent: make(map[string]Spent), now: time.Now,
		starts: make(chan struct{}, o.Starts), uploads: make(chan struct{}, o.Uploads)}
	c.tailnet.busy = make(chan struct{}, 1)
	c.jumps.all = make(map[string]*jump)
	c.jumps.ctx, c.jumps.end = context.WithCancel(context.Background())
	return c
}

// Stats counts what a Client has done.
type Stats struct {
	Connections int64 // opened TCP connections
	Execs       int64
	Turns       int64 // round trips
	Sent        int64 // bytes on the wire
	Received    int64
}

type stats struct{ connections, execs, turns, sent, received atomic.Int64 }

// Stats returns the counts so far.
func (c *Client) Stats() Stats {
	return Stats{Connections: c.stats.connections.Load(), Execs: c.stats.execs.Load(), Turns: c.stats.turns.Load(),
		Sent: c.stats.sent.Load(), Received: c.stats.received.Load()}
}

// Spent is the time spent on one host, over all its connections.
type Spent struct {
	Host      string
	Dial      time.Duration // TCP connections, successful or not
	Handshake time.Duration // SSH handshakes, authentication included
	Exec      time.Duration // execs
}

// Total returns the sum of all phases.
func (s Spent) Total() time.Duration { return s.Dial + s.Handshake + s.Exec }

// spend adds the time since a phase of a host started: Dialing, Handshaking or Talking.
func (c *Client) spend(t Target, in Phase, began time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.spent[t.id()]
	s.Host = t.name()
	spent := map[Phase]*time.Duration{Dialing: &s.Dial, Handshaking: &s.Handshake, Talking: &s.Exec}[in]
	*spent += time.Since(began)
	c.spent[t.id()] = s
}

// Spent returns the time spent on each host so far, sorted by name.
func (c *Client) Spent() []Spent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.spent), func(a, b Spent) int { return strings.Compare(a.Host, b.Host) })
}
