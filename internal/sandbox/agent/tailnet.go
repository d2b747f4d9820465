package agent

import "time"

// Tailnets are the control servers that Macs reach.
type Tailnets interface {
	// Control returns the control server at an address; the empty one is Tailscale's own. The error is what a program gets
	// that cannot reach it.
	Control(url string) (Control, error)
}

// Control is a control server, as tailscaled on a Mac talks to it. Node keys are any unique texts.
type Control interface {
	// Register makes a device, or finds the one of a machine key. Errors are RefusedNode for an answer of the server; others mean that
	// it cannot be reached or stays silent.
	Register(NodeRegistration) (Node, error)
	// Node returns the device of a node key as the server pushes it to its daemon now. The daemon calls it whenever
	// it would have an open connection: the device then counts as connected.
	Node(NodeContact) (Node, error)
	// Disconnect notes that the daemon has ended.
	Disconnect(nodeKey string) error
	// Logout expires a node key at once; the device stays listed.
	Logout(nodeKey string) error
	// Peers are the other devices that a device may see, by the policy.
	Peers(nodeKey string) ([]Node, error)
}

// NodeContact is a daemon that polls its control server.
type NodeContact struct {
	MachineKey string
	NodeKey    string
	HostName   string // wanted; a change renames the device if the server lets it
	Version    string // of the running daemon, long form
	OS         string
	Port       int
}

// NodeRegistration is what a daemon sends to join.
type NodeRegistration struct {
	NodeContact
	AuthKey   string   // empty: an existing device is taken up again
	Tags      []string // advertised
	Ephemeral bool
}

// Node is a device of a tailnet.
type Node struct {
	ID           string
	Name         string // first label of the MagicDNS name
	Suffix       string // for example tail1234.ts.net
	HostName     string
	Addresses    []string // IPv4 first
	Tags         []string
	Approved     bool // false: NeedsMachineAuth
	Expired      bool
	Online       bool
	KeyExpiry    time.Time // zero: never
	MagicDNS     bool      // of the tailnet
	Capabilities []string
}

// RefusedNode is a control server's refusal, in its words.
type RefusedNode struct {
	Text string // for example: invalid key: API key does not exist
	Gone bool   // the device does not exist (any more)
	Late bool   // a daemon that runs does not get this answer before its next start
}

// Error returns the server's words.
func (r RefusedNode) Error() string { return r.Text }
