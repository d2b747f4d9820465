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
	// Connect opens a connection. An error that says what kept it has a method
	// Trouble() *plan.Trouble.
	Connect(context.Context, Target) (Host, error)
}

// Target is a host to connect to.
type Target struct {
	Server inventory.Server
	Name   string // for messages, where it is not the server's
	// Trust is what is known of its key. Where that is nothing at all, any key is taken.
	Trust plan.Trust
	// Run is whose changes go over the connection: the host is entered, and refuses
	// whatever this run sends once a newer one entered. nil: nothing is changed.
	Run *plan.Run
}

// Host is a connection to one host. One goroutine at a time uses it.
type Host interface {
	// Observe asks all questions, those after the host's identity first. It changes
	// nothing. What could not be learnt is unread; a lost connection is the Trouble.
	Observe(context.Context, []plan.Probe) plan.HostSeen
	// Probe asks some questions. It changes nothing. root says whether root can be had.
	Probe(context.Context, []plan.Probe) (facts plan.Facts, root bool, err error)
	// Do does one task. A script that ended with another exit code than 0 is an error,
	// and its answer is returned beside it.
	Do(context.Context, Task) (plan.Answer, error)
	// Deliver brings an artifact to the host, unless it is there.
	Deliver(context.Context, plan.Delivery, Source) error
	// Close tells the host that the run is done with it, unless ctx has ended, and ends
	// the connection.
	Close(context.Context)
}

// Source opens an artifact's bytes and says how many there are.
type Source func() (io.ReadCloser, int64, error)

// Task is one thing that is done on a host, as data: one of the types below.
type Task interface{ task() }

// RunChange runs a step's change: guarded where it may cut the line, under launchd
// where it takes long.
type RunChange struct {
	Step   plan.StepID
	Change plan.Change
	Input  secret.Value // what the script reads, where Change.Input names a kind
}

// TakeClaim creates the claim on the host, which only one of several runs can do.
// Claim is then what stands there: the given one, or the one that came first.
type TakeClaim struct{ Claim *plan.Claim }

// DropClaim takes back a claim that TakeClaim left in place, nonce and all, as long
// as no marker stands beside it.
type DropClaim struct {
	Claim plan.Claim
	Root  string // the file that gives root, which goes with the claim; empty: none does
}

// WriteMarker replaces the marker in one step, where it is still the one that this
// connection saw last; else the error is plan.ErrMarkerMoved.
type WriteMarker struct {
	Marker plan.Marker
	Proven plan.StepID // nothing of this step is pending afterwards; empty: no step
}

// TryPassword tries the login user's password once, and leaves a note under its seal
// where the host refuses it. Nothing is tried where the host remembers other tries.
type TryPassword struct {
	Password   secret.Value
	Seal       secret.Seal // of an earlier try that the host remembers; empty: there was none
	Remembered []plan.Refusal
	At         time.Time
}

// PruneArtifacts removes the artifacts that nothing on the host names any more.
type PruneArtifacts struct{}

func (RunChange) task()      {}
func (TakeClaim) task()      {}
func (DropClaim) task()      {}
func (WriteMarker) task()    {}
func (TryPassword) task()    {}
func (PruneArtifacts) task() {}

// passwordBusy is how long a host may say plan.ErrPasswordBusy because of one try: the lock
// of a run that died counts for 70 s, a bit more than a script may take.
const passwordBusy = 75 * time.Second

// Pins are the host keys that earlier runs have pinned.
type Pins interface {
	All() ([]plan.Pin, error)
	// Update replaces the pins by what change makes of them, in one step.
	Update(change func([]plan.Pin) []plan.Pin) error
}

// Recalling pins know more than what is kept: what there is of pins that were lost. Recall is
// about the last answer of All.
type Recalling interface {
	Recall() Recollection
}

// Recollection is what is left of pins beside those that are kept.
type Recollection struct {
	Remembered []plan.Pin        // this machine was told of them once, and they are kept nowhere
	Lost       *inventory.Object // their place in the cluster, which is not there; nil: it is, or they are kept in a file
	Unread     string            // why they could not be read where they are kept, so that this machine's stand for them
}
