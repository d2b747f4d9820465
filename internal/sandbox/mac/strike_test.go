package mac

import (
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// TestStrike lets each kind befall a script of three tools, before each of them. The
// login shell and sh are tools too.
func TestStrike(t *testing.T) {
	t.Parallel()
	for _, kind := range []Strike{LineBreaks, Killed} {
		for n := range 6 {
			m, client := login(t, &events{})
			m.StrikeAfter(n, kind)
			err := runLine(t, client, `/bin/sh -c 'touch /private/tmp/a; touch /private/tmp/b; touch /private/tmp/c'`)
			struck := n < 5
			if got := m.Struck(); got != struck || (err != nil) != struck {
				t.Errorf("kind %d after %d: struck %t, %v", kind, n, got, err)
			}
			want := max(0, n-2)
			if kind == LineBreaks || !struck {
				want = 3
			}
			waitFor(t, func() bool { return len(strings.Fields(must(t, m, "root", "ls /private/tmp"))) == want })
		}
	}
}

// runLine runs a command and tells whether its end was heard of.
func runLine(t *testing.T, client *ssh.Client, line string) error {
	t.Helper()
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
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
