package scaleway

// Project returns the id of the project whose servers the client sees.
func (c *Client) Project() string { return c.project }
