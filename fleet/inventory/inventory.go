// Package inventory says what the providers see: plain data, without a trace of
// the provider's own types.
package inventory

import (
	"strings"
	"time"
)

// Seen is an observation: present with its value, absent, or unread with the
// reason. The zero Seen is unread without a reason, so that nothing counts as
// absent by accident.
type Seen[T any] struct {
	state state
	value T
	why   string
}

type state int

const (
	unread state = iota
	absent
	present
)

// Present says that v was seen.
func Present[T any](v T) Seen[T] { return Seen[T]{state: present, value: v} }

// Absent says that the thing was looked for and is not there.
func Absent[T any]() Seen[T] { return Seen[T]{state: absent} }

// Unread says that nobody knows, and why.
func Unread[T any](why string) Seen[T] { return Seen[T]{why: why} }

// Get returns the value; ok is false when it is absent or unread.
func (s Seen[T]) Get() (v T, ok bool) { return s.value, s.state == present }

// IsAbsent reports whether the thing is known not to be there.
func (s Seen[T]) IsAbsent() bool { return s.state == absent }

// IsUnread reports whether nobody knows.
func (s Seen[T]) IsUnread() bool { return s.state == unread }

// Why returns the reason of an unread observation.
func (s Seen[T]) Why() string { return s.why }

// Server is a Mac mini as Scaleway knows it.
type Server struct {
	ID        string
	Name      string
	Type      string // for example M2-L
	Zone      string
	Address   string // public IP
	OSFamily  string // family first installed, for example Tahoe; not what runs now
	Status    string // ready, starting, reinstalling, locked, …
	Delivered bool   // first provisioning is complete
	Created   time.Time
}

// Usable reports whether the provider says that the server can be worked on.
func (s Server) Usable() bool { return s.Status == "ready" && s.Delivered }

// ProviderID returns the Node's spec.providerID of this server.
func (s Server) ProviderID() string { return providerScheme + s.Zone + "/" + s.ID }

const providerScheme = "scw-applesilicon://"

// Node is a Mac mini as the cluster knows it.
type Node struct {
	Name       string
	UID        string
	ProviderID string
	Ready      Readiness // Unknown also where the last heartbeat is too long ago, whatever the condition says
	Why        string    // why it is not Ready
	Heard      time.Time // of its last heartbeat, by this machine's clock; zero: not known
	Cordoned   bool
	CordonedBy string // who cordoned it with macfleet; empty: nobody, or somebody else did
	CordonRun  string // the run of macfleet apply that cordoned it, and will open it again; empty: none
	Labels     map[string]string
	Capacity   Capacity
	// Hold is what its annotation says of a person who wants the host left alone; nil: nobody.
	Hold       *Hold
	HoldUnread string // why that annotation cannot be read; empty: it can, or there is none
}

// Capacity is what a Node offers to Pods.
type Capacity struct {
	CPU    int   // cores
	Memory int64 // bytes
	Pods   int
}

// ServerID returns the server id in the Node's providerID, or "".
func (n Node) ServerID() string {
	rest, ok := strings.CutPrefix(n.ProviderID, providerScheme)
	if !ok {
		return ""
	}
	_, id, _ := strings.Cut(rest, "/")
	return id
}

// Readiness is a Node's Ready condition.
type Readiness string

// The values of a Ready condition.
const (
	Ready        Readiness = "True"
	NotReady     Readiness = "False"
	ReadyUnknown Readiness = "Unknown"
)
