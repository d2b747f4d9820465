package fleet

import (
	"fmt"
	"net/netip"
)

// VMFirewall drops traffic from virtual machines to private networks, in a pf anchor. Its default for the
// machines' networks is wider than macOS's first one, 192.168.64.0/24: each further vmnet network uses the
// next.
type VMFirewall struct {
	Anchor    *string  `hcl:"anchor,optional" per:"fleet" default:"macfleet" is:"anchor"`
	Legacy    []string `hcl:"legacy,optional" per:"fleet" is:"anchor"`                                                             // anchors that it replaces
	VMSources []string `hcl:"vm_sources,optional" per:"fleet" default:"192.168.64.0/22" is:"network" least:"1"`                    // networks of virtual machines
	Block     []string `hcl:"block,optional" per:"fleet" default:"10.0.0.0/8,172.16.0.0/12,169.254.0.0/16" is:"network" least:"1"` // networks that they must not reach
}

// CheckNetwork says what is wrong with an IPv4 network, or "".
func CheckNetwork(text string) string {
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil || !p.Addr().Is4():
		return `it must be an IPv4 address with a prefix length, such as "10.0.0.0/8"`
	case p.Bits() == 0:
		return "it covers every address"
	case p != p.Masked():
		return fmt.Sprintf("bits after the prefix length are set: use %q", p.Masked())
	}
	return ""
}
