package hosts

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/macfleet/macfleet/plan"
)

// login logs in to a machine and notes that. Neither keys nor what a host prints
// stand in the log.
func (c *Client) login(ctx context.Context, to endpoint) (*Conn, *Error) {
	began := time.Now()
	conn, err := c.logIn(ctx, to)
	if c.opts.Log == nil {
		return conn, err
	}
	attrs := []any{"host", to.target.name(), "address", to.address, "user", to.user, "ms", time.Since(began).Milliseconds()}
	if err != nil {
		c.opts.Log.Warn("connect", append(attrs, "code", err.Code, "error", err.text())...)
		return conn, err
	}
	c.opts.Log.Debug("connect", attrs...)
	return conn, nil
}

// converse runs one exec and takes its output apart, and notes that: which scripts,
// how many bytes and how they ended, never what was said.
func (c *Conn) converse(ctx context.Context, t conversation) (reply, error) {
	began := time.Now()
	r, err := c.talk(ctx, t)
	if c.client.opts.Log == nil {
		return r, err
	}
	attrs := append([]any{"host", c.target.name(), "scripts", scripts(t.questions), "sent", len(t.line), "ms", time.Since(began).Milliseconds()}, heard(r.facts, t.questions)...)
	if err != nil {
		c.client.opts.Log.Warn("exec", append(attrs, "error", err)...)
		return r, err
	}
	c.client.opts.Log.Debug("exec", attrs...)
	return r, nil
}

// scriptsNamed is how many scripts of one exec are named in the log.
const scriptsNamed = 3

func scripts(questions []question) string {
	var names []string
	for _, q := range questions {
		name := q.Name
		if name == "" {
			name = q.id
		}
		names = append(names, name)
	}
	if more := len(names) - scriptsNamed; more > 0 {
		return strings.Join(names[:scriptsNamed], ",") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ",")
}

// heard sums up answers: their bytes, and how the only one or how many of them ended
// otherwise than with 0.
func heard(facts plan.Facts, questions []question) []any {
	bytes, unlucky, exit := 0, 0, 0
	for _, q := range questions {
		if a, ok := facts.Get(q.id).Get(); ok {
			bytes += len(a.Stdout) + len(a.Stderr)
			if exit = a.Exit; exit != 0 {
				unlucky++
			}
		}
	}
	if len(questions) == 1 {
		return []any{"received", bytes, "exit", exit}
	}
	return []any{"received", bytes, "not_zero", unlucky}
}
