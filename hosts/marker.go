package hosts

import (
	"context"
	"encoding/json"
	"fmt"

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

// WriteMarker replaces the host's marker in one step.
func (c *Conn) WriteMarker(ctx context.Context, m plan.Marker) error {
	text, err := m.Encode()
	if err != nil {
		return err
	}
	_, err = c.own(ctx, "marker-write", text)
	return err
}

// WriteProof is WriteMarker with the proof of a step, after which nothing of it
// is pending any more.
func (c *Conn) WriteProof(ctx context.Context, m plan.Marker, step plan.StepID) error {
	text, err := m.Encode()
	if err != nil {
		return err
	}
	_, err = c.own(ctx, "marker-write", text, string(step))
	return err
}

// own runs one of this package's own changes as root.
func (c *Conn) own(ctx context.Context, name string, args ...string) (plan.Answer, error) {
	a, err := c.Run(ctx, own(name, plan.Root, args...))
	if err != nil {
		return a, err
	}
	if a.Exit != 0 {
		return a, &ScriptError{Host: c.target.name(), Script: name, Answer: a}
	}
	return a, nil
}
