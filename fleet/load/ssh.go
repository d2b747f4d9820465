package load

import (
	"regexp"
	"slices"

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
	s.Timeouts = deref(b.Timeouts)
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
