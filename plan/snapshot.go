package plan

import (
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// Snapshot is all that was observed, at one moment.
type Snapshot struct {
	Taken   time.Time                         // when; by this a hold is over or not
	Servers []inventory.Server                // all servers of the project in the configured zones
	Nodes   inventory.Seen[[]inventory.Node]  // absent: the configuration has no cluster
	Cluster inventory.Seen[inventory.Cluster] // so here
	Pins    []Pin                             // host keys known from earlier runs
	Hosts   map[string]HostSeen               // by server id; a host that was not asked is missing
	Lock    *Lock                             // nil: nobody but we holds it, or no cluster keeps one
}

// Pin is a host key that was accepted once. It is keyed by server id and name,
// so that a pin without its server is a witness of a server that vanished or
// was renamed by hand.
type Pin struct {
	ServerID string
	Name     string
	Key      string // "ssh-ed25519 AAAA…", as in an authorized_keys file
	Since    time.Time
}

// HostSeen is one host as SSH showed it.
type HostSeen struct {
	Trouble *Trouble // why nothing was learnt; everything below is then empty

	At          time.Time // when it had answered, by this machine's clock; zero: not known
	Path        string    // how it was reached: public, tailscale, and through which jump hosts
	Key         string    // host key, "type base64"
	Fingerprint string    // of the host key, SHA256:…
	Pinned      bool      // the key was known before
	Root        bool      // root is to be had without a password

	Serial    inventory.Seen[string]
	OSVersion inventory.Seen[string] // for example 26.3
	Marker    inventory.Seen[Marker]
	Claim     inventory.Seen[Claim]
	Pending   []StepID  // steps that an earlier run began and never proved
	Undone    *Undone   // the change that the host took back last; nil: none, or a later one was confirmed
	Entered   *Entered  // the run that entered it last; nil: none
	Refusals  []Refusal // passwords that were tried in vain; not recorded
	Password  *Password // nil: nobody has looked for one, as nothing needs it
	Facts     Facts
}

// Claim is /etc/macfleet/claim.json on a host: the half of a claim that is
// created exclusively, before the marker. The host is the arbiter of a race.
type Claim struct {
	Configuration string `json:"configuration"`
	Environment   string `json:"environment"`
	Name          string `json:"name"` // the name the server gets
	ServerID      string `json:"server_id"`
	Nonce         string `json:"nonce"`
}

// Same reports whether two claims are the same claim, made by one run or by an
// earlier one that broke off: the nonce tells runs apart, not claims.
func (c Claim) Same(other Claim) bool {
	c.Nonce, other.Nonce = "", ""
	return c == other
}

// Trouble says why a host could not be asked or must not be worked on, and what
// a person can do.
type Trouble struct {
	Code   string // stable, for programs
	Text   string // what happened, in words
	Remedy string // what to type or do next
}
