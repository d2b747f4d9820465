package plan

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// The codes that are raised here.
var (
	CodeHeld = NewCode("held", NotDrift, "a person holds the host",
		"wait until the hold expires, or if it is safe: macfleet unhold NAME")
	codeHoldExpired = NewCode("hold-expired", Warning, "an expired hold is still stored on the host", "macfleet unhold NAME")
)

// LongestHold limits how far away the end of a hold may be: a forgotten hold must not block repairs forever.
const LongestHold = 30 * 24 * time.Hour

// Held is a hold as a plan sees it.
type Held struct {
	inventory.Hold
	In      []string `json:"in"`               // where it is stored: marker, Node
	Unread  string   `json:"unread,omitempty"` // why it cannot be read; it still holds the host
	Expired bool     `json:"expired"`          // it has expired: it is shown but has no effect
}

// The places where a hold is stored.
const (
	InMarker = "marker"
	InNode   = "Node"
)

// heldOf returns the host's hold from all places that have one, or nil. Of two, the one that ends later has
// priority. A hold that cannot be read or has no end still holds the host.
func heldOf(marker inventory.Seen[Marker], node inventory.Seen[inventory.Node], now time.Time) *Held {
	var out *Held
	m, _ := marker.Get()
	n, _ := node.Get()
	says := func(in string, hold *inventory.Hold, unread string) {
		if hold == nil && unread == "" {
			return
		}
		h := Held{In: []string{in}, Unread: unread}
		if hold != nil {
			h.Hold = *hold
			if h.Until.IsZero() {
				h.Unread = "it has no end time"
			}
		}
		h.Expired = h.Unread == "" && !h.Until.After(now)
		switch {
		case out == nil || out.Expired && !h.Expired:
			out = &h
		case h.Expired != out.Expired: // an expired one has no effect
		case h.Until.After(out.Until):
			h.In = append(out.In, in)
			out = &h
		default:
			out.In = append(out.In, in)
		}
	}
	says(InMarker, m.Hold, "")
	says(InNode, n.Hold, n.HoldUnread)
	return out
}

// ActiveHold returns the hold that blocks changes to the host, or nil.
func (h Host) ActiveHold() *Held {
	if h.Held == nil || h.Held.Expired {
		return nil
	}
	return h.Held
}

// String says who holds a host, until when, and why.
func (h Held) String() string {
	if h.Unread != "" && h.Who == "" {
		return fmt.Sprintf("by an unknown person: the hold in its %s cannot be read: %s", strings.Join(h.In, " and "), h.Unread)
	}
	until := "an unknown time: " + h.Unread
	if !h.Until.IsZero() {
		until = h.Until.UTC().Format(holdTime)
	}
	return fmt.Sprintf("by %s until %s (%s)", h.Who, until, h.Reason)
}

const holdTime = "2006-01-02 15:04 UTC"

// Trouble is why nothing is changed on the host.
func (h Held) Trouble(host string) *Trouble {
	return CodeHeld.Trouble("it is held "+h.String(), "wait until it expires, or if it is safe: macfleet unhold "+host)
}

// hold refuses all actions on a held host, and warns of an expired hold.
func (h *Host) hold(actions []Action) {
	if h.Held != nil && h.Held.Expired {
		h.warn("", codeHoldExpired.Trouble(
			fmt.Sprintf("the hold of %s (%s) expired at %s and has no effect", h.Held.Who, h.Held.Reason, h.Held.Until.UTC().Format(holdTime)),
			"macfleet unhold "+h.Name))
	}
	if held := h.ActiveHold(); held != nil {
		refuse(actions, held.Trouble(h.Name))
	}
}

// ParseUntil reads when a hold ends: a span from now (90m, 12h, 3d, 2w), or a time in UTC
// (2026-11-25, its first moment; 2026-11-25 18:00; RFC 3339), at most LongestHold away.
func ParseUntil(text string, now time.Time) (time.Time, error) {
	until, ok := untilOf(text, now)
	switch {
	case !ok:
		return until, fmt.Errorf("invalid time %q: use a duration such as 90m, 12h, 3d or 2w, or a UTC time such as 2026-11-25 or \"2026-11-25 18:00\"", text)
	case !until.After(now):
		return until, fmt.Errorf("%q is in the past: %s", text, until.UTC().Format(holdTime))
	case until.Sub(now) > LongestHold:
		return until, fmt.Errorf("%q is more than 30 days away, the longest hold; hold the host again when it expires", text)
	}
	return until.UTC().Truncate(time.Second), nil
}

func untilOf(text string, now time.Time) (time.Time, bool) {
	for _, form := range []string{time.DateOnly, "2006-01-02 15:04", time.RFC3339} {
		if at, err := time.Parse(form, text); err == nil {
			return at, true
		}
	}
	for unit, span := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			n, err := strconv.ParseUint(number, 10, 16)
			return now.Add(time.Duration(n) * span), err == nil
		}
	}
	span, err := time.ParseDuration(text)
	return now.Add(span), err == nil
}
