package plan

import (
	"fmt"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// Snapshot is all that was observed, at one moment.
type Snapshot struct {
	Taken   time.Time                         `json:"taken"`   // when; decides whether a hold has expired
	Servers []inventory.Server                `json:"servers"` // all servers of the project in the configured zones
	Nodes   inventory.Seen[[]inventory.Node]  `json:"nodes"`   // absent: the configuration has no cluster
	Cluster inventory.Seen[inventory.Cluster] `json:"cluster"` // likewise
	Pins    []Pin                             `json:"pins"`    // host keys known from earlier runs
	Hosts   map[string]HostSeen               `json:"hosts"`   // by server id; hosts that were not contacted are missing
	// Account is what the provider's account has elsewhere; nil: no server is missing, so it was not read.
	Account *inventory.Account `json:"account,omitempty"`
	// Catalogue is what the provider rents and installs; nil: no action needs it, or it could not be read.
	Catalogue *inventory.Catalogue `json:"catalogue,omitempty"`
	// CatalogueUnread says why the catalogue could not be read; empty: it was, or nothing needs it.
	CatalogueUnread string `json:"catalogue_unread,omitempty"`
	// Peers are the services that keep an entry for each host.
	Peers PeersSeen `json:"peers,omitempty"`
	// Keyring is the SSH keys that installed servers accept; nil: nothing is installed, so it was not read.
	Keyring *Keyring `json:"keyring,omitempty"`
	// RenameRight says whether the API key may rename servers; nil: no action needs it, so it was not requested.
	RenameRight *RenameRight `json:"rename_right,omitempty"`
	// FleetKeys are the new and the previous key while the fleet's SSH key is rotated; else empty.
	FleetKeys []FleetKey `json:"fleet_keys,omitempty"`
	// Released are the pins of servers that are back in the pool. Pins has none of them.
	Released []Pin `json:"released,omitempty"`
	// Remembered are pins that this machine saw once, and that no stored pin ends.
	Remembered []Pin `json:"remembered_pins,omitempty"`
	// PinsLost is the place of the pins in the cluster, if it is missing; nil: it exists, or the pins are in
	// a file.
	PinsLost *inventory.Object `json:"pins_lost,omitempty"`
	// PinsUnread says why the pins could not be read from the cluster, so that this machine's copy is used;
	// empty: they could.
	PinsUnread string `json:"pins_unread,omitempty"`
	// Met are the ids of servers known only from the record of an earlier run.
	Met  []string `json:"met,omitempty"`
	Lock *Lock    `json:"lock,omitempty"` // nil: held by this run only, or there is no lock in a cluster
	// Asked are the stages that a person asked for in this run, by server id, beyond those that the pins store.
	Asked map[string]Stage `json:"-"`
	// Former are the owners, as names start with them, under which this directory was applied before, sorted:
	// a configuration may have been renamed.
	Former []string `json:"former_owners,omitempty"`
}

// HostSeen is one host as read over SSH.
type HostSeen struct {
	Trouble *Trouble `json:"trouble,omitempty"` // why nothing was read; everything below is then empty

	At          time.Time `json:"at,omitzero"` // when it had answered, by this machine's clock; zero: unknown
	Path        string    `json:"path"`        // how it was reached: the path's name, and through which jump hosts
	Key         string    `json:"key"`         // host key, "type base64"
	Fingerprint string    `json:"fingerprint"` // of the host key, SHA256:…
	Pinned      bool      `json:"pinned"`      // the key was pinned before
	Root        bool      `json:"root"`        // passwordless sudo works
	// LoginKey is the fingerprint of the SSH key that the host accepted, SHA256:…; empty: unknown.
	LoginKey string `json:"login_key,omitempty"`
	// Lists are the fingerprints of the fleet's keys that the files list which sshd reads; it is read only while the key is rotated.
	Lists inventory.Seen[[]string] `json:"lists_keys,omitzero"`

	Serial    inventory.Seen[string] `json:"serial"`
	OSVersion inventory.Seen[string] `json:"os_version"` // for example 26.3
	Marker    inventory.Seen[Marker] `json:"marker"`
	Claim     inventory.Seen[Claim]  `json:"claim"`
	Pending   []StepID               `json:"pending,omitempty"` // steps that an earlier run started and never verified
	Undone    *Undone                `json:"undone,omitempty"`  // the change that the host rolled back last; nil: none, or a later one was confirmed
	Armed     *Armed                 `json:"armed,omitempty"`   // the change that the host is about to roll back; nil: none
	Entered   *Entered               `json:"entered,omitempty"` // the run that entered it last; nil: none
	// Jobs are launchd jobs of other systems that control Macs; unread without a reason: they were not read.
	Jobs inventory.Seen[[]Job] `json:"jobs,omitzero"`
	// Diagnosis is the provider's look at a server that does not answer; nil: none was made, or it could not be
	// read.
	Diagnosis       *inventory.Diagnosis `json:"diagnosis,omitempty"`
	DiagnosisUnread string               `json:"diagnosis_unread,omitempty"` // why it could not be read
	Refusals        []Refusal            `json:"-"`                          // passwords that the host refused; not recorded
	Password        *Password            `json:"password,omitempty"`         // nil: it was not looked up, as nothing needs it
	Facts           Facts                `json:"facts,omitempty"`
}

// Claim is /etc/macfleet/claim.json on a host: the half of a claim that is created exclusively, before the
// marker. It decides between two runs.
type Claim struct {
	Configuration string `json:"configuration"`
	Environment   string `json:"environment"`
	Name          string `json:"name"` // the name the server gets
	ServerID      string `json:"server_id"`
	Nonce         string `json:"nonce"`
}

// Same reports whether two claims are equal, made by one run or by an earlier one that was interrupted: the
// nonce identifies runs, not claims.
func (c Claim) Same(other Claim) bool {
	c.Nonce, other.Nonce = "", ""
	return c == other
}

// Trouble says why a host could not be read or must not be changed, and what a person can do.
type Trouble struct {
	Code   Code   `json:"code"`      // stable, for programs
	Text   string `json:"diagnosis"` // what happened, in words
	Remedy string `json:"remedy"`    // one command or one action
}

// Error names code, observation and remedy.
func (t *Trouble) Error() string { return t.Code.String() + ": " + t.Text + "; " + t.Remedy }

// Undone is a change that a host rolled back because it was not confirmed over a new connection in time.
type Undone struct {
	Step StepID    `json:"step"`
	At   time.Time `json:"at"`
	Why  string    `json:"why"`  // in the host's words
	Exit int       `json:"exit"` // of the script that restored the earlier state
}

// Armed is a change that was not confirmed yet. An interrupted run leaves one: what is read of its step may
// be rolled back a moment later.
type Armed struct {
	Step StepID `json:"step"`
	Left int    `json:"seconds"` // until the host rolls it back; 0: it is doing so
}

// Text says what the host is about to do.
func (a Armed) Text() string {
	what := "a change"
	if a.Step != "" {
		what += " of " + string(a.Step)
	}
	if a.Left == 0 {
		return what + " was not confirmed; the host is rolling it back"
	}
	return fmt.Sprintf("%s is not confirmed yet; the host rolls it back in %d s", what, a.Left)
}

// Undo says whether the host would roll back an action by itself; empty for an action that cannot cut the
// connection.
func (a Action) Undo() string {
	for _, c := range a.Changes {
		switch g := c.Guard; {
		case g == nil:
		case g.Restore == nil:
			return "not armed: " + g.Why
		default:
			return "armed; the host rolls it back unless a new connection confirms it"
		}
	}
	return ""
}
