package fleet

import (
	"fmt"
	"net/netip"
	"strings"
)

// VMFirewall drops what virtual machines send to private networks, in a pf
// anchor. Its default for the machines' networks is wider than the one that
// macOS begins with, 192.168.64.0/24: each further vmnet network takes the next.
type VMFirewall struct {
	Anchor    *string  `hcl:"anchor,optional" per:"fleet" default:"macfleet" is:"anchor"`
	Legacy    []string `hcl:"legacy,optional" per:"fleet" is:"anchor"`                                                             // anchors that it takes over
	VMSources []string `hcl:"vm_sources,optional" per:"fleet" default:"192.168.64.0/22" is:"network" least:"1"`                    // networks of virtual machines
	Block     []string `hcl:"block,optional" per:"fleet" default:"10.0.0.0/8,172.16.0.0/12,169.254.0.0/16" is:"network" least:"1"` // networks that they do not reach
}

// maxAnchor is the longest name of an anchor.
const maxAnchor = 63

// CheckAnchor says what is wrong with the name of a pf anchor, or "".
func CheckAnchor(name string) string {
	switch {
	case !only(name, maxAnchor, "._-"):
		return fmt.Sprintf("it must be 1 to %d letters, digits, dots, hyphens and underscores", maxAnchor)
	case !alnum(name[0]):
		return "it must begin with a letter or digit"
	case strings.HasPrefix(strings.ToLower(name), "com.apple"):
		return "names that begin with com.apple are macOS's own"
	}
	return ""
}

// CheckNetwork says what is wrong with an IPv4 network, or "".
func CheckNetwork(text string) string {
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil || !p.Addr().Is4():
		return `it must be an IPv4 address with a prefix length, such as "10.0.0.0/8"`
	case p.Bits() == 0:
		return "it is every address there is"
	case p != p.Masked():
		return fmt.Sprintf("bits behind the prefix length are set: write %q", p.Masked())
	}
	return ""
}
