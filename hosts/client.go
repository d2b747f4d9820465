// Package hosts is the only way to a Mac: it dials, checks host keys, asks all
// questions of a host in one exec, and runs changes. Nothing else speaks SSH.
package hosts

import (
	"context"
	"log/slog"
	"net"
	"time"

	"golang.org/x/crypto/ssh"
)

// Dial opens a TCP connection; it is net.Dialer.DialContext outside tests and
// the sandbox.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

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
	Progress  func(Progress) // of uploads; called often, from many goroutines; nil: nobody wants it
	Log       *slog.Logger   // of connections and execs, without what was said; nil: nobody wants it
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
	keys    keyring
	epochs  epochs
	jumps   jumps
	now     func() time.Time
}

// New returns a Client.
func New(o Options) *Client {
	d := DefaultDeadlines()
	fill := func(v *time.Duration, def time.Duration) {
		if *v == 0 {
			*v = def
		}
	}
	fill(&o.Deadlines.Dial, d.Dial)
	fill(&o.Deadlines.Handshake, d.Handshake)
	fill(&o.Deadlines.Question, d.Question)
	fill(&o.Deadlines.Change, d.Change)
	fill(&o.Deadlines.Exchange, d.Exchange)
	fill(&o.Deadlines.Silence, d.Silence)
	fill(&o.Deadlines.Undo, d.Undo)
	fill(&o.Deadlines.Return, d.Return)
	fill(&o.Deadlines.Job, d.Job)
	fill(&o.Poll, DefaultPoll)
	if o.Prologue == "" {
		o.Prologue = DefaultPrologue
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	return newClient(o)
}
