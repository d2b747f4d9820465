package scaleway

import "time"

// Hurry lets a client wait less for servers in passing states.
func (c *Client) Hurry() { c.settleEvery = time.Millisecond }
