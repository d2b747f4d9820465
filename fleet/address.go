package fleet

import (
	"net/netip"
	"regexp"
	"strings"
)

var numericLabel = regexp.MustCompile(`^(0x[0-9a-f]*|[0-9]+)$`)

// AddressFault says why a name or IP address in a URL cannot be used by another machine, or "".
func AddressFault(host string) string {
	const own = "it is a loopback address, which reaches only the machine itself"
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
		// Resolvers read 127.1 and 0 as IPv4 addresses.
		return "it must be a name or a complete IP address"
	}
	return ""
}
