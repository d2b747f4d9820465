package fleet

import (
	"net/netip"
	"regexp"
	"strings"
)

var numericLabel = regexp.MustCompile(`^(0x[0-9a-f]*|[0-9]+)$`)

// AddressFault says why a name or an IP address, as it stands in a URL, is of no use to another machine
// than the one that has it, or "".
func AddressFault(host string) string {
	const own = "by it each machine reaches only itself"
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr = addr.Unmap(); addr.IsLoopback() || addr.IsUnspecified() {
			return own
		}
		return ""
	}
	labels := strings.Split(host, ".")
	switch last := labels[len(labels)-1]; {
	case last == "localhost" || labels[0] == "localhost":
		return own
	case numericLabel.MatchString(last):
		// Resolvers read 127.1 and 0 as addresses of four parts.
		return "it is neither a name nor an IP address in full"
	}
	return ""
}
