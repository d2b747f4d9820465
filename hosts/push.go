package hosts

import (
	"context"
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

// pushing is an artifact on its way to a host.
type pushing struct {
	conn     *Conn
	artifact fleet.Artifact
	size     int64
	bytes    *meter
	begin    string // how the host begins: fresh, copy or append
	part     string // what it goes on with
	offset   int64  // how much of that is right
}

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
	if errors.Is(err, errPartGone) { // another run cleared it away
		return c.pushFrom(ctx, a, look{free: seen.free}, source)
	}
	return done, err
}

var errPartGone = errors.New("the part that it went on with has gone")

// pushFrom sends an artifact once.
func (c *Conn) pushFrom(ctx context.Context, a fleet.Artifact, seen look, source Source) (Delivered, error) {
	bytes, all, err := source()
	if err != nil {
		return Delivered{}, fmt.Errorf("deliver %s: %w", a, err)
	}
	defer func() { _ = bytes.Close() }() // it was read, not written
	if seen.free < all {
		return Delivered{}, c.full(a, fmt.Sprintf("%s are needed, and %s are free", size(all), size(seen.free)))
	}
	p := pushing{conn: c, artifact: a, size: all, begin: "fresh", part: "-"}
	if seen.part != "" && seen.bytes <= all {
		right, err := beginsWith(bytes, seen.bytes, seen.sum)
		switch {
		case err != nil:
			return Delivered{}, fmt.Errorf("deliver %s: %w", a, err)
		case right:
			p.begin, p.part, p.offset = "copy", seen.part, seen.bytes
		default:
			_ = bytes.Close() // it was read, not written
			if bytes, _, err = source(); err != nil {
				return Delivered{}, fmt.Errorf("deliver %s: %w", a, err)
			}
		}
	}
	resumed := p.offset
	p.bytes = &meter{source: io.LimitReader(bytes, all-p.offset), left: all - p.offset, now: c.client.now, tell: func(n int64) { c.progress(Progress{Artifact: a, Done: resumed + n, Size: all}) }}
	done, err := p.send(ctx)
	done.Resumed = resumed
	return done, err
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

// send sends the bytes as they are, and packs the rest where the line turns out
// to be slow.
func (p *pushing) send(ctx context.Context) (done Delivered, err error) {
	answer, err := p.exchange(ctx, "plain", p.bytes)
	done.Sent = p.bytes.n
	if err == nil && answer.Exit == pieceMissing && p.bytes.slow {
		if err := p.goOn(answer.Stdout); err != nil {
			return done, err
		}
		packed := pack(p.bytes.rest())
		answer, err = p.exchange(ctx, "gzip", packed)
		done.Packed, done.Sent = true, done.Sent+packed.sent
	}
	to := p.conn.target.name()
	switch {
	case p.bytes.err != nil:
		return done, fmt.Errorf("deliver %s to %s: %w", p.artifact, to, p.bytes.err)
	case err != nil:
		return done, err
	case answer.Exit == partGone:
		return done, fmt.Errorf("deliver %s to %s: %w", p.artifact, to, errPartGone)
	case answer.Exit == pieceMissing:
		return done, fmt.Errorf("deliver %s to %s: the source ends after %d of %d bytes", p.artifact, to, p.size-p.bytes.left-int64(len(p.bytes.ahead)), p.size)
	}
	return done, p.conn.outcome(p.artifact, answer, "")
}

// goOn makes the next exchange one that goes on with the part that this one made.
func (p *pushing) goOn(said string) error {
	words := strings.Fields(said)
	if len(words) == 3 && words[0] == "part" {
		if have, err := strconv.ParseInt(words[2], 10, 64); err == nil && have == p.offset+p.bytes.n {
			p.begin, p.part, p.offset = "append", words[1], have
			return nil
		}
	}
	return fmt.Errorf("deliver %s to %s: %d bytes were sent, and the host has %q", p.artifact, p.conn.target.name(), p.bytes.n, head(said))
}

// exchange sends bytes in one exec.
func (p *pushing) exchange(ctx context.Context, packed string, bytes io.Reader) (plan.Answer, error) {
	c, mark, command := p.conn, newMark(), own("artifact-push", plan.Root)
	header := strings.Join([]string{mark, c.folder(), p.artifact.SHA256, strconv.FormatInt(p.size, 10), packed, p.begin, p.part,
		strconv.FormatInt(p.offset, 10), ""}, "\n")
	body := &ending{r: bytes}
	r, err := c.converse(ctx, conversation{mark: mark, line: scriptLine(c.client.opts.Prologue + c.fence() + command.Script),
		stdin: io.MultiReader(strings.NewReader(c.pass(mark)+header), body), questions: []question{{id: "push", Command: command}},
		limit: c.client.opts.Deadlines.Exchange + time.Duration(p.size/leastRate)*time.Second})
	body.end()
	if err != nil {
		return plan.Answer{}, c.lost(err)
	}
	seen := r.facts.Get("push")
	answer, ok := seen.Get()
	if !ok {
		return plan.Answer{}, fmt.Errorf("deliver %s to %s: %s", p.artifact, c.target.name(), seen.Why())
	}
	return answer, nil
}
