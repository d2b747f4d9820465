package plan

import (
	"fmt"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// Snapshot is all that was observed, at one moment.
type Snapshot struct {
	Taken   time.Time                         `json:"taken"`   // when; by this a hold is over or not
	Servers []inventory.Server                `json:"servers"` // all servers of the project in the configured zones
	Nodes   inventory.Seen[[]inventory.Node]  `json:"nodes"`   // absent: the configuration has no cluster
	Cluster inventory.Seen[inventory.Cluster] `json:"cluster"` // so here
	Pins    []Pin                             `json:"pins"`    // host keys known from earlier runs
	Hosts   map[string]HostSeen               `json:"hosts"`   // by server id; a host that was not asked is missing
	// Account is what the provider's account holds elsewhere; nil: no server is missing, so nobody asked.
	Account *inventory.Account `json:"account,omitempty"`
	// Remembered are pins that this machine was told of once, and that are kept nowhere any more.
	Remembered []Pin `json:"remembered_pins,omitempty"`
	// PinsLost is the place of the pins in the cluster, where it is not there; nil: it is, or a file is their place.
	PinsLost *inventory.Object `json:"pins_lost,omitempty"`
	// PinsUnread says why the pins could not be read where they are kept, so that those of
	// this machine stand in their place; empty: they could.
	PinsUnread string `json:"pins_unread,omitempty"`
	// Met are the ids of servers that nobody else knows and a recorded run has worked on.
	Met  []string `json:"met,omitempty"`
	Lock *Lock    `json:"lock,omitempty"` // nil: nobody but we holds it, or no cluster keeps one
	// Former are the owners, as names begin with them, as which this very directory was applied
	// before, sorted: a configuration's name may have been changed.
	Former []string `json:"former_owners,omitempty"`
}

// Pin is a host key that was accepted once. By its server id and name it bears witness of
// a server that vanished or was renamed by hand.
type Pin struct {
	ServerID string    `json:"server_id"`
	Name     string    `json:"name"`
	Key      string    `json:"key"` // "ssh-ed25519 AAAA…", as in an authorized_keys file
	Since    time.Time `json:"since"`
	// Unfinished says that the claim or adoption which pinned it has not written a marker yet.
	Unfinished bool `json:"unfinished,omitempty"`
}

// HostSeen is one host as SSH showed it.
type HostSeen struct {
	Trouble *Trouble `json:"trouble,omitempty"` // why nothing was learnt; everything below is then empty

	At          time.Time `json:"at,omitzero"` // when it had answered, by this machine's clock; zero: not known
	Path        string    `json:"path"`        // how it was reached: the path's name, and through which jump hosts
	Key         string    `json:"key"`         // host key, "type base64"
	Fingerprint string    `json:"fingerprint"` // of the host key, SHA256:…
	Pinned      bool      `json:"pinned"`      // the key was known before
	Root        bool      `json:"root"`        // root is to be had without a password

	Serial    inventory.Seen[string] `json:"serial"`
	OSVersion inventory.Seen[string] `json:"os_version"` // for example 26.3
	Marker    inventory.Seen[Marker] `json:"marker"`
	Claim     inventory.Seen[Claim]  `json:"claim"`
	Pending   []StepID               `json:"pending,omitempty"`  // steps that an earlier run began and never proved
	Undone    *Undone                `json:"undone,omitempty"`   // the change that the host took back last; nil: none, or a later one was confirmed
	Armed     *Armed                 `json:"armed,omitempty"`    // the change that the host is about to take back; nil: none
	Entered   *Entered               `json:"entered,omitempty"`  // the run that entered it last; nil: none
	Refusals  []Refusal              `json:"-"`                  // passwords that were tried in vain; not recorded
	Password  *Password              `json:"password,omitempty"` // nil: nobody has looked for one, as nothing needs it
	Facts     Facts                  `json:"facts,omitempty"`
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
	Code   Code   `json:"code"`      // stable, for programs
	Text   string `json:"diagnosis"` // what happened, in words
	Remedy string `json:"remedy"`    // what to type or do next
}

// Error names code, observation and remedy.
func (t *Trouble) Error() string { return t.Code.String() + ": " + t.Text + "; " + t.Remedy }

// Undone is a change that a host took back by itself, because nobody confirmed
// over a new connection that it can still be reached.
type Undone struct {
	Step StepID    `json:"step"`
	At   time.Time `json:"at"`
	Why  string    `json:"why"`  // in the host's words
	Exit int       `json:"exit"` // of the script that restored the state from before
}

// Armed is a change that nobody has confirmed yet. A run that was killed leaves one, and what is observed of its step
// is then what was before it a moment later.
type Armed struct {
	Step StepID `json:"step"`
	Left int    `json:"seconds"` // until the host takes it back; 0: it is doing so
}

// Text says what the host is about to do.
func (a Armed) Text() string {
	what := "a change"
	if a.Step != "" {
		what += " of " + string(a.Step)
	}
	if a.Left == 0 {
		return what + " was never confirmed; the host takes it back now"
	}
	return fmt.Sprintf("%s is not confirmed; the host takes it back in %d s", what, a.Left)
}

// Undo says whether the host takes what an action does back by itself; empty for an
// action that cannot lock anybody out.
func (a Action) Undo() string {
	for _, c := range a.Changes {
		switch g := c.Guard; {
		case g == nil:
		case g.Restore == nil:
			return "not armed: " + g.Why
		default:
			return "armed; the host takes it back by itself unless a new connection confirms it"
		}
	}
	return ""
}
