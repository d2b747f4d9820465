package hosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/plan"
)

// TestTalkToDeadPeer goes through a host that stops answering after the login.
func TestTalkToDeadPeer(t *testing.T) {
	t.Parallel()
	exchange := impatient(func(d *Deadlines) { d.Exchange, d.Change = 200*time.Millisecond, 1 })
	silence := impatient(func(d *Deadlines) { d.Silence = time.Second })
	print := func(text string, code uint32) func(ssh.Channel, string) {
		return func(ch ssh.Channel, _ string) {
			_, _ = io.WriteString(ch, strings.ReplaceAll(text, "MARK", markOf(ch)))
			exit(ch, code)
		}
	}
	flood := func(to func(ssh.Channel) io.Writer) func(ssh.Channel, string) {
		return func(ch ssh.Channel, _ string) {
			block := bytes.Repeat([]byte("acme"), 8192)
			for {
				if _, err := to(ch).Write(block); err != nil {
					return
				}
			}
		}
	}
	tests := []struct {
		name      string
		server    *server
		deadlines Deadlines
		text      string
	}{
		{"silent but for keepalives", &server{hang: true}, exchange, "no end of the command within"},
		{"silent", &server{hang: true, silent: true}, silence, ""},
		{"floods stdout", &server{command: flood(func(ch ssh.Channel) io.Writer { return ch })}, patient(), "printed more than 4194304 bytes"},
		{"floods stderr", &server{command: flood(func(ch ssh.Channel) io.Writer { return ch.Stderr() })}, patient(), "printed more than 4194304 bytes"},
		{"refuses the channel", &server{channel: func(n ssh.NewChannel) { _ = n.Reject(ssh.Prohibited, "no more sessions") }}, patient(), "no more sessions"},
		{"refuses the command", &server{}, patient(), ""},
		{"hangs up in the answer", &server{command: func(ch ssh.Channel, _ string) {
			_, _ = io.WriteString(ch, "\n"+markOf(ch)+" host 0\n")
		}}, patient(), ""},
		{"ends without a word", &server{command: print("", 0)}, patient(), "first mark did not arrive"},
		{"has no shell", &server{command: print("This account is currently not available.\n", 1)}, patient(), `"This account is currently not available.\n"`},
		{"ends before the last mark", &server{command: print("\nMARK host 0\n", 91)}, patient(), "ended before its last mark"},
		{"dies by a signal", &server{command: func(ch ssh.Channel, _ string) {
			_, _ = io.WriteString(ch, "\n"+markOf(ch)+" host 0\n")
			_, _ = ch.SendRequest("exit-signal", false, ssh.Marshal(struct {
				Signal     string
				Core       bool
				Text, Lang string
			}{Signal: "KILL"}))
		}}, patient(), "ended before its last mark"},
	}
	probes := []plan.Probe{probe("a.b", ":")}
	for _, tt := range tests {
		tt.server.key = newKey(t)
		talk := func(t *testing.T, say func(*Conn) error) {
			t.Helper()
			t.Parallel()
			p := listen(t, tt.server.handle)
			c := New(Options{User: "acme", Key: newKey(t), Dial: p.dial, Deadlines: tt.deadlines})
			conn := connect(t, c, acme1())
			err := say(conn)
			wantError(t, err, "connection-lost", Talking, tt.text)
			conn.Close()
			p.closed(t)
		}
		t.Run(tt.name+", probe", func(t *testing.T) {
			talk(t, func(conn *Conn) error {
				facts, err := conn.Probe(within(t), probes)
				if facts != nil {
					t.Errorf("facts beside the error: %v", facts)
				}
				return err
			})
		})
		t.Run(tt.name+", run", func(t *testing.T) {
			talk(t, func(conn *Conn) error {
				a, err := conn.Run(within(t), probes[0].Command)
				if a != (plan.Answer{}) {
					t.Errorf("an answer beside the error: %+v", a)
				}
				return err
			})
		})
		t.Run(tt.name+", observe", func(t *testing.T) {
			talk(t, func(conn *Conn) error {
				seen := conn.Observe(within(t), probes)
				if seen.Trouble == nil {
					t.Fatalf("seen = %+v, want its trouble", seen)
				}
				want := plan.HostSeen{Trouble: seen.Trouble, Key: keyText(tt.server.key.PublicKey()),
					Fingerprint: ssh.FingerprintSHA256(tt.server.key.PublicKey())}
				if diff := cmp.Diff(want, seen, whole); diff != "" {
					t.Errorf("seen (-want +got):\n%s", diff)
				}
				text, ok := strings.CutPrefix(seen.Trouble.Text, "command: ")
				if !ok {
					t.Errorf("trouble = %q, want the phase in front", seen.Trouble.Text)
				}
				return &Error{Host: "acme-1", Code: seen.Trouble.Code, Phase: Talking, Remedy: seen.Trouble.Remedy, Err: errors.New(text)}
			})
		})
	}
}

func TestTalkCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(within(t))
	s := &server{key: newKey(t), command: func(ch ssh.Channel, _ string) { cancel(); _, _ = io.Copy(io.Discard, ch) }}
	p := listen(t, s.handle)
	conn := connect(t, New(Options{User: "acme", Key: newKey(t), Dial: p.dial, Deadlines: patient()}), acme1())
	_, err := conn.Run(ctx, probe("a.b", ":").Command)
	wantError(t, err, "connection-lost", Talking, "canceled")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want one that wraps context.Canceled", err)
	}
	// A cut conversation is over: nothing may be sent as if it were not.
	if _, err := conn.Probe(within(t), nil); err == nil {
		t.Error("a second exchange went through the closed connection")
	}
	p.closed(t)
}

// TestRunUnread: a change for root on a host without root is not run.
func TestRunUnread(t *testing.T) {
	t.Parallel()
	command := func(ch ssh.Channel, _ string) {
		mark := markOf(ch)
		text := "\n" + mark + " begin change\n\n" + mark + " end needs-root\n"
		_, _ = fmt.Fprintf(ch, "\n%s host 501\n%s\n%s done\n", mark, text, mark)
		_, _ = io.WriteString(ch.Stderr(), text)
		exit(ch, 0)
	}
	p := listen(t, (&server{key: newKey(t), command: command}).handle)
	conn := connect(t, New(Options{User: "acme", Key: newKey(t), Dial: p.dial, Deadlines: patient()}), acme1())
	_, err := conn.Run(within(t), plan.Command{Name: "set-power", Script: ":", As: plan.Root})
	if want := "set-power on acme-1: needs root"; err == nil || err.Error() != want {
		t.Errorf("error = %v, want %q", err, want)
	}
	// The connection is sound: only this change was not possible.
	if seen := conn.Observe(within(t), nil); seen.Trouble != nil || seen.Root {
		t.Errorf("seen = %+v, want a host without root and without trouble", seen)
	}
}

// TestTooMuchToAsk: what cannot be sent is an error before anything is.
func TestTooMuchToAsk(t *testing.T) {
	t.Parallel()
	p := listen(t, (&server{key: newKey(t)}).handle)
	c := New(Options{User: "acme", Key: newKey(t), Dial: p.dial, Deadlines: patient()})
	conn := connect(t, c, acme1())
	for name, bad := range map[string]plan.Probe{
		"script": probe("a.b", strings.Repeat(":\n", maxScript)),
		"data":   probe("a.b", ":", "acme\x00"),
	} {
		if _, err := conn.Probe(within(t), []plan.Probe{bad}); err == nil {
			t.Errorf("%s: it was sent", name)
		}
	}
	if got := c.Stats().Execs; got != 0 {
		t.Errorf("%d execs, want none", got)
	}
}
