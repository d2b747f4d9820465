package engine

import (
	"time"

	"github.com/macfleet/macfleet/plan"
)

// EventType says what happened.
type EventType string

// The events of a run. Every Started is followed by a Done or a Failed of the
// same host and action.
const (
	Listed    EventType = "listed"    // the providers' lists were read
	Observing EventType = "observing" // Count hosts are about to be asked
	Observed  EventType = "observed"  // one host was asked
	Computed  EventType = "computed"  // the plan was made
	Started   EventType = "started"   // an action began
	Done      EventType = "done"      // an action ended and is proven
	Failed    EventType = "failed"    // an action ended otherwise; the host's others are left
	Skipped   EventType = "skipped"   // an action was not started
	Sending   EventType = "sending"   // an artifact is on its way to a host, Bytes of Size so far
	Waiting   EventType = "waiting"   // a host's Node is waited for
	NodeReady EventType = "ready"     // a host's Node is Ready; Failed where it is not in time
	HostBegun EventType = "begun"     // the work on a host began, in a Lane and with a Disruption
	HostEnded EventType = "ended"     // it is over, and nothing of the host is waited for any more
	Soaking   EventType = "soaking"   // a Fleet's canary is watched Until a time

	// A host is made idle before what would hurt its work.
	Closing  EventType = "closing"  // its Node is about to take no new Pods
	Evicting EventType = "evicting" // a Pod of it was evicted, is held or is gone, as What says
	Opened   EventType = "opened"   // its Node takes Pods again

	// An upload takes its place among those at once, and gives it up, done or not.
	UploadBegins EventType = "upload-begins"
	UploadEnds   EventType = "upload-ends"
)

// Event is one thing that happened in a run.
type Event struct {
	Type     EventType
	Time     time.Time
	Host     string
	Action   *plan.Action    // of Started, Done, Failed, Skipped, Waiting, NodeReady
	Trouble  *plan.Trouble   // of Observed: why the host could not be asked
	Err      error           // of Failed
	Count    int             // of Observing
	Elapsed  time.Duration   // of Listed, Observed, Computed, Done, Failed, NodeReady
	Lane     string          // of HostBegun and HostEnded: repair, join, plain, disrupt
	Worst    plan.Disruption // of HostBegun
	Fleet    string          // of HostBegun, HostEnded, Soaking
	Until    time.Time       // of Soaking
	Artifact string          // of Sending, UploadBegins, UploadEnds
	Bytes    int64           // that have left, so here
	Size     int64           // so here
	Pod      string          // of Evicting: NAMESPACE/NAME
	What     string          // of Evicting: evicted, held, gone
	Why      string          // of Evicting: what holds it
}
