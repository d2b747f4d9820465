// Package boundary reads where a host's programs accept connections, so that metrics are served in the
// tailnet only. The steps of those programs share its probe.
package boundary

import (
	"embed"
	"net/netip"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
)

//go:embed scripts
var files embed.FS

var scripts = kit.ScriptsOf(files)

const id = "boundary.listeners"

// CodeMetricsOnPublic is raised by the step whose program listens outside the tailnet.
var CodeMetricsOnPublic = plan.NewCode("metrics-on-public", plan.Critical, "metrics are served on an address outside the tailnet")

// Probe returns the probe. Several steps ask it; a host answers it once.
func Probe() plan.Probe {
	return plan.Probe{ID: id, Command: scripts.Command("boundary-listeners", plan.Login)}
}

// Seen is what a host's boundary looks like.
type Seen struct {
	Address string // the host's IPv4 address in the tailnet; empty: it has none
	sockets []socket
}

// socket accepts connections: at one address, or at every one.
type socket struct {
	address string // * = every one
	port    string
}

// Read parses the answer to the probe.
func Read(r *kit.Reader) Seen {
	var s Seen
	r.Parts(id, func(p kit.Part) error {
		switch p.Name {
		case "listeners":
			if err := p.Worked(); err != nil {
				return err
			}
			s.sockets = Listeners(p.Body)
		case "address":
			text := strings.TrimSpace(p.Body)
			if a, err := netip.ParseAddr(text); p.Exit == 0 && err == nil {
				s.Address = a.String()
			}
		default:
			return kit.ErrPart
		}
		return nil
	})
	return s
}

// Listeners parses the listening sockets of `netstat -an -p tcp`. Other lines are skipped.
func Listeners(text string) []socket {
	var out []socket
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 6 || !strings.HasPrefix(words[0], "tcp") || words[5] != "LISTEN" {
			continue
		}
		at := strings.LastIndexByte(words[3], '.')
		if at <= 0 {
			continue // an IPv6 address that was cut off
		}
		out = append(out, socket{words[3][:at], words[3][at+1:]})
	}
	return out
}

// Judged returns s without an address that the control server does not list for a device of the host, or whose node key has
// expired: the host gets another one when it joins again, and programs that listen on the former one are unreachable.
func (s Seen) Judged(v plan.View) Seen {
	t := v.Peer(inventory.TailnetService)
	if s.Address == "" || !t.Read() {
		return s
	}
	for _, d := range t.Net().Devices {
		if d.Has(s.Address) && (d.KeyExpires.IsZero() || v.Taken.IsZero() || d.KeyExpires.After(v.Taken)) {
			return s
		}
	}
	s.Address = ""
	return s
}

// Inside is how Where says that a port is open in the tailnet only.
const Inside = "in the tailnet only"

// Public reports whether Where says that a port is open outside the tailnet.
func Public(where string) bool { return strings.HasPrefix(where, "on ") }

// Where says where a port is open: Inside, "closed", at a former address of the host in the tailnet, or on which addresses
// outside it. A port that is open on loopback is not served to others.
func (s Seen) Where(port string) string {
	var outside []string
	inside, former := false, ""
	for _, one := range s.sockets {
		a, err := netip.ParseAddr(one.address)
		switch {
		case one.port != port, err == nil && (a.IsLoopback() || a.Zone() == "lo0"):
		case one.address == s.Address && s.Address != "", err == nil && tailnetV6.Contains(a), strings.HasPrefix(one.address, cutV6):
			inside = true
		case err == nil && tailnetV4.Contains(a):
			former = one.address
		case one.address == "*":
			outside = append(outside, "every address")
		default:
			outside = append(outside, one.address)
		}
	}
	slices.Sort(outside)
	switch outside = slices.Compact(outside); {
	case len(outside) > 0:
		return "on " + strings.Join(outside, ", ")
	case inside:
		return Inside
	case former != "":
		return "at the former address " + former
	}
	return "closed"
}

// tailnetV4 has the IPv4 addresses of all tailnets.
var tailnetV4 = netip.MustParsePrefix("100.64.0.0/10")

// tailnetV6 has the IPv6 addresses of all tailnets.
var tailnetV6 = netip.MustParsePrefix("fd7a:115c:a1e0::/48")

// cutV6 starts such an address where netstat has cut it off: it prints 16 characters of an IPv6 address.
const cutV6 = "fd7a:115c:a1e0:"
