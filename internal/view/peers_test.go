package view_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/hosts/sshconfig"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// connectionTroubles are what a connection to a host can end in: the texts are
// those of package hosts, which meets a peer of each kind.
func connectionTroubles(t *testing.T) []trouble {
	t.Helper()
	key := fixedKey(t, 1)
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connect: no route to host")}
	wrong := &plan.Pin{ServerID: memberID, Name: memberOf, Key: string(ssh.MarshalAuthorizedKey(fixedKey(t, 2).PublicKey()))}
	const patience = 30 * time.Second
	var out []trouble
	for _, c := range []struct {
		code   string
		trust  plan.Trust
		dial   hosts.Dial
		within time.Duration // of the handshake
	}{
		{"unreachable", plan.Trust{}, func(context.Context, string, string) (net.Conn, error) { return nil, refused }, patience},
		{"no-ssh-answer", plan.Trust{}, peer(t, func(net.Conn) {}), 50 * time.Millisecond},
		{"damaged-pin", plan.Trust{Pin: &plan.Pin{ServerID: memberID, Name: memberOf, Key: "rubbish"}}, nil, patience},
		{"wrong-host-key", plan.Trust{Pin: wrong}, peer(t, server(key, nil)), patience},
		{"host-key-unknown", plan.Trust{Known: "its name"}, peer(t, server(key, nil)), patience},
		{"key-not-installed", plan.Trust{}, peer(t, server(key, errors.New("no"))), patience},
		{"connection-lost", plan.Trust{}, peer(t, server(key, nil)), patience},
	} {
		seen := look(t, key, c.trust, c.dial, c.within)
		out = append(out, silence(c.code, seen))
	}
	for code, o := range map[string]hosts.Options{
		"no-key":      {},
		"ssh-config":  {Key: key, Config: faulty},
		"jump-failed": {Key: key, Config: behindBastion},
	} {
		out = append(out, silence(code, observe(t, o, plan.Trust{})))
	}
	slices.SortStableFunc(out, func(a, b trouble) int { return strings.Compare(a.code, b.code) })
	// What a jump host that dies leaves behind is seen in package hosts.
	lost := &hosts.Error{Host: memberOf, Code: plantest.Code("jump-lost"), Phase: hosts.Talking, Err: errors.New("jump host bastion: no data for 20s"),
		Remedy: "check that it runs (ssh bastion), then run the command again"}
	return append(out, silence("jump-lost", plan.HostSeen{Trouble: lost.Trouble()}))
}

func silence(code string, seen plan.HostSeen) trouble {
	return trouble{code, func(s *scene) { s.snap.Hosts[memberID] = seen }}
}

// faulty is an ssh configuration with a faulty line.
func faulty(string, ...string) (sshconfig.Settings, error) {
	return sshconfig.Settings{}, errors.New("~/.ssh/config line 7: Bad port '0'")
}

// behindBastion is an ssh configuration with one jump host whose key is unknown.
func behindBastion(_ string, names ...string) (sshconfig.Settings, error) {
	if names[0] == "bastion" {
		return sshconfig.Settings{Known: []string{"/home/acme/.ssh/known_hosts"}}, nil
	}
	return sshconfig.Settings{Jumps: []sshconfig.Hop{{Host: "bastion"}}}, nil
}

// look observes a host as the engine does.
func look(t *testing.T, key ssh.Signer, trust plan.Trust, dial hosts.Dial, within time.Duration) plan.HostSeen {
	t.Helper()
	return observe(t, hosts.Options{Key: key, Dial: dial, KeySource: "secret k8s://macfleet/fleet-ssh/id_ed25519",
		Deadlines: hosts.Deadlines{Handshake: within}}, trust)
}

func observe(t *testing.T, o hosts.Options, trust plan.Trust) plan.HostSeen {
	t.Helper()
	o.User = "m1"
	c := hosts.New(o)
	defer c.Close()
	conn, err := c.Connect(t.Context(), hosts.Target{Server: machine(memberID, memberOf, 1), Trust: trust})
	var e *hosts.Error
	if errors.As(err, &e) {
		return plan.HostSeen{Trouble: e.Trouble()}
	} else if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.Observe(t.Context(), nil)
}

// fixedKey is a key that is the same in every run.
func fixedKey(t *testing.T, n byte) ssh.Signer {
	t.Helper()
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = n
	s, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(seed))
	must(t, err)
	return s
}

// peer answers one connection and keeps it open until the client hangs up.
func peer(t *testing.T, serve func(net.Conn)) hosts.Dial {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		serve(c)
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	}
}

// server is an SSH server that rejects every login when refuse is set, and opens no
// session.
func server(key ssh.Signer, refuse error) func(net.Conn) {
	return func(c net.Conn) {
		config := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, refuse }}
		config.AddHostKey(key)
		conn, channels, requests, err := ssh.NewServerConn(c, config)
		if err != nil {
			return
		}
		go ssh.DiscardRequests(requests)
		for offered := range channels {
			_ = offered.Reject(ssh.ConnectionFailed, "open failed")
		}
		_ = conn.Wait()
	}
}
