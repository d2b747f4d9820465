package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet"
)

// The codes that are raised here.
var (
	CodeApplyInProgress = NewCode("apply-in-progress", Notice, "another apply is running",
		"wait until it ends: macfleet lock status (what is shown here may change)")
	codeLockUnread = NewCode("lock-unread", Warning, "it is unknown whether another apply is running",
		"macfleet init cluster (grants permission to read Leases in macfleet's namespace)")
	codeApplyBrokeOff = NewCode("apply-broke-off", Warning, "an apply was interrupted and did not release its lock",
		"macfleet apply (waits until the lock has expired, then resumes)")
)

// Run names one apply: its lock, record, hosts and cordons carry it.
type Run struct {
	ID    string `json:"id"`    // random letters and digits, in lower case
	Who   string `json:"who"`   // user@machine, or the name that a CI job has
	Epoch int64  `json:"epoch"` // rises with every run that takes the lock; 0: it has none yet
	// Started is when the command started, by the clock of the machine that runs it.
	Started time.Time `json:"started,omitzero"`
}

// MaxEpoch is the highest epoch that is accepted from hosts. It leaves half of the nine-digit numbers free
// above, whatever hosts report.
const MaxEpoch = 500_000_000

// MarkerRun is the run that wrote a marker last.
type MarkerRun struct {
	ID    string    `json:"id"`
	Epoch int64     `json:"epoch"`
	Who   string    `json:"who"`
	At    time.Time `json:"at"` // when the run started, by the clock of the machine that ran it
}

// Marked returns the run as markers store it; nil for a run without an id.
func (r Run) Marked() *MarkerRun {
	if r.ID == "" {
		return nil
	}
	return &MarkerRun{ID: r.ID, Epoch: r.Epoch, Who: r.Who, At: r.Started.UTC().Truncate(time.Second)}
}

// Entered is the run that entered a host last, as the host recorded it.
type Entered struct {
	ID    string        `json:"id"`
	Who   string        `json:"who"`
	Epoch int64         `json:"epoch"`
	At    time.Time     `json:"at"`    // when it entered, by the host's clock
	Alone bool          `json:"alone"` // the lock is on the host, as there is no cluster
	Held  bool          `json:"held"`  // it has not left, and its last command is recent
	Idle  time.Duration `json:"idle_nanoseconds"`
}

// Lock is the lock of a configuration and environment, as read once.
type Lock struct {
	Run     Run       `json:"run"`            // who holds it, or held it last
	Since   time.Time `json:"since"`          // when they took it, by their clock
	Renewed time.Time `json:"renewed"`        // likewise
	Alive   bool      `json:"alive"`          // it was renewed recently, by the reader's clock
	Free    bool      `json:"free,omitempty"` // it was released; the run is the one that held it last
	// ClusterUID is the uid of the cluster that the run saw; empty: none, or an older macfleet took the lock.
	ClusterUID string `json:"cluster_uid,omitempty"`
	Cluster    string `json:"cluster,omitempty"` // what that cluster was called then, for people
	Unread     string `json:"unread,omitempty"`  // why it could not be read; all else is then empty
}

// Epoch returns the highest epoch that hosts report, within MaxEpoch: of runs that entered them, and of those
// that wrote their markers. 0: none.
func (p *Plan) Epoch() int64 {
	var out int64
	for i := range p.Hosts {
		out = max(out, p.Hosts[i].lastEpoch())
	}
	return out
}

// lastEpoch is the epoch of the run that changed the host last, 0 if unknown.
func (h *Host) lastEpoch() int64 {
	var out int64
	m, _ := h.Seen.Marker.Get()
	marked, entered := cmp.Or(m.Run, &MarkerRun{}), cmp.Or(h.Seen.Entered, &Entered{})
	for _, epoch := range []int64{marked.Epoch, entered.Epoch} {
		if epoch <= MaxEpoch {
			out = max(out, epoch)
		}
	}
	return out
}

// inProgress says which apply runs while this plan is made. Without a lock in a cluster, the hosts show it.
func inProgress(owner fleet.Owner, snap Snapshot) []Trouble {
	cfg := owner.String()
	var out []Trouble
	switch l := snap.Lock; {
	case l == nil || l.Free:
	case l.Unread != "":
		out = append(out, *codeLockUnread.Trouble("it is unknown whether another apply is running: " + l.Unread))
	default:
		t := CodeApplyInProgress.Trouble(fmt.Sprintf("%s is applying %s since %s (run %s)", l.Run.Who, cfg, clockTime(l.Since), l.Run.ID))
		if !l.Alive {
			t = codeApplyBrokeOff.Trouble(fmt.Sprintf("an apply seems to have been interrupted: %s took the lock of %s at %s (run %s) and last renewed it at %s",
				l.Run.Who, cfg, clockTime(l.Since), l.Run.ID, clockTime(l.Renewed)))
		}
		out = append(out, *t)
	}
	held := make(map[string]*Entered) // by run id
	for _, h := range snap.Hosts {
		if e := h.Entered; e != nil && e.Alone && e.Held && (held[e.ID] == nil || e.At.Before(held[e.ID].At)) {
			held[e.ID] = e
		}
	}
	for _, id := range slices.Sorted(maps.Keys(held)) {
		e := held[id]
		out = append(out, *CodeApplyInProgress.Trouble(fmt.Sprintf("%s is changing hosts of %s since %s (run %s)", e.Who, cfg, clockTime(e.At), e.ID)))
	}
	return out
}

// clockTime writes a moment for people, in a form that is the same everywhere.
func clockTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }
