package hosts

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"net"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/maintest"
	"github.com/macfleet/macfleet/plan"
)

func TestMain(m *testing.M) { maintest.Main(m) }

// patience bounds what a test waits for. It is far above what anything takes,
// so that it only ends a test that hangs.
const patience = time.Minute

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// whole lets go-cmp look into inventory.Seen, whose state is its own.
var whole = cmp.Exporter(func(reflect.Type) bool { return true })

func newKey(t testing.TB) ssh.Signer {
	t.Helper()
	return signer(t, edwards(t))
}

func edwards(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	return private
}

func signer(t testing.TB, private any) ssh.Signer {
	t.Helper()
	key, err := ssh.NewSignerFromKey(private)
	must(t, err)
	return key
}

// target is a host at a fake address, see book.
func target(name, address string) Target {
	return Target{Server: inventory.Server{ID: "id-" + name, Name: name, Address: address}}
}

func pinned(t Target, key ssh.PublicKey) Target {
	t.Trust.Pin = &plan.Pin{Name: t.Server.Name, ServerID: t.Server.ID, Key: keyText(key)}
	return t
}

// book dials the loopback address that stands for a host's address. What it
// does not know it refuses, so that no test reaches the network.
func book(entries map[string]string) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		to, ok := entries[address]
		if !ok {
			return nil, &net.AddrError{Err: "not in the book of this test", Addr: address}
		}
		return (&net.Dialer{}).DialContext(ctx, network, to)
	}
}

func connect(t testing.TB, c *Client, to Target) *Conn {
	t.Helper()
	conn, err := c.Connect(within(t), to)
	must(t, err)
	t.Cleanup(conn.Close)
	return conn
}

// connected is connect for a goroutine that is not the test's own: nil after an error.
func connected(t testing.TB, c *Client, to Target) *Conn {
	t.Helper()
	conn, err := c.Connect(within(t), to)
	if err != nil {
		t.Error(err)
		return nil
	}
	t.Cleanup(conn.Close)
	return conn
}

func probe(id, script string, args ...string) plan.Probe {
	return plan.Probe{ID: id, Command: plan.Command{Name: id, Script: script, As: plan.Login, Args: args}}
}

func said(exit int, stdout, stderr string) inventory.Seen[plan.Answer] {
	return inventory.Present(plan.Answer{Exit: exit, Stdout: stdout, Stderr: stderr})
}

func unread(why string) inventory.Seen[plan.Answer] { return inventory.Unread[plan.Answer](why) }

// must ends a test at the first error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// is fails unless something is as it must be.
func is[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, whole); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
