package boundary_test

import (
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/maintest"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/boundary"
	"github.com/macfleet/macfleet/steps/kit"
)

func TestMain(m *testing.M) { maintest.Main(m) }

const head = "Active Internet connections (including servers)\nProto Recv-Q Send-Q  Local Address          Foreign Address        (state)    \n"

// answer is what the probe's script prints of a host.
func answer(sockets, address string) plan.Answer {
	return plan.Answer{Stdout: head + sockets + "\n== listeners 0\n" + address + "\n== address 0\n\n== end\n"}
}

func seen(t *testing.T, a plan.Answer) (boundary.Seen, []plan.Unread) {
	t.Helper()
	r := &kit.Reader{Facts: plan.Facts{boundary.Probe().ID: inventory.Present(a)}}
	return boundary.Read(r), r.Unread
}

// TestWhere: where a port is open, by what netstat prints on a Mac.
func TestWhere(t *testing.T) {
	t.Parallel()
	line := func(kind, local, state string) string {
		return kind + "      0      0  " + local + "     *.*                    " + state + "\n"
	}
	listens := func(local ...string) string {
		var b strings.Builder
		for _, one := range local {
			b.WriteString(line("tcp4", one, "LISTEN"))
		}
		return b.String()
	}
	for name, tc := range map[string]struct{ sockets, address, want string }{
		"nothing":                        {"", "100.64.0.7", "closed"},
		"another port":                   {listens("*.91000", "*.910", "*.22"), "100.64.0.7", "closed"},
		"the tailnet address":            {listens("100.64.0.7.9100"), "100.64.0.7", boundary.Inside},
		"every address":                  {line("tcp46", "*.9100", "LISTEN"), "100.64.0.7", "on every address"},
		"the public address":             {listens("192.0.2.10.9100"), "100.64.0.7", "on 192.0.2.10"},
		"a private address":              {listens("10.0.0.5.9100"), "100.64.0.7", "on 10.0.0.5"},
		"both":                           {listens("100.64.0.7.9100", "192.0.2.10.9100"), "100.64.0.7", "on 192.0.2.10"},
		"two programs on every address":  {line("tcp4", "*.9100", "LISTEN") + line("tcp6", "*.9100", "LISTEN"), "100.64.0.7", "on every address"},
		"loopback":                       {listens("127.0.0.1.9100") + line("tcp6", "::1.9100", "LISTEN") + line("tcp6", "fe80::1%lo0.9100", "LISTEN"), "100.64.0.7", "closed"},
		"a former address":               {listens("100.64.0.9.9100"), "100.64.0.7", "at the former address 100.64.0.9"},
		"no address in the tailnet":      {listens("100.64.0.7.9100"), "", "at the former address 100.64.0.7"},
		"just outside the tailnet":       {listens("100.128.0.1.9100"), "100.64.0.7", "on 100.128.0.1"},
		"IPv6 of the tailnet":            {line("tcp6", "fd7a:115c:a1e0::.9100", "LISTEN"), "100.64.0.7", boundary.Inside},
		"IPv6 of the tailnet, cut off":   {line("tcp6", "fd7a:115c:a1e0:a.9100", "LISTEN"), "100.64.0.7", boundary.Inside},
		"public IPv6":                    {line("tcp6", "2001:db8::1.9100", "LISTEN"), "100.64.0.7", "on 2001:db8::1"},
		"public IPv6, cut off":           {line("tcp6", "2001:db8:1:2:aaa.9100", "LISTEN"), "100.64.0.7", "on 2001:db8:1:2:aaa"},
		"a connection is not a listener": {line("tcp4", "192.0.2.10.9100", "ESTABLISHED"), "100.64.0.7", "closed"},
		"UDP":                            {line("udp4", "*.9100", ""), "100.64.0.7", "closed"},
	} {
		s, unread := seen(t, answer(tc.sockets, tc.address))
		if got := s.Where("9100"); got != tc.want || len(unread) > 0 {
			t.Errorf("%s: it is open %q, want %q; unread: %v", name, got, tc.want, unread)
		}
		if public := boundary.Public(tc.want); public != strings.HasPrefix(tc.want, "on ") {
			t.Errorf("%s: public is %v", name, public)
		}
	}
}

// TestABlindBoundaryIsUnread: a netstat that failed, or an answer that was cut off, is not a host without listeners.
func TestABlindBoundaryIsUnread(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]plan.Answer{
		"netstat failed": {Stdout: "netstat: sysctl: Operation not permitted\n== listeners 1\n\n== end\n"},
		"cut off":        {Stdout: head},
		"another part":   {Stdout: "\n== weather 0\n\n== end\n"},
	} {
		if _, unread := seen(t, a); len(unread) != 1 {
			t.Errorf("%s: unread is %v", name, unread)
		}
	}
	s, unread := seen(t, plan.Answer{Stdout: head + "\n== listeners 0\n\n== address 1\n\n== end\n"})
	if s.Address != "" || len(unread) > 0 {
		t.Errorf("a host that has not joined has the address %q, unread %v", s.Address, unread)
	}
}

// TestJudged: tailscaled also names the address of a device that is deleted or whose key has expired.
func TestJudged(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	device := func(address string, expires time.Time) *plan.PeerSeen {
		return &plan.PeerSeen{Listing: inventory.Listing{Tailnet: &inventory.Tailnet{Devices: []inventory.Device{{ID: "n1", Addresses: []string{address}, KeyExpires: expires}}}}}
	}
	unlisted, troubled := device("100.64.0.9", time.Time{}), device("100.64.0.9", time.Time{})
	unlisted.Unlisted, troubled.Trouble = true, &plan.Trouble{Text: "the control server does not answer"}
	for name, tc := range map[string]struct {
		tailnet *plan.PeerSeen
		want    string
	}{
		"not probed":          {nil, "100.64.0.7"},
		"listed":              {device("100.64.0.7", time.Time{}), "100.64.0.7"},
		"expires later":       {device("100.64.0.7", now.Add(time.Hour)), "100.64.0.7"},
		"expired":             {device("100.64.0.7", now.Add(-time.Hour)), ""},
		"deleted":             {&plan.PeerSeen{}, ""},
		"of another address":  {device("100.64.0.9", time.Time{}), ""},
		"cannot be listed":    {unlisted, "100.64.0.7"},
		"could not be listed": {troubled, "100.64.0.7"},
	} {
		s, _ := seen(t, answer("", "100.64.0.7"))
		if got := s.Judged(plan.View{Peers: []plan.HostPeer{{Peer: inventory.TailnetService, Seen: tc.tailnet}}, Taken: now}).Address; got != tc.want {
			t.Errorf("%s: the address is %q, want %q", name, got, tc.want)
		}
	}
}

// FuzzListeners: whatever netstat prints, a port that is open on an address outside the tailnet is never "in the tailnet only".
func FuzzListeners(f *testing.F) {
	f.Add("tcp4       0      0  100.64.0.7.9100        *.*                    LISTEN     \n")
	f.Add("tcp46      0      0  *.9100                 *.*                    LISTEN     \n")
	f.Add("tcp6       0      0  fe80::1%lo0.9100       *.*                    LISTEN     \n")
	f.Add("tcp4 0 0 .9100 *.* LISTEN\n\x00")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "\n== ") {
			return
		}
		for _, more := range []string{"", "\ntcp46      0      0  *.9100                 *.*                    LISTEN\n"} {
			s, _ := seen(t, answer(text+more, "100.64.0.7"))
			if where := s.Where("9100"); more != "" && !boundary.Public(where) {
				t.Errorf("a listener on every address was lost: %q", where)
			}
		}
	})
}
