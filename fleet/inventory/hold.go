package inventory

import "time"

// Hold is a person's "hands off this host until …". It stands in the host's marker
// and as an annotation on its Node, so that either is enough; its JSON is the same
// in both.
type Hold struct {
	Who    string    `json:"who"` // user@machine
	Reason string    `json:"reason"`
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until,omitzero"` // zero: it names no end, and holds until somebody takes it away
}
