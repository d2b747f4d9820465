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
	CodeHeld = NewCode("held", NotDrift, "somebody holds the host",
		"wait until the hold ends, or, when you know that the host may be touched: macfleet unhold NAME")
	codeHoldExpired = NewCode("hold-expired", Warning, "a hold of the host has ended and is still there", "take it away: macfleet unhold NAME")
)

// LongestHold is how far off the end of a hold may be: what nobody remembers any
// more must not keep a host from repairs for ever.
const LongestHold = 30 * 24 * time.Hour

// Held is a hold as a plan sees it.
type Held struct {
	inventory.Hold
	In      []string `json:"in"`               // where it stands: marker, Node
	Unread  string   `json:"unread,omitempty"` // why what it says cannot be read; it holds all the same
	Expired bool     `json:"expired"`          // its time is over: it is shown and counts for nothing
}

// The places of a hold.
const (
	InMarker = "marker"
	InNode   = "Node"
)

// heldOf returns the hold of a host by all who know of one, or nil. Of two the one that
// ends later counts; one that cannot be read, or that names no end, holds.
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
				h.Unread = "it names no end"
			}
		}
		h.Expired = h.Unread == "" && !h.Until.After(now)
		switch {
		case out == nil || out.Expired && !h.Expired:
			out = &h
		case h.Expired != out.Expired: // the one whose time is over counts for nothing
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

// Standing returns the hold that keeps everybody off the host, or nil.
func (h Host) Standing() *Held {
	if h.Held == nil || h.Held.Expired {
		return nil
	}
	return h.Held
}

// String says who holds a host until when, and why.
func (h Held) String() string {
	if h.Unread != "" && h.Who == "" {
		return fmt.Sprintf("by somebody: what its %s says of that cannot be read: %s", strings.Join(h.In, " and "), h.Unread)
	}
	until := "nobody said when, as " + h.Unread
	if !h.Until.IsZero() {
		until = h.Until.UTC().Format(holdTime)
	}
	return fmt.Sprintf("by %s until %s (%s)", h.Who, until, h.Reason)
}

const holdTime = "2006-01-02 15:04 UTC"

// Trouble is why nothing is done on the host.
func (h Held) Trouble(host string) *Trouble {
	return CodeHeld.Trouble("it is held "+h.String(), "wait for that, or, when you know that it may be touched: macfleet unhold "+host)
}

// hold refuses whatever would be done on a host that is held, and says of a hold
// whose time is over that it is.
func (h *Host) hold(actions []Action) {
	if h.Held != nil && h.Held.Expired {
		h.warn("", codeHoldExpired.Trouble(
			fmt.Sprintf("the hold of %s (%s) ended %s and counts for nothing any more", h.Held.Who, h.Held.Reason, h.Held.Until.UTC().Format(holdTime)),
			"take it away: macfleet unhold "+h.Name))
	}
	if held := h.Standing(); held != nil {
		refuse(actions, held.Trouble(h.Name))
	}
}

// ParseUntil reads when a hold ends: a span from now (90m, 12h, 3d, 2w), or a time in UTC
// (2026-11-25, its first moment; 2026-11-25 18:00; RFC 3339), at most LongestHold away.
func ParseUntil(text string, now time.Time) (time.Time, error) {
	until, ok := untilOf(text, now)
	switch {
	case !ok:
		return until, fmt.Errorf("%q is no time: write a span such as 90m, 12h, 3d or 2w, or a time in UTC such as 2026-11-25 or \"2026-11-25 18:00\"", text)
	case !until.After(now):
		return until, fmt.Errorf("%q is over already: %s", text, until.UTC().Format(holdTime))
	case until.Sub(now) > LongestHold:
		return until, fmt.Errorf("%q is more than 30 days away; hold it for less, and again when that is over", text)
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
