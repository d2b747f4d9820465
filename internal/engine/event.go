package engine

import (
	"time"

	"github.com/macfleet/macfleet/plan"
)

// EventType is the kind of an event.
type EventType string

// The events of a run. Every Started is followed by a Done or Failed of the same action.
const (
	Listed      EventType = "listed"       // the providers' lists were read
	Observing   EventType = "observing"    // Count hosts are about to be observed
	Observed    EventType = "observed"     // one host was observed
	Computed    EventType = "computed"     // the plan was made
	Started     EventType = "started"      // an action started
	Done        EventType = "done"         // an action is done and verified
	Failed      EventType = "failed"       // an action failed; the host's other actions are skipped
	Skipped     EventType = "skipped"      // an action was not started
	Deferred    EventType = "deferred"     // an action was left for a later run by a limit
	Sending     EventType = "sending"      // an artifact is being uploaded, Bytes of Size so far
	Waiting     EventType = "waiting"      // the run waits for a host's Node
	NodeReady   EventType = "ready"        // a host's Node is Ready; Failed if it is not in time
	HostStarted EventType = "begun"        // the work on a host started, in a Lane and with a Disruption
	HostEnded   EventType = "ended"        // the work on a host, including the wait for its Node, is over
	Installing  EventType = "reinstalling" // the run waits for a server that is reinstalled, as Text says
	Soaking     EventType = "soaking"      // a Fleet's canary soaks Until a time

	// A host is drained before a disruptive change.
	Cordoning  EventType = "closing"     // its Node is about to be cordoned
	Evicting   EventType = "evicting"    // a Pod was evicted, is held or is gone, as What says
	Uncordoned EventType = "opened"      // its Node was uncordoned
	Fencing    EventType = "fencing"     // its CI agent is about to get no new jobs
	Idling     EventType = "idling"      // the run waits for its CI agent, as Text says
	KeyMade    EventType = "key-made"    // a key with which it joins the tailnet was made, with the id in Text
	KeyRevoked EventType = "key-revoked" // and was revoked
	Unfenced   EventType = "unfenced"    // its CI agent may get jobs again

	// An upload takes and releases one of the upload slots.
	UploadStarts EventType = "upload-begins"
	UploadEnds   EventType = "upload-ends"
)

// Event is one event of a run. Run records use these keys, and derive others from Action,
// Trouble and Err.
type Event struct {
	Type     EventType     `json:"type"`
	Time     time.Time     `json:"time"`
	Host     string        `json:"host,omitempty"`
	Action   *plan.Action  `json:"-"`                    // of Started, Done, Failed, Skipped, Deferred, Waiting, NodeReady
	Trouble  *plan.Trouble `json:"-"`                    // of Observed: why the host was not observed; of Deferred: the limit
	Err      error         `json:"-"`                    // of Failed
	Artifact string        `json:"artifact,omitempty"`   // of Sending, UploadStarts, UploadEnds
	Bytes    int64         `json:"-"`                    // of Sending: sent so far
	Size     int64         `json:"-"`                    // of Sending: total
	Count    int           `json:"count,omitempty"`      // of hosts about to be observed
	Seconds  float64       `json:"seconds,omitempty"`    // how long it took
	Text     string        `json:"text,omitempty"`       // of a failure, a trouble or a stop; of Evicting: what holds the Pod; of Installing and Idling: what the wait is for
	Fleet    string        `json:"fleet,omitempty"`      // of a host that starts or ends, or of a soaking canary
	Lane     string        `json:"lane,omitempty"`       // of a host that starts or ends: repair, join, plain, disrupt
	Wave     int           `json:"wave,omitempty"`       // of a host that starts or ends in the lane disrupt, from 1
	Worst    string        `json:"disruption,omitempty"` // the worst disruption of a host that starts
	Until    time.Time     `json:"until,omitzero"`       // end of the soak
	Pod      string        `json:"pod,omitempty"`        // NAMESPACE/NAME of a drained Pod
	What     string        `json:"what,omitempty"`       // of the Pod: evicted, held (with a text), gone
}
