package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

func TestConnectUnreachable(t *testing.T) {
	t.Parallel()
	hangs := func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
	tests := []struct {
		name   string
		to     Target
		dial   Dial
		is     error
		text   string
		remedy string
	}{
		{"refused", acme1(), book(map[string]string{peerAddress + ":22": noServer}), nil, "refused", "Remote Login"},
		{"no answer", acme1(), hangs, context.DeadlineExceeded, "deadline", "Scaleway console"},
		{"no address", target("acme-1", ""), nil, nil, "no address", "Scaleway console"},
		{"IPv6", target("acme-1", "2001:db8::1"), book(nil), nil, "[2001:db8::1]:22", "Scaleway console"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := New(Options{User: "acme", Key: newKey(t), Dial: tt.dial,
				Deadlines: impatient(func(d *Deadlines) { d.Dial = 50 * time.Millisecond })})
			_, err := c.Connect(within(t), tt.to)
			wantError(t, err, "unreachable", Dialing, tt.text)
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error = %v, want one that wraps %v", err, tt.is)
			}
			if e := asError(t, err); !strings.Contains(e.Remedy, tt.remedy) {
				t.Errorf("remedy = %q, want one with %q", e.Remedy, tt.remedy)
			}
			is(t, "stats of a connection that never was", c.Stats(), (Stats{}))
		})
	}
}

func TestConnectCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(within(t))
	p := listen(t, func(c net.Conn) {
		// The client's banner says that it is past dialing.
		_, _ = io.ReadFull(c, make([]byte, 1))
		cancel()
		untilClosed(c)
	})
	c := New(Options{User: "acme", Key: newKey(t), Dial: p.dial, Deadlines: patient()})
	_, err := c.Connect(ctx, acme1())
	wantError(t, err, "no-ssh-answer", Handshaking, "canceled")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want one that wraps context.Canceled", err)
	}
}

// swapping is a host key that another takes the place of.
type swapping struct {
	now   atomic.Pointer[ssh.Signer]
	first ssh.Signer
}

func (s *swapping) signer() ssh.Signer {
	if k := s.now.Load(); k != nil {
		return *k
	}
	return s.first
}

func (s *swapping) PublicKey() ssh.PublicKey { return s.signer().PublicKey() }

func (s *swapping) Sign(r io.Reader, b []byte) (*ssh.Signature, error) {
	return s.signer().Sign(r, b)
}

// TestHostKeyOfNewSessionKeys makes the server ask for new session keys after
// every few bytes; each time it shows its host key again.
func TestHostKeyOfNewSessionKeys(t *testing.T) {
	t.Parallel()
	answer := func(ch ssh.Channel, _ string) {
		mark := markOf(ch)
		_, _ = io.Copy(io.Discard, ch)
		for range 512 { // more than the packets that may wait while keys are exchanged
			_, _ = io.WriteString(ch, strings.Repeat("noise", 20))
		}
		_, _ = fmt.Fprintf(ch, "\n%s host 0\n\n%s done\n", mark, mark)
		exit(ch, 0)
	}
	often := func(c *ssh.ServerConfig) { c.RekeyThreshold = 256 }
	t.Run("the same", func(t *testing.T) {
		t.Parallel()
		key := newKey(t)
		_, _, conn := serving(t, &server{key: key, command: answer, config: often})
		for range 3 {
			seen := conn.Observe(within(t), nil)
			if seen.Trouble != nil || seen.Key != keyText(key.PublicKey()) {
				t.Errorf("trouble = %+v, key = %s", seen.Trouble, seen.Key)
			}
		}
	})
	t.Run("another", func(t *testing.T) {
		t.Parallel()
		key, other := &swapping{first: newKey(t)}, newKey(t)
		_, _, conn := serving(t, &server{key: key, command: answer, config: often})
		key.now.Store(&other)
		seen := conn.Observe(within(t), nil)
		if seen.Trouble == nil || seen.Key != keyText(key.first.PublicKey()) {
			t.Errorf("trouble = %+v, key = %s: the host became another one unnoticed", seen.Trouble, seen.Key)
		}
	})
}
