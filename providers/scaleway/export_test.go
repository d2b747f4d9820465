package scaleway

import (
	"context"
	"net/http"
	"time"

	"github.com/macfleet/macfleet/providers/transport"
)

// Hurry lets a client wait less: for servers in passing states, diagnostics, lists, and before requests are repeated.
func (c *Client) Hurry() {
	c.settleEvery, c.askEvery, c.goneEvery = time.Millisecond, time.Millisecond, time.Millisecond
	c.pauses.First, c.pauses.Longest = time.Microsecond, time.Millisecond
}

// Patience sets how long a client waits for the body of an answer.
func (c *Client) Patience(body time.Duration) { c.pauses.Body = body }

// At sets a client's clock.
func (c *Client) At(now time.Time) { c.pauses.Now = func() time.Time { return now } }

// Asked parses the headers of an answer that limits the rate.
func Asked(header http.Header, now time.Time) time.Duration {
	return transport.Asked(header, true, now)
}

// Sleep replaces the pauses of a client, which then take no time.
func (c *Client) Sleep(sleep func(time.Duration)) {
	c.pauses.Sleep = func(ctx context.Context, d time.Duration) error { sleep(d); return context.Cause(ctx) }
}
