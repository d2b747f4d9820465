// Package hosts is the only way to a Mac: it dials, checks host keys, asks all
// questions of a host in one exec, and runs changes. Nothing else speaks SSH.
package hosts

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts/sshconfig"
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

// DefaultPoll is the time between two looks at what goes on on a host.
const DefaultPoll = 2 * time.Second

// Config is what a person's own ssh configuration says of a machine.
// *sshconfig.Config is one.
type Config interface {
	// Lookup returns what is said of a machine that has one or more names. An
	// error names file and line.
	Lookup(user string, names ...string) (sshconfig.Settings, error)
}

// Lookup finds the addresses of a name; it is net.DefaultResolver's outside
// tests and the sandbox.
type Lookup func(ctx context.Context, name string) ([]netip.Addr, error)

// Deadlines bound every phase of a conversation. A zero field means the value
// of DefaultDeadlines.
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

// DefaultDeadlines are made for hosts on another continent. The handshake's is
// shorter than that of silence, so that a host which never answers is always
// ended by the same one.
func DefaultDeadlines() Deadlines {
	return Deadlines{Dial: 10 * time.Second, Handshake: 15 * time.Second, Question: 10 * time.Second,
		Change: 60 * time.Second, Exchange: 60 * time.Second, Silence: 20 * time.Second,
		Undo: 60 * time.Second, Return: 5 * time.Minute, Job: time.Hour}
}

// Options are what a Client needs.
type Options struct {
	User      string     // login user
	Key       ssh.Signer // the configuration's key; nil: it names none
	KeySource string     // where Key was found, for messages; empty = "the configuration"
	Dial      Dial
	Deadlines Deadlines
	Prologue  string   // in front of every script; empty = DefaultPrologue
	Config    Config   // the person's own ssh configuration; nil: none counts
	Agent     string   // socket of the ssh agent; empty: none is asked
	Via       []string // paths in order of preference; empty = Public alone
	Lookup    Lookup
	Starts    int            // connections that are not logged in yet, at once; 0 = DefaultStarts
	Uploads   int            // files on their way to hosts at once; 0 = DefaultUploads
	Progress  func(Progress) // of uploads; called often, from many goroutines
	Log       *slog.Logger   // of connections and execs, without what was said
	// ArtifactFolder says where a server keeps its artifacts, by its id; nil: in
	// fleet.ArtifactFolder. Many servers on one machine need a folder each.
	ArtifactFolder func(server string) string
	Poll           time.Duration // between two looks at what goes on on a host; 0 = DefaultPoll
}

// Client connects to hosts. It is safe for concurrent use.
type Client struct {
	opts    Options
	stats   stats
	times   times
	starts  chan struct{} // holds one for each connection that is not logged in yet
	uploads chan struct{} // holds one for each file on its way
	turns   turns
	files   sync.Map // what IdentityFiles hold, by path: each is read once
	agents  sync.Map // the keys of ssh agents, by socket: each is asked once
	epochs  sync.Map // what hosts gave to runs that had none, an int64 by host and run
	jumps   jumps
	now     func() time.Time
}

// New returns a Client. What Options leave open has its default.
func New(o Options) *Client {
	d, usual := &o.Deadlines, DefaultDeadlines()
	d.Dial = cmp.Or(d.Dial, usual.Dial)
	d.Handshake = cmp.Or(d.Handshake, usual.Handshake)
	d.Question = cmp.Or(d.Question, usual.Question)
	d.Change = cmp.Or(d.Change, usual.Change)
	d.Exchange = cmp.Or(d.Exchange, usual.Exchange)
	d.Silence = cmp.Or(d.Silence, usual.Silence)
	d.Undo = cmp.Or(d.Undo, usual.Undo)
	d.Return = cmp.Or(d.Return, usual.Return)
	d.Job = cmp.Or(d.Job, usual.Job)
	o.Prologue = cmp.Or(o.Prologue, DefaultPrologue)
	o.KeySource = cmp.Or(o.KeySource, "the configuration")
	o.Starts = cmp.Or(o.Starts, DefaultStarts)
	o.Uploads = cmp.Or(o.Uploads, DefaultUploads)
	o.Poll = cmp.Or(o.Poll, DefaultPoll)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if len(o.Via) == 0 {
		o.Via = []string{Public}
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	if o.Lookup == nil {
		o.Lookup = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		}
	}
	if o.Config == nil {
		o.Config = (*sshconfig.Config)(nil)
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	if o.ArtifactFolder == nil {
		o.ArtifactFolder = func(string) string { return fleet.ArtifactFolder }
	}
	c := &Client{opts: o, starts: make(chan struct{}, o.Starts), uploads: make(chan struct{}, o.Uploads), now: time.Now}
	c.times.of = make(map[string]Spent)
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

// times are the Spent of every host by its id: its name changes with a claim.
type times struct {
	mu sync.Mutex
	of map[string]Spent
}

// spend enters the time since a phase of a host began. Of the phases it knows
// Dialing, Handshaking and Talking.
func (c *Client) spend(t Target, in Phase, began time.Time) {
	took := time.Since(began)
	c.times.mu.Lock()
	defer c.times.mu.Unlock()
	s := c.times.of[t.id()]
	s.Host = t.name()
	switch in {
	case Dialing:
		s.Dial += took
	case Handshaking:
		s.Handshake += took
	case Talking:
		s.Exec += took
	}
	c.times.of[t.id()] = s
}

// Spent returns the time that went into each host so far, sorted by name.
func (c *Client) Spent() []Spent {
	c.times.mu.Lock()
	defer c.times.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.times.of), func(a, b Spent) int { return strings.Compare(a.Host, b.Host) })
}
