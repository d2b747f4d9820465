package hosts

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/plan"
)

// TestTurns counts how often an answer was waited for, however many reads and
// writes it takes.
func TestTurns(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	var counts stats
	w := &watched{Conn: near, silence: patience, stats: &counts}
	say := func(text string) {
		t.Helper()
		read := make(chan error, 1)
		go func() { _, err := io.ReadFull(far, make([]byte, len(text))); read <- err }()
		must(t, second(w.Write([]byte(text))))
		must(t, <-read)
	}
	hear := func(text string) {
		t.Helper()
		go func() { _, _ = far.Write([]byte(text)) }()
		must(t, second(io.ReadFull(w, make([]byte, len(text)))))
	}
	hear("banner") // unsolicited
	say("question")
	hear("answer")
	say("a question ")
	say("in two parts")
	hear("an answer ")
	hear("in two parts")
	say("a question without an answer")
	is(t, "turns", counts.turns.Load(), 2)
	is(t, "bytes sent", counts.sent.Load(), 59)
}

// TestSpent says where the time of each host went: a host that cannot be dialled
// has only that.
func TestSpent(t *testing.T) {
	t.Parallel()
	s := &server{key: newKey(t), command: func(ch ssh.Channel, _ string) { exit(ch, 0) }}
	p := listen(t, s.handle)
	c := New(Options{User: "m1", Key: newKey(t), Dial: p.dial, Deadlines: patient()})
	if _, err := c.Connect(within(t), target("acme-2", "192.0.2.2")); err == nil {
		t.Fatal("an address without an owner was dialled")
	}
	conn := connect(t, c, acme1())
	if seen := conn.Observe(within(t), nil); seen.Trouble == nil {
		t.Error("an exec that prints nothing is an observation")
	}
	conn.Close()
	type used struct {
		Host                  string
		Dial, Handshake, Exec bool
	}
	var got []used
	for _, s := range c.Spent() {
		got = append(got, used{s.Host, s.Dial > 0, s.Handshake > 0, s.Exec > 0})
		if s.Total() != s.Dial+s.Handshake+s.Exec {
			t.Errorf("%s: total %s of %+v", s.Host, s.Total(), s)
		}
	}
	want := []used{{"acme-1", true, true, true}, {"acme-2", true, false, false}}
	is(t, "it", got, want)
}

// TestExec shows that a host gets what Exec says, but for the mark.
func TestExec(t *testing.T) {
	t.Parallel()
	var got Exec
	p, c, conn := serving(t, &server{command: func(ch ssh.Channel, line string) {
		input, err := io.ReadAll(ch)
		if err != nil {
			t.Error(err)
		}
		got = Exec{Line: line, Stdin: string(input)}
		exit(ch, 0)
	}})
	probes := []plan.Probe{probe("power.settings", "pmset -g"), probe("arguments", echo, hostile()...)}
	conn.Observe(within(t), probes)
	conn.Close()
	p.closed(t) // no writer got any more
	want, err := c.Exec(probes)
	must(t, err)
	if want.Line != got.Line {
		t.Errorf("the line differs (-want +got):\n%s", cmp.Diff(want.Line, got.Line))
	}
	mark, rest, _ := strings.Cut(want.Stdin, "\n")
	sent, gotRest, _ := strings.Cut(got.Stdin, "\n")
	if len(mark) != len(sent) || mark == sent || rest != gotRest {
		t.Errorf("stdin after the marks %q and %q differs (-want +got):\n%s", mark, sent, cmp.Diff(rest, gotRest))
	}
	if _, err := c.Exec([]plan.Probe{probe("nul", echo, "a\x00b")}); err == nil {
		t.Error("an argument with a NUL byte was taken")
	}
}
