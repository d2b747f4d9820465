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

// leastRate is how slow a line may be, in bytes a second, before an upload is
// given up.
const leastRate = 32 << 10

// push sends an artifact. What a broken delivery left is not sent again, where it
// is what the artifact begins with.
func (c *Conn) push(ctx context.Context, a fleet.Artifact, seen look, source Source) (Delivered, error) {
	if err := acquire(ctx, c.client.uploads); err != nil {
		return Delivered{}, fmt.Errorf("deliver %s to %s: %w", a, c.target.name(), err)
	}
	defer func() { <-c.client.uploads }()
	c.progress(Progress{Artifact: a, Edge: Begins})
	defer c.progress(Progress{Artifact: a, Edge: Ends}) // before the place is free
	done, err := c.pushFrom(ctx, a, seen, source)
	var known *Error
	var failed *ScriptError
	if err != nil && !errors.As(err, &known) && !errors.As(err, &failed) {
		err = fmt.Errorf("deliver %s to %s: %w", a, c.target.name(), err)
	}
	return done, err
}

// pushFrom sends an artifact once.
func (c *Conn) pushFrom(ctx context.Context, a fleet.Artifact, seen look, source Source) (done Delivered, err error) {
	bytes, all, err := source()
	if err != nil {
		return done, err
	}
	defer func() { _ = bytes.Close() }() // it was read, not written
	if seen.free < all {
		return done, c.full(a, fmt.Sprintf("%s are needed, and %s are free", size(all), size(seen.free)))
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
	case answer.Exit == partGone && part != "-": // another run cleared it away
		return again()
	case answer.Exit == pieceMissing:
		return done, fmt.Errorf("the source ends after %d of %d bytes", done.Resumed+p.n, all)
	}
	return done, c.outcome(a, answer, "")
}

// beginsWith reads n bytes, and reports whether they have that SHA-256.
func beginsWith(r io.Reader, n int64, sum string) (bool, error) {
	h := sha256.New()
	if _, err := io.CopyN(h, r, n); err != nil {
		return false, fmt.Errorf("read what was sent before: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)) == sum, nil
}

func (c *Conn) progress(p Progress) {
	p.Host = c.target.name()
	c.client.opts.Progress(p)
}

// send sends bytes in one exec, behind lines that say what they are.
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
