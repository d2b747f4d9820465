package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Pin is a host key that was accepted once. Its server id and name identify a server that vanished or was
// renamed by hand.
type Pin struct {
	ServerID string    `json:"server_id"`
	Name     string    `json:"name"`
	Key      string    `json:"key"` // "ssh-ed25519 AAAA…", as in an authorized_keys file
	Since    time.Time `json:"since"`
	// Serial is the machine's serial number when the key was pinned; empty: it was not read.
	Serial string `json:"serial,omitempty"`
	// Unfinished says that the claim or adoption which pinned it has not written a marker yet.
	Unfinished bool `json:"unfinished,omitempty"`
	// Stage is how far the server is on its way out of its group.
	Stage Stage `json:"stage,omitempty"`
	// StageSince is when a run stored the stage; zero: unknown, or it has none.
	StageSince time.Time `json:"stage_since,omitzero"`
	// Pooled is the server's name in the pool before its claim; empty: unknown, or it was adopted.
	Pooled string `json:"pooled_as,omitempty"`
	// Earlier are the fingerprints of the server's keys that a reinstallation or a person ended, latest first, separated by spaces.
	Earlier string `json:"earlier,omitempty"`
	// GroupSize is the server's group and its replicas, as in macos.m2=3, when a run ended that left it with no more hosts; empty: unknown.
	GroupSize string `json:"group_size,omitempty"`
	// Accepted says who accepted the key with forget-key, and when; empty: it was pinned without a person.
	Accepted string `json:"accepted,omitempty"`
}

// earlierKeys is how many keys a pin remembers: the copies on other machines are rarely older.
const earlierKeys = 8

// After returns the pin with the keys that it ends, latest first.
func (p Pin) After(fingerprints ...string) Pin {
	all := append(fingerprints, strings.Fields(p.Earlier)...)
	var out []string
	for _, f := range all {
		if f != "" && f != Fingerprint(p.Key) && !slices.Contains(out, f) && len(out) < earlierKeys {
			out = append(out, f)
		}
	}
	p.Earlier = strings.Join(out, " ")
	return p
}

// Replaces returns the pin as the one that comes after another of its server.
func (p Pin) Replaces(old Pin) Pin {
	return p.After(append([]string{Fingerprint(old.Key)}, strings.Fields(old.Earlier)...)...)
}

// Ends reports whether a pin says that a copy of an earlier pin of its server, on this machine, does not count any more.
func (p Pin) Ends(copy Pin) bool {
	return p.ServerID == copy.ServerID && (p.Stage == Released || p.Key == copy.Key ||
		slices.Contains(strings.Fields(p.Earlier), Fingerprint(copy.Key)))
}

// WithoutReleased separates the pins of servers that are back in the pool from the others.
func WithoutReleased(all []Pin) (pins, released []Pin) {
	for _, p := range all {
		if p.Stage == Released {
			released = append(released, p)
		} else {
			pins = append(pins, p)
		}
	}
	return pins, released
}

// stored returns when the pin's key or its stage was stored, whichever was later.
func (p Pin) stored() time.Time {
	if p.StageSince.After(p.Since) {
		return p.StageSince
	}
	return p.Since
}

// JoinPins adds the pins of another store to those of one. Of a server that both know, the first store counts, but of a pin and the note
// of a release the later: a claim may follow a release, and a release a claim, on another machine.
func JoinPins(first, other []Pin) []Pin {
	latest, ended := make(map[string]Pin), make(map[string]bool) // by server id
	for _, p := range first {
		if have, known := latest[p.ServerID]; !known || p.stored().After(have.stored()) {
			latest[p.ServerID] = p
		}
	}
	var added []Pin
	for _, p := range other {
		have, known := latest[p.ServerID]
		ends := known && (p.Stage == Released) != (have.Stage == Released) && p.stored().After(have.stored())
		if ended[p.ServerID] = ended[p.ServerID] || ends; ends || !known {
			added = append(added, p)
		}
	}
	return append(slices.DeleteFunc(slices.Clone(first), func(p Pin) bool { return ended[p.ServerID] }), added...)
}

// byAge returns pins, latest last.
func byAge(pins []Pin) []Pin {
	return sorted(pins, func(a, b *Pin) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Stage, b.Stage))
	})
}

// InStore orders pins as they are stored: by name and server id, of one server the latest first.
func InStore(a, b Pin) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ServerID, b.ServerID), b.Since.Compare(a.Since))
}
