package engine

import (
	"context"
	"io"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// Hosts connects to hosts.
type Hosts interface {
	// Connect opens a connection. Its errors may have a method Trouble() *plan.Trouble.
	Connect(context.Context, Target) (Host, error)
}

// Restarting is implemented by Hosts that remember which hosts refused the key.
type Restarting interface {
	// Restarted forgets that a host refused the key, because it was restarted through the provider.
	Restarted(context.Context, Target)
}

// Target is a host to connect to.
type Target struct {
	Server inventory.Server
	Name   string // for messages, if it is not the server's
	// Trust is what is known about its key. If nothing is known, any key is accepted.
	Trust plan.Trust
	// Run is the run whose changes go over the connection. The host refuses them once a newer
	// run has entered it. nil: the connection only reads.
	Run *plan.Run
}

// Host is a connection to one host. It must not be used concurrently.
type Host interface {
	// Observe runs all probes, those of the host's identity first. It changes nothing. What
	// could not be read is unread; a lost connection is the Trouble.
	Observe(context.Context, []plan.Probe) plan.HostSeen
	// Probe runs some probes. It changes nothing. root says whether sudo works.
	Probe(context.Context, []plan.Probe) (facts plan.Facts, root bool, err error)
	// Do performs one task. If a script fails, its answer is returned along with the error.
	Do(context.Context, Task) (plan.Answer, error)
	// Deliver uploads an artifact, unless the host has it.
	Deliver(context.Context, plan.Delivery, Source) error
	// Close notes on the host that the run is done with it, unless ctx is done, and closes the
	// connection.
	Close(context.Context)
}

// Source opens an artifact and returns its size.
type Source func() (io.ReadCloser, int64, error)

// Task is something to do on a host: one of the types below.
type Task interface{ task() }

// RunChange runs a step's change: with an undo if it may cut the connection, under launchd if
// it takes long.
type RunChange struct {
	Step   plan.StepID
	Change plan.Change
	Input  secret.Value // the script's input, if Change.Input names a kind
}

// TakeClaim creates the claim on the host atomically. Claim becomes the claim on the host:
// the given one, or an earlier one.
type TakeClaim struct{ Claim *plan.Claim }

// DropClaim removes exactly the given claim, unless the host has a marker.
type DropClaim struct {
	Claim plan.Claim
	Root  string // the sudoers file to remove with the claim; empty: none
}

// WriteMarker replaces the marker atomically if it is still the one this connection read last;
// otherwise the error is plan.ErrMarkerMoved.
type WriteMarker struct {
	Marker plan.Marker
	Proven plan.StepID // this step is no longer pending; empty: none
}

// TryPassword tries the login user's password once. If the host refuses it, the host keeps a
// note under its seal. Nothing is tried if the host has notes that the caller does not know.
type TryPassword struct {
	Password   secret.Value
	Seal       secret.Seal // of an earlier try that the host noted; empty: none
	Remembered []plan.Refusal
	At         time.Time
}

// AuthorizeKey adds the fleet's public key to the host under a comment, and verifies it by a login that offers no
// other key.
type AuthorizeKey struct{ Comment string }

// RetireKey removes the previous public key from the host, over a login that offers only the fleet's key.
type RetireKey struct{}

// PruneArtifacts deletes artifacts that no receipt on the host names.
type PruneArtifacts struct {
	Removed bool // also recent ones: what they belonged to was removed
}

// ReadBoot stores what names the host's present boot: after a restart it is another text.
type ReadBoot struct{ Boot *string }

// RestartHost restarts the host cleanly. The connection ends with it; only another boot shows that it was restarted.
type RestartHost struct{}

func (RunChange) task()      {}
func (ReadBoot) task()       {}
func (RestartHost) task()    {}
func (TakeClaim) task()      {}
func (DropClaim) task()      {}
func (WriteMarker) task()    {}
func (TryPassword) task()    {}
func (PruneArtifacts) task() {}
func (AuthorizeKey) task()   {}
func (RetireKey) task()      {}

// passwordBusy is how long one try can keep a host busy (plan.ErrPasswordBusy): the lock of a
// killed run expires after 70 s, slightly more than a script's time limit.
const passwordBusy = 75 * time.Second

// Pins stores pinned host keys.
type Pins interface {
	All() ([]plan.Pin, error)
	// Update replaces the pins with the result of change, atomically.
	Update(change func([]plan.Pin) []plan.Pin) error
}

// Recalling is implemented by pins that remember lost entries. Recall is about the last answer
// of All.
type Recalling interface {
	Recall() Recollection
}

// Recollection is what is known about pins in addition to the stored ones.
type Recollection struct {
	Remembered []plan.Pin        // seen by this machine earlier, but no longer stored
	Lost       *inventory.Object // their missing object in the cluster; nil: it exists, or they are in a file
	Unread     string            // why they could not be read, so that this machine's copy is used
}
