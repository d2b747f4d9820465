// Package hosts is the only way to a Mac: it dials, checks host keys, asks all
// questions of a host in one exec, and runs changes. Nothing else speaks SSH.
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

// Dial opens a TCP connection; it is net.Dialer.DialContext outside tests and
// the sandbox.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// DefaultStarts is how many connections may be under way at once. Each goes to a Mac of
// its own, and those behind a jump host share one connection to it; so the limit is for
// the line, and for the CPU here. Far hosts take a second each to let somebody in.
const DefaultStarts = 192

// DefaultUploads is how many files may be on their way at once: they share one
// line out of an office.
const DefaultUploads = 4

// Deadlines bound every phase of a conversation.
type Deadlines struct {
	Dial      time.Duration // until the TCP connection stands
	Handshake time.Duration // from there until the authentication is done
	Question  time.Duration // one probe, on the host; whole seconds, at least one
	Change    time.Duration // one change, on the host; whole seconds, at least one
	Exchange  time.Duration // one exec with all its questions, beyond the changes' own time
	Silence   time.Duration // without a byte from the host, keepalive answers included
	Undo      time.Duration // until a change that may cut the line is confirmed; whole seconds
	Return    time.Duration // beyond that, until a host that takes a change back or restarts answers again
	Job       time.Duration // one detached change
}

// DefaultUndo is how long a change may stay unconfirmed.
const DefaultUndo = 60 * time.Second

// DefaultDeadlines are made for hosts on another continent. The handshake's is
// shorter than that of silence, so that a host which never answers is always
// ended by the same one.
func DefaultDeadlines() Deadlines {
	return Deadlines{Dial: 10 * time.Second, Handshake: 15 * time.Second, Question: 10 * time.Second,
		Change: 60 * time.Second, Exchange: 60 * time.Second, Silence: 20 * time.Second,
		Undo: DefaultUndo, Return: 5 * time.Minute, Job: time.Hour}
}

// Options are what a Client needs. A zero field is as usual.
type Options struct {
	User      string     // login user
	Key       ssh.Signer // the configuration's key; nil: it names none
	KeySource string     // where Key was found, for messages
	Dial      Dial
	Deadlines Deadlines
	Prologue  string // in front of every script
	// Config returns what the person's own ssh configuration says of a machine that has one
	// or more names: it is sshconfig.Config.Lookup; nil: none counts.
	Config   func(user string, names ...string) (sshconfig.Settings, error)
	Agent    string                                         // socket of the ssh agent; empty: none is asked
	Via      []string                                       // paths in order of preference; usually Public alone
	Tailnet  func(context.Context) (tailnet.Devices, error) // what the tailnet has; usually what this machine's Tailscale says
	Starts   int                                            // connections that are not logged in yet, at once
	Uploads  int                                            // files on their way to hosts at once
	Progress func(Progress)                                 // of uploads; called often, from many goroutines
	Log      *slog.Logger                                   // of connections and execs, without what was said
	// ArtifactFolder says where a server keeps its artifacts, by its id; nil: in
	// fleet.ArtifactFolder. Many servers on one machine need a folder each.
	ArtifactFolder func(server string) string
	Poll           time.Duration // between two looks at what goes on on a host
}

// Client connects to hosts. It is safe for concurrent use.
type Client struct {
	opts    Options
	stats   stats
	mu      sync.Mutex
	spent   map[string]Spent // by host id, as a host gets another name with a claim
	starts  chan struct{}    // holds one for each connection that is not logged in yet
	uploads chan struct{}    // holds one for each file on its way
	turns   turns
	files   sync.Map // what IdentityFiles hold, by path: each is read once
	agents  sync.Map // the keys of ssh agents, by socket: each is asked once
	epochs  sync.Map // what hosts gave to runs that had none, an int64 by host and run
	jumps   jumps
	tailnet localTailnet
	now     func() time.Time
}

// usual is what Options leave open.
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

// New returns a Client. What Options leave open is as usual.
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
	Connections int64 // TCP connections that stood
	Execs       int64
	Turns       int64 // round trips: how often bytes came in after bytes went out
	Sent        int64 // bytes on the wire
	Received    int64
}

type stats struct{ connections, execs, turns, sent, received atomic.Int64 }

// Stats returns the counts so far.
func (c *Client) Stats() Stats {
	return Stats{Connections: c.stats.connections.Load(), Execs: c.stats.execs.Load(), Turns: c.stats.turns.Load(),
		Sent: c.stats.sent.Load(), Received: c.stats.received.Load()}
}

// Spent is the time that went into one host, over all of its connections.
type Spent struct {
	Host      string
	Dial      time.Duration // until TCP connections stood, or did not
	Handshake time.Duration // SSH handshakes, authentication included
	Exec      time.Duration // execs
}

// Total returns the sum of all phases.
func (s Spent) Total() time.Duration { return s.Dial + s.Handshake + s.Exec }

// spend enters the time since a phase of a host began. Of the phases it knows
// Dialing, Handshaking and Talking.
func (c *Client) spend(t Target, in Phase, began time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.spent[t.id()]
	s.Host = t.name()
	spent := map[Phase]*time.Duration{Dialing: &s.Dial, Handshaking: &s.Handshake, Talking: &s.Exec}[in]
	*spent += time.Since(began)
	c.spent[t.id()] = s
}

// Spent returns the time that went into each host so far, sorted by name.
func (c *Client) Spent() []Spent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.spent), func(a, b Spent) int { return strings.Compare(a.Host, b.Host) })
}
