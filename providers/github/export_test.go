package github

import (
	"context"
	"time"
)

// At sets a client's clock.
func (c *Client) At(now time.Time) { c.pauses.Now = func() time.Time { return now } }

// Sleep replaces the pauses of a client, which then take no time.
func (c *Client) Sleep(sleep func(time.Duration)) {
	c.pauses.Sleep = func(ctx context.Context, d time.Duration) error { sleep(d); return context.Cause(ctx) }
}
