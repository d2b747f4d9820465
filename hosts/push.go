package hosts

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

// leastRate is the minimum speed of an upload in bytes per second.
const leastRate = 32 << 10

// push uploads an artifact. It resumes an interrupted upload if its bytes match.
func (c *Conn) push(ctx context.Context, a fleet.Artifact, seen look, source Source) (Delivered, error) {
	if err := acquire(ctx, c.client.uploads); err != nil {
		return Delivered{}, fmt.Errorf("deliver %s to %s: %w", a, c.target.name(), err)
	}
	defer func() { <-c.client.uploads }()
	c.progress(Progress{Artifact: a, Edge: Begins})
	defer c.progress(Progress{Artifact: a, Edge: Ends}) // before the slot is released
	done, err := c.pushFrom(ctx, a, seen, source)
	var known *Error
	var failed *ScriptError
	if err != nil && !errors.As(err, &known) && !errors.As(err, &failed) {
		err = fmt.Errorf("deliver %s to %s: %w", a, c.target.name(), err)
	}
	return done, err
}

// pushFrom uploads an artifact once.
func (c *Conn) pushFrom(ctx context.Context, a fleet.Artifact, seen look, source Source) (done Delivered, err error) {
	bytes, all, err := source()
	if err != nil {
		return done, err
	}
	defer func() { _ = bytes.Close() }() // only read
	if seen.free < all {
		return done, c.full(a, fmt.Sprintf("%s free, needs %s", size(seen.free), size(all)))
	}
	part, again := "-", func() (Delivered, error) { return c.pushFrom(ctx, a, look{free: seen.free}, source) }
	if seen.part != "" && seen.bytes <= all {
		if right, err := beginsWith(bytes, seen.bytes, seen.sum); err != nil {
			return done, err
		} else if !right {
			return again()
		}
		part, done.Resumed = seen.part, seen.bytes
	}
	p := &packer{source: io.LimitReader(bytes, all-done.Resumed), left: all - done.Resumed, now: c.client.now,
		tell: func(n int64) { c.progress(Progress{Artifact: a, Done: done.Resumed + n, Size: all}) }}
	answer, err := c.send(ctx, []string{c.folder(), a.SHA256, strconv.FormatInt(all, 10), part, strconv.FormatInt(done.Resumed, 10), ""}, p,
		time.Duration(all/leastRate)*time.Second)
	broke := p.end()
	done.Sent, done.Packed = p.sent, p.packed
	switch {
	case broke != nil:
		return done, broke
	case err != nil && answer.Exit == 0:
		return done, err
	case answer.Exit == partGone && part != "-": // another run deleted it
		return again()
	case answer.Exit == pieceMissing:
		return done, fmt.Errorf("the source ended after %d of %d bytes", done.Resumed+p.n, all)
	}
	return done, c.outcome(a, answer, "")
}

// beginsWith reads n bytes and reports whether they have the SHA-256 sum.
func beginsWith(r io.Reader, n int64, sum string) (bool, error) {
	h := sha256.New()
	if _, err := io.CopyN(h, r, n); err != nil {
		return false, fmt.Errorf("read the part sent earlier: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)) == sum, nil
}

func (c *Conn) progress(p Progress) {
	p.Host = c.target.name()
	c.client.opts.Progress(p)
}

// send sends a header and the bytes in one exec.
func (c *Conn) send(ctx context.Context, header []string, bytes io.Reader, more time.Duration) (plan.Answer, error) {
	mark, q := rand.Text(), question{id: "push", Command: own("artifact-push", plan.Root)}
	r, lost := c.converse(ctx, conversation{mark: mark, line: scriptLine(c.client.opts.Prologue + c.fence() + q.Script),
		stdin: io.MultiReader(strings.NewReader(c.pass(mark)+mark+"\n"+strings.Join(header, "\n")), bytes), questions: []question{q},
		more: more})
	if lost != nil {
		return plan.Answer{}, lost
	}
	return c.answer(r, q)
}
