package scaleway

import "time"

// Hurry lets a client wait less for servers in passing states and diagnostics.
func (c *Client) Hurry() { c.settleEvery, c.askEvery = time.Millisecond, time.Millisecond }
