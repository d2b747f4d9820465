package load

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/macfleet/macfleet/fleet"
)

const (
	defaultNamespace   = "macfleet"
	defaultLabelPrefix = "macfleet.dev"
)

var (
	labelPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`) // a DNS label
	numericLabel = regexp.MustCompile(`^(0x[0-9a-f]*|[0-9]+)$`)
)

// kubernetes reads the cluster, or returns nil where there is none.
func (l *loader) kubernetes(blocks []*hclsyntax.Block, sc *scope) *fleet.Kubernetes {
	b := decodeOnly[kubernetesBlock](l, blocks, sc)
	if b == nil {
		return nil
	}
	k := &fleet.Kubernetes{
		Context:     deref(b.Context),
		APIServer:   deref(b.APIServer),
		Namespace:   or(b.Namespace, defaultNamespace),
		LabelPrefix: or(b.LabelPrefix, defaultLabelPrefix),
	}
	if b.Context != nil && k.Context == "" {
		l.fault(b.Place.at("context"), "Empty text", "The argument %q must not be empty. Name a context of the kubeconfig, or leave it out for the current one.", "context")
	}
	if b.APIServer != nil {
		if why := apiServerFault(k.APIServer); why != "" {
			l.fault(b.Place.at("api_server"), "Invalid API server", "%s cannot be the API server's address: %s. Write it as hosts reach it, such as \"https://api.acme.dev:6443\".", quoted(k.APIServer), why)
		}
	}
	if !labelPattern.MatchString(k.Namespace) {
		l.fault(b.Place.at("namespace"), "Invalid namespace", "%s is not the name of a namespace: it must be at most 63 lower-case letters, digits and hyphens, and begin and end with a letter or digit.", quoted(k.Namespace))
	}
	if !isDomain(k.LabelPrefix) {
		l.fault(b.Place.at("label_prefix"), "Invalid label prefix", "%s is not the prefix of a label: it must be a domain without a slash, such as %q.", quoted(k.LabelPrefix), defaultLabelPrefix)
	}
	k.CAPI = l.capi(b.CAPI)
	return k
}

// capi reads which cluster of the Cluster API this one is, or returns nil where
// the block is missing.
func (l *loader) capi(b *capiBlock) *fleet.CAPI {
	if b == nil {
		return nil
	}
	c := &fleet.CAPI{Cluster: b.Cluster, Namespace: or(b.Namespace, "default")}
	for name, text := range map[string]string{"cluster": c.Cluster, "namespace": c.Namespace} {
		if b.Place.good[name] && !labelPattern.MatchString(text) {
			l.fault(b.Place.at(name), "Invalid name", "The argument %q must not be %s: it must be at most 63 lower-case letters, digits and hyphens, and begin and end with a letter or digit.", name, quoted(text))
		}
	}
	return c
}

// apiServerFault returns why text is not a URL under which hosts can reach the
// cluster, or "".
func apiServerFault(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "it is not a URL"
	case u.Scheme != "https":
		return "it is not an https URL"
	case u.Hostname() == "":
		return "it names no host"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "it has more than a host, a port and a path"
	}
	return hostFault(strings.TrimSuffix(strings.ToLower(u.Hostname()), "."))
}

func hostFault(host string) string {
	const own = "on a host it is the host itself"
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

func isDomain(text string) bool {
	if len(text) > 253 {
		return false
	}
	for _, part := range strings.Split(text, ".") {
		if !labelPattern.MatchString(part) {
			return false
		}
	}
	return true
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
