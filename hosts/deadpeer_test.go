package hosts

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// TestStrangers meets one peer of each kind, with deadlines of which only
// the one that is to end it can be reached.
func TestStrangers(t *testing.T) {
	t.Parallel()
	for _, tt := range strangers() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			switch {
			case tt.code == "":
				answers(t, tt)
			case tt.phase != Talking:
				rejectsLogin(t, tt)
			default:
				t.Run("observe", func(t *testing.T) { t.Parallel(); breaksOff(t, tt, false, observing) })
				t.Run("probe", func(t *testing.T) { t.Parallel(); breaksOff(t, tt, false, probing) })
				t.Run("run", func(t *testing.T) { t.Parallel(); breaksOff(t, tt, true, running) })
			}
		})
	}
}

// meet returns a stranger's peer, its target and a client for it.
func (s stranger) meet(t testing.TB) (*peer, Target, *Client) {
	t.Helper()
	p, to := listen(t, s.serve(t)), acme1()
	if s.pin {
		to = pinned(to, newKey(t).PublicKey())
	}
	return p, to, New(Options{User: me(t), Key: newKey(t), Dial: p.dial, Deadlines: s.by.deadlines()})
}

func rejectsLogin(t *testing.T, s stranger) {
	p, to, c := s.meet(t)
	_, err := c.Connect(within(t), to)
	wantError(t, err, s.code, s.phase, s.says(c.opts.Deadlines, false))
	p.closed(t)
	if got := c.Stats(); got.Connections != 1 || got.Execs != 0 {
		t.Errorf("stats = %+v, want one connection and no exec", got)
	}
}

// breaksOff talks to a host that stops answering after the login.
func breaksOff(t *testing.T, s stranger, run bool, talk func(*testing.T, *Conn) error) {
	p, to, c := s.meet(t)
	conn := connect(t, c, to)
	wantError(t, talk(t, conn), s.code, s.phase, s.says(c.opts.Deadlines, run))
	conn.Close()
	p.closed(t)
}

func answers(t *testing.T, s stranger) {
	need(t, "dash", "perl")
	p, to, c := s.meet(t)
	conn := connect(t, c, to)
	seen := conn.Observe(within(t), []plan.Probe{probe("a.b", echo, "acme")})
	if seen.Trouble != nil {
		t.Fatalf("trouble: %+v", seen.Trouble)
	}
	is(t, "answer", seen.Facts.Get("a.b"), said(0, "<acme>", ""))
	conn.Close()
	p.closed(t)
}

func probing(t *testing.T, conn *Conn) error {
	facts, _, err := conn.Probe(within(t), []plan.Probe{probe("a.b", ":")})
	if facts != nil {
		t.Errorf("facts in spite of the error: %v", facts)
	}
	return err
}

func running(t *testing.T, conn *Conn) error {
	a, err := conn.Run(within(t), probe("a.b", ":").Command, secret.Value{})
	if a != (plan.Answer{}) {
		t.Errorf("an answer in spite of the error: %+v", a)
	}
	return err
}

// observing returns the observation's trouble as an error.
func observing(t *testing.T, conn *Conn) error {
	seen := conn.Observe(within(t), []plan.Probe{probe("a.b", ":")})
	if seen.Trouble == nil {
		t.Fatalf("seen = %+v, want its trouble", seen)
	}
	want := plan.HostSeen{Trouble: seen.Trouble, Path: Public, Key: keyText(conn.key), Fingerprint: ssh.FingerprintSHA256(conn.key)}
	is(t, "seen", seen, want)
	text, ok := strings.CutPrefix(seen.Trouble.Text, string(Talking)+": ")
	if !ok {
		t.Errorf("trouble = %q, want the phase in front", seen.Trouble.Text)
	}
	return &Error{Host: "acme-1", Code: seen.Trouble.Code, Phase: Talking, Remedy: seen.Trouble.Remedy, Err: errors.New(text)}
}
