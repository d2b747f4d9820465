package sshconfig

import (
	"errors"
	"net/url"
	"strings"
)

// Hop is one jump host as ProxyJump names it.
type Hop struct {
	Host string // a name to look up in its turn, or an address without brackets
	User string // empty: not named here
	Port int    // 0: not named here
}

// parseJump reads a ProxyJump: hops in the order in which they are gone through.
// "none" has no hop.
func parseJump(text string) ([]Hop, error) {
	if strings.EqualFold(text, "none") {
		return nil, nil
	}
	var out []Hop
	for _, part := range strings.Split(text, ",") {
		hop, err := parseHop(part)
		if err != nil {
			return nil, err
		}
		out = append(out, hop)
	}
	return out, nil
}

// parseHop reads [user@]host[:port], also as ssh://[user@]host[:port]. An IPv6
// address with a port stands in brackets.
func parseHop(text string) (Hop, error) {
	var h Hop
	rest, uri := strings.CutPrefix(text, "ssh://")
	if uri {
		rest = strings.TrimSuffix(rest, "/")
	}
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		h.User, rest = rest[:i], rest[i+1:]
		if h.User == "" {
			return Hop{}, errors.New("the user is empty")
		}
		if uri {
			var err error
			if h.User, err = url.PathUnescape(h.User); err != nil {
				return Hop{}, errors.New("the user is not written as in a URL")
			}
		}
	}
	number, given := "", false
	if inside, ok := strings.CutPrefix(rest, "["); ok {
		var after string
		if rest, after, ok = strings.Cut(inside, "]"); !ok || after != "" && after[0] != ':' {
			return Hop{}, errors.New("a bracket is opened and not closed before the port")
		}
		number, given = strings.CutPrefix(after, ":")
	} else if strings.Count(rest, ":") == 1 {
		rest, number, given = strings.Cut(rest, ":")
	}
	if given {
		var ok bool
		if h.Port, ok = port(number); !ok {
			return Hop{}, errors.New("the port is no number from 1 to 65535")
		}
	}
	if h.Host = rest; rest == "" || strings.ContainsAny(rest, "@[]/ ") || rest[0] == '-' {
		return Hop{}, errors.New("a host is missing or is no name")
	}
	return h, nil
}
