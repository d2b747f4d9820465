package kubernetes

import (
	"net/http"
	"sync/atomic"
	"time"
)

// clock is the cluster's own, from the Date of its answers: what is "too long
// ago" must not hang on a laptop's clock. A Date is cut to whole seconds, so it
// never runs ahead.
type clock struct {
	local func() time.Time // this machine's; nil: time.Now
	last  atomic.Pointer[reading]
}

type reading struct{ server, local time.Time }

// now returns the cluster's time, and the local one as long as no answer bore a
// Date.
func (c *clock) now() time.Time {
	r := c.last.Load()
	if r == nil {
		return c.here()
	}
	return r.server.Add(c.here().Sub(r.local))
}

// here returns the time by this machine's clock.
func (c *clock) here() time.Time {
	if c.local != nil {
		return c.local()
	}
	return time.Now()
}

func (c *clock) wrap(next http.RoundTripper) http.RoundTripper {
	return clocked{next: next, clock: c}
}

type clocked struct {
	next  http.RoundTripper
	clock *clock
}

// RoundTrip passes the request on and reads the clock from its answer.
func (t clocked) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return resp, err
	}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		t.clock.last.Store(&reading{server: date, local: t.clock.here()})
	}
	return resp, nil
}

// CloseIdleConnections passes the call on, so that no idle connection is left
// when a command ends.
func (t clocked) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
