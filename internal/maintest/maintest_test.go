package maintest

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestDefaultSignals: a process that starts with signals ignored starts one that they end.
func TestDefaultSignals(t *testing.T) {
	t.Parallel()
	const inside = "MACFLEET_TEST_SIGNAL"
	if s := os.Getenv(inside); s != "" {
		DefaultSignals()
		out, err := exec.Command("/bin/sh", "-c", "kill -"+s+" $$; echo not ended").Output()
		if err == nil || len(out) > 0 {
			t.Errorf("%s: %q, %v", s, out, err)
		}
		return
	}
	for _, s := range []string{"INT", "HUP", "PIPE", "TERM", "QUIT"} {
		t.Run(s, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "trap '' INT HUP PIPE TERM QUIT; exec "+os.Args[0]+" -test.run '^TestDefaultSignals$'")
			cmd.Env = append(os.Environ(), inside+"="+s)
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestPorts: a port that is given is not one that a system gives to others, and is given once.
func TestPorts(t *testing.T) {
	t.Parallel()
	given := map[string]bool{}
	for range 3 {
		all, err := Ports(4)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", p))
			if err != nil || given[p] || p >= "32768" {
				t.Errorf("port %s: %v", p, err)
				continue
			}
			defer l.Close()
			given[p] = true
		}
	}
}
