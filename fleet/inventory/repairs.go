package inventory

import "time"

// Repairs are the failed repairs of a host in a row, and whether it is quarantined. They are stored in the
// host's marker and as an annotation on its Node, and either is enough. The JSON is the same in both.
type Repairs struct {
	Failed int       `json:"failed"`           // runs in a row that failed to repair it
	Last   time.Time `json:"last,omitzero"`    // when the last of them ended
	Run    string    `json:"run,omitempty"`    // its id
	Reason string    `json:"reason,omitempty"` // why it failed; of a quarantine by hand: the person's reason
	Who    string    `json:"who,omitempty"`    // user@machine that quarantined it; empty: it is not quarantined
	Since  time.Time `json:"since,omitzero"`   // when it was quarantined; zero: it is not
	Unread string    `json:"unread,omitempty"` // why the record cannot be read: the host counts as quarantined
}

// Quarantined reports whether the host is quarantined: macfleet does not change it, and it does not count for
// its fleet. A record that cannot be read counts.
func (r *Repairs) Quarantined() bool { return r != nil && (!r.Since.IsZero() || r.Unread != "") }
