package hosts

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/plan"
)

// Claim creates /etc/macfleet/claim.json, which only one of several runs can
// do, and returns the claim that stands there afterwards: the given one, or
// whose claim came first.
func (c *Conn) Claim(ctx context.Context, claim plan.Claim) (plan.Claim, error) {
	text, err := json.Marshal(claim)
	if err != nil {
		return plan.Claim{}, fmt.Errorf("encode claim of %s: %w", claim.Name, err)
	}
	a, err := c.own(ctx, "claim-create", string(text)+"\n")
	if err != nil {
		return plan.Claim{}, err
	}
	return parseClaim(a.Stdout)
}

// DropClaim takes back a claim that Claim returned, nonce and all, as long as no
// marker stands beside it.
func (c *Conn) DropClaim(ctx context.Context, claim plan.Claim) error {
	text, err := json.Marshal(claim)
	if err != nil {
		return fmt.Errorf("encode claim of %s: %w", claim.Name, err)
	}
	_, err = c.own(ctx, "claim-drop", string(text))
	return err
}

// moved is the exit code by which marker-write says that it found another marker than
// the writer knows.
const moved = 5

// WriteMarker replaces the host's marker in one step, where it is still the one that
// this connection saw last; else the error wraps plan.ErrMarkerMoved. With the proof of
// a step (empty: none) nothing of that step is pending any more.
func (c *Conn) WriteMarker(ctx context.Context, m plan.Marker, proven plan.StepID) error {
	text, err := m.Encode()
	if err != nil {
		return err
	}
	a, err := c.own(ctx, "marker-write", text, string(proven), c.marker)
	switch {
	case err == nil:
		c.marker = asCompared(text)
	case a.Exit == moved:
		return fmt.Errorf("%s: %w", c.target.name(), plan.ErrMarkerMoved)
	}
	return err
}

// asCompared is a marker's text as the host compares it: a shell takes the last line ends
// off. Nothing is known of text that no argument can hold.
func asCompared(text string) string {
	if strings.ContainsRune(text, 0) {
		return ""
	}
	return strings.TrimRight(text, "\n")
}
