package mac

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// TestInterruption kills a script before each of its three tools that change something, and breaks the
// connection as it starts.
func TestInterruption(t *testing.T) {
	t.Parallel()
	const script = `/bin/sh -c 'touch /private/tmp/a; cat /private/tmp/a; touch /private/tmp/b; touch /private/tmp/c'`
	for _, c := range []struct {
		kind        Interruption
		after       int
		interrupted bool
		files       int
	}{{Killed, 0, true, 0}, {Killed, 1, true, 1}, {Killed, 2, true, 2}, {Killed, 3, false, 3}, {ConnectionBreaks, 0, true, 3}, {ConnectionBreaks, 1, false, 3}} {
		m, client := login(t, &events{})
		m.InterruptAfter(c.after, c.kind)
		err := runLine(t, client, script)
		if got := m.Interrupted(); got != c.interrupted || (err != nil) != c.interrupted {
			t.Errorf("%+v: got %t, %v", c, got, err)
		}
		waitFor(t, func() bool { return len(strings.Fields(must(t, m, "root", "ls /private/tmp"))) == c.files })
	}
}

// TestInputInterrupted delivers only a part of the input: the command continues with it.
func TestInputInterrupted(t *testing.T) {
	t.Parallel()
	for _, after := range []int{0, 1, 5000, 8999} {
		m, client := login(t, &events{})
		session, err := client.NewSession()
		ok(t, err)
		session.Stdin = strings.NewReader(strings.Repeat("x", 9000))
		m.InterruptAfter(after, InputBreaks)
		if err := session.Run("cat > /private/tmp/a"); err == nil || !m.Interrupted() {
			t.Errorf("interrupted after %d bytes: %v", after, err)
		}
		waitFor(t, func() bool {
			return strings.TrimSpace(must(t, m, "root", "cat /private/tmp/a 2>/dev/null | wc -c")) == fmt.Sprint(after)
		})
	}
}

// runLine runs a command and reports whether its exit status arrived.
func runLine(t *testing.T, client *ssh.Client, line string) error {
	t.Helper()
	session, err := client.NewSession()
	ok(t, err)
	return session.Run(line)
}

func TestWatch(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	var seen []string
	m.Watch(func(argv []string, environ map[string]string) {
		seen = append(seen, strings.Join(argv, " ")+" "+environ["A"])
	})
	must(t, m, "root", "A=planted touch /private/tmp/a; echo builtin")
	if got := strings.Join(seen, "\n"); !strings.Contains(got, "touch /private/tmp/a planted") || strings.Contains(got, "\necho") {
		t.Errorf("seen:\n%s", got)
	}
}
