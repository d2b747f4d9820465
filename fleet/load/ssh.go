package load

import (
	"regexp"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/secret"
)

const (
	defaultUser = "m1"
	viaTailnet  = "tailscale"
	viaPublic   = "public"
)

var userPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9._-]{0,31}$`)

// ssh reads how hosts are reached.
func (l *loader) ssh(blocks []*hclsyntax.Block, sc *scope, k *fleet.Kubernetes) fleet.SSH {
	b := decodeOnly[sshBlock](l, blocks, sc)
	if b == nil {
		return fleet.SSH{}
	}
	s := fleet.SSH{User: or(b.User, defaultUser), PrivateKey: b.PrivateKey, Via: b.Via}
	if !userPattern.MatchString(s.User) {
		l.fault(b.Place.at("user"), "Invalid user", "%s is not the name of a user: it must be letters, digits, dots, hyphens and underscores, at most 32.", quoted(s.User))
	}
	if ref := s.PrivateKey; k != nil && ref.Scheme == secret.Kubernetes && slices.Contains(k.PodNamespaces, ref.Parts()[0]) {
		l.fault(b.Place.at("private_key"), "Key readable by hosts", "Pods for the hosts run in the namespace %s, so whoever is root on one host could read the key to all of them there. Keep it in %s, or leave %[1]s out of pod_namespaces in the kubernetes block.", quoted(ref.Parts()[0]), quoted(k.Namespace))
	}
	if !b.Place.written("via") {
		s.Via = []string{viaPublic}
	}
	if b.Place.good["via"] {
		l.via(b)
	}
	s.Timeouts = l.timeouts(b.Timeouts)
	return s
}

func (l *loader) via(b *sshBlock) {
	paths := []string{viaTailnet, viaPublic}
	if len(b.Via) == 0 {
		l.fault(b.Place.at("via"), "Empty list", "The argument %q must name at least one path: %s.", "via", listed(paths))
	}
	for i, path := range b.Via {
		at := b.Place.element("via", i)
		switch {
		case !slices.Contains(paths, path):
			l.fault(at, "Unknown path", "No path to a host is named %s.%s There is %s.", quoted(path), didYouMean(fleet.Nearest(path, paths)), listed(paths))
		case slices.Index(b.Via, path) < i:
			l.fault(at, "Duplicate path", "The path %q is listed twice. Remove one.", path)
		}
	}
}

// The bounds of a timeout. What a host is told to keep it counts in seconds.
const (
	leastTimeout = time.Millisecond
	mostTimeout  = time.Hour
	leastUndo    = 10 * time.Second // the host looks every five
)

// timeouts reads how long each part of a conversation may take. What is left out
// is the default of the package that keeps it.
func (l *loader) timeouts(b *timeoutsBlock) fleet.Timeouts {
	if b == nil {
		return fleet.Timeouts{}
	}
	return fleet.Timeouts{
		Dial:      l.timeout(b, "dial", b.Dial, leastTimeout),
		Handshake: l.timeout(b, "handshake", b.Handshake, leastTimeout),
		Question:  l.timeout(b, "question", b.Question, time.Second),
		Change:    l.timeout(b, "change", b.Change, time.Second),
		Exchange:  l.timeout(b, "exchange", b.Exchange, leastTimeout),
		Silence:   l.timeout(b, "silence", b.Silence, leastTimeout),
		Undo:      l.timeout(b, "undo", b.Undo, leastUndo),
	}
}

// timeout reads one of them. A least of a second or more means whole seconds.
func (l *loader) timeout(b *timeoutsBlock, name string, text *string, least time.Duration) time.Duration {
	if text == nil || !b.Place.good[name] {
		return 0
	}
	const summary = "Invalid duration"
	d, err := time.ParseDuration(*text)
	switch at := b.Place.at(name); {
	case err != nil:
		l.fault(at, summary, "The argument %q must be a duration such as \"20s\" or \"1m30s\", not %s.", name, quoted(*text))
	case d < least || d > mostTimeout:
		l.fault(at, summary, "The argument %q must be from %s to %s, not %s.", name, least, "1h", quoted(*text))
	case least >= time.Second && d%time.Second != 0:
		l.fault(at, summary, "The argument %q must be whole seconds, because the host counts them, not %s.", name, quoted(*text))
	default:
		return d
	}
	return 0
}
