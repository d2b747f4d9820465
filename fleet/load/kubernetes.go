package load

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/macfleet/macfleet/fleet"
)

const (
	defaultNamespace    = "macfleet"
	defaultLabelPrefix  = "macfleet.dev"
	defaultPodNamespace = "default"
)

var numericLabel = regexp.MustCompile(`^(0x[0-9a-f]*|[0-9]+)$`)

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
	if !fleet.IsDNSLabel(k.Namespace) {
		l.fault(b.Place.at("namespace"), "Invalid namespace", "%s is not the name of a namespace: it must be at most 63 lower-case letters, digits and hyphens, and begin and end with a letter or digit.", quoted(k.Namespace))
	}
	if !fleet.IsDomain(k.LabelPrefix) {
		l.fault(b.Place.at("label_prefix"), "Invalid label prefix", "%s is not the prefix of a label: it must be a domain without a slash, such as %q.", quoted(k.LabelPrefix), defaultLabelPrefix)
	}
	if why := fleet.CheckLabel(k.LabelPrefix+"/owner", ""); why != "" && fleet.IsDomain(k.LabelPrefix) {
		// A kubelet takes those labels of its Node away that are under its prefix and not its own.
		l.fault(b.Place.at("label_prefix"), "Invalid label prefix", "%s cannot be the prefix: %s. Choose a domain of yours, such as \"acme.dev\".", quoted(k.LabelPrefix), why)
	}
	if len(k.Namespace) > maxOwnNamespace {
		l.fault(b.Place.at("namespace"), "Invalid namespace", "The argument \"namespace\" must be at most %d characters long: the hosts' accounts are in a second namespace, %s.", maxOwnNamespace, fleet.AgentNamespace(k.Namespace))
	}
	k.CAPI = l.capi(b.CAPI)
	k.PodNamespaces = l.podNamespaces(b, k)
	if k.CAPI != nil && slices.Contains(k.PodNamespaces, k.CAPI.Namespace) {
		l.warn(b.CAPI.Place.header(), "Readable by hosts", "Pods for the hosts run in the namespace %s too, so whoever is root on one host can read the Secret %s-kubeconfig there, which may drain and delete Nodes. Set pod_namespaces to namespaces of their own.", quoted(k.CAPI.Namespace), k.CAPI.Cluster)
	}
	return k
}

// maxOwnNamespace leaves room for the name of the agents' namespace.
const maxOwnNamespace = 63 - len("-agents")

// podNamespaces reads where Pods for the hosts run. Whoever is root on a host reads
// the Secrets there, so these are not namespaces that hold what more than Pods need.
func (l *loader) podNamespaces(b *kubernetesBlock, k *fleet.Kubernetes) []string {
	if !b.Place.good["pod_namespaces"] {
		return []string{defaultPodNamespace}
	}
	at := b.Place.at("pod_namespaces")
	if len(b.PodNamespaces) == 0 {
		l.fault(at, "Empty list", "The argument \"pod_namespaces\" must name at least one namespace: Pods run on the hosts only there. Leave it out for %q.", defaultPodNamespace)
	}
	seen := make(map[string]bool)
	for _, ns := range b.PodNamespaces {
		if why := podNamespaceFault(ns, k, seen[ns]); why != "" {
			l.fault(at, "Invalid namespace of Pods", "%s cannot be a namespace of Pods that run on the hosts: %s.", quoted(ns), why)
		}
		seen[ns] = true
	}
	out := slices.Clone(b.PodNamespaces)
	slices.Sort(out)
	return out
}

func podNamespaceFault(ns string, k *fleet.Kubernetes, twice bool) string {
	switch {
	case twice:
		return "the list names it twice"
	case !fleet.IsDNSLabel(ns):
		return "it must be at most 63 lower-case letters, digits and hyphens, and begin and end with a letter or digit"
	case ns == k.Namespace, ns == fleet.AgentNamespace(k.Namespace):
		return "it is macfleet's own. Whoever is root on one host reads the Secrets of these namespaces, and would have the fleet's key or the other hosts' tokens"
	case strings.HasPrefix(ns, "kube-"):
		return "it is the cluster's own. Whoever is root on one host reads the Secrets of these namespaces, and issues tokens of their accounts"
	}
	return ""
}

// capi reads which cluster of the Cluster API this one is, or returns nil where
// the block is missing.
func (l *loader) capi(b *capiBlock) *fleet.CAPI {
	if b == nil {
		return nil
	}
	c := &fleet.CAPI{Cluster: b.Cluster, Namespace: or(b.Namespace, "default")}
	for name, text := range map[string]string{"cluster": c.Cluster, "namespace": c.Namespace} {
		if b.Place.good[name] && !fleet.IsDNSLabel(text) {
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

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
