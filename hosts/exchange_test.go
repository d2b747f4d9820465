package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

func TestTalkCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(within(t))
	p, _, conn := serving(t, &server{command: func(ch ssh.Channel, _ string) { cancel(); _, _ = io.Copy(io.Discard, ch) }})
	_, err := conn.Run(ctx, probe("a.b", ":").Command, secret.Value{})
	wantError(t, err, "connection-lost", Talking, "canceled")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want one that wraps context.Canceled", err)
	}
	// A cut conversation is over: nothing may be sent as if it were not.
	if _, _, err := conn.Probe(within(t), nil); err == nil {
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
	_, _, conn := serving(t, &server{command: command})
	_, err := conn.Run(within(t), plan.Command{Name: "set-power", Script: ":", As: plan.Root}, secret.Value{})
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
	_, c, conn := serving(t, &server{})
	for name, bad := range map[string]plan.Probe{
		"script": probe("a.b", strings.Repeat(":\n", maxScript)),
		"data":   probe("a.b", ":", "acme\x00"),
	} {
		if _, _, err := conn.Probe(within(t), []plan.Probe{bad}); err == nil {
			t.Errorf("%s: it was sent", name)
		}
	}
	is(t, "execs", c.Stats().Execs, 0)
}

// TestCommandThatLeavesItsInput: a host that does not read all of its stdin has
// answered anyway. The rest is more than a channel's window, so that it is
// still being written when the command ends.
func TestCommandThatLeavesItsInput(t *testing.T) {
	t.Parallel()
	_, _, conn := serving(t, &server{command: func(ch ssh.Channel, _ string) {
		mark := markOf(ch)
		frame := fmt.Sprintf("\n%s begin a.b\n%%s\n%s end 0\n", mark, mark)
		_, _ = fmt.Fprintf(ch, "\n%s host 0\n"+frame+"\n%s done\n", mark, "one", mark)
		_, _ = fmt.Fprintf(ch.Stderr(), frame, "")
		exit(ch, 0)
	}})
	facts, _, err := conn.Probe(within(t), []plan.Probe{probe("a.b", ":", strings.Repeat("x", 8<<20))})
	must(t, err)
	is(t, "facts", facts, plan.Facts{"a.b": said(0, "one", "")})
}
