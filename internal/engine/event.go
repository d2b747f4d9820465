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
	Deferred  EventType = "deferred"  // an action was left for a later run, as a limit of this one wants
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

// Event is one thing that happened in a run. The record of a run has it under these keys,
// with what it makes of Action, Trouble and Err.
type Event struct {
	Type     EventType     `json:"type"`
	Time     time.Time     `json:"time"`
	Host     string        `json:"host,omitempty"`
	Action   *plan.Action  `json:"-"`                    // of Started, Done, Failed, Skipped, Deferred, Waiting, NodeReady
	Trouble  *plan.Trouble `json:"-"`                    // of Observed: why the host could not be asked; of Deferred: which limit it is
	Err      error         `json:"-"`                    // of Failed
	Artifact string        `json:"artifact,omitempty"`   // of Sending, UploadBegins, UploadEnds
	Bytes    int64         `json:"-"`                    // of Sending: that have left
	Size     int64         `json:"-"`                    // so here
	Count    int           `json:"count,omitempty"`      // of hosts about to be asked
	Seconds  float64       `json:"seconds,omitempty"`    // that it took
	Text     string        `json:"text,omitempty"`       // of a failure, a trouble or a stop; of Evicting: what holds the Pod
	Fleet    string        `json:"fleet,omitempty"`      // of a host that begins or ends, or whose canary is watched
	Lane     string        `json:"lane,omitempty"`       // of a host that begins or ends: repair, join, plain, disrupt
	Wave     int           `json:"wave,omitempty"`       // of a host that begins or ends in the lane disrupt, from 1
	Worst    string        `json:"disruption,omitempty"` // what the run does to a host that begins, at the worst
	Until    time.Time     `json:"until,omitzero"`       // when the canary will have been watched for long enough
	Pod      string        `json:"pod,omitempty"`        // NAMESPACE/NAME that a drain moves
	What     string        `json:"what,omitempty"`       // of it: evicted, held (with a text), gone
}
