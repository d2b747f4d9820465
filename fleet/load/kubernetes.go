package load

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/macfleet/macfleet/fleet"
)

// kubernetes reads the cluster, or returns nil where there is none.
func (l *loader) kubernetes(blocks []*hclsyntax.Block, sc *scope) *fleet.Kubernetes {
	b := decodeOnly(l, blocks, sc, kubernetesBlock{
		Kubernetes: fleet.Kubernetes{Namespace: "macfleet", LabelPrefix: "macfleet.dev", PodNamespaces: []string{"default"}},
		CAPI:       capiBlock{CAPI: fleet.CAPI{Namespace: "default"}},
	})
	if b.Place.block == nil {
		return nil
	}
	k := &b.Kubernetes
	for i, ns := range k.PodNamespaces {
		if b.Place.written("pod_namespaces") && (ns == k.Namespace || ns == fleet.AgentNamespace(k.Namespace)) {
			l.fault(elementRange(b.Place.attrs["pod_namespaces"].Expr, i), "Invalid namespace of Pods", "%s cannot be a namespace of Pods that run on the hosts: it is macfleet's own. Root on one host can read the Secrets of these namespaces, and would get the fleet's key or the other hosts' tokens.", quoted(ns))
		}
	}
	slices.Sort(k.PodNamespaces)
	if b.CAPI.Place.block != nil {
		k.CAPI = &b.CAPI.CAPI
		if slices.Contains(k.PodNamespaces, k.CAPI.Namespace) {
			l.warn(b.CAPI.Place.header(), "Readable by hosts", "Pods for the hosts also run in the namespace %s, so root on one host can read the Secret %s-kubeconfig there, which can drain and delete Nodes. Set pod_namespaces to separate namespaces.", quoted(k.CAPI.Namespace), k.CAPI.Cluster)
		}
	}
	return k
}

// namespaceFault returns why a namespace cannot be macfleet's own, or "". There must
// be room for the name of the agents' namespace.
func namespaceFault(text string) string {
	const longest = 63 - len("-agents")
	switch {
	case len(text) > longest:
		return fmt.Sprintf("The argument \"namespace\" must be at most %d characters long: the hosts' accounts are in a second namespace, %s", longest, fleet.AgentNamespace(text))
	case !fleet.IsDNSLabel(text):
		return quoted(text) + " is not the name of a namespace: it must be at most 63 lower-case letters, digits and hyphens, and begin and end with a letter or digit"
	}
	return ""
}

func labelPrefixFault(text string) string {
	if !fleet.IsDomain(text) {
		return "is not the prefix of a label: it must be a domain without a slash, such as \"macfleet.dev\""
	}
	// A kubelet takes those labels of its Node away that are under its prefix and not its own.
	if why := fleet.CheckLabel(text+"/owner", ""); why != "" {
		return "cannot be the prefix: " + why + ". Choose a domain of yours, such as \"acme.dev\""
	}
	return ""
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
	return fleet.AddressFault(u.Hostname())
}

// proxyFault returns why text is not the URL of a proxy, or "". A proxy may be on the host itself.
func proxyFault(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "":
		return "it is not a URL"
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5":
		return "it is not an http, https or socks5 URL"
	case u.User != nil:
		return "it contains a password, which plans would show; let the proxy identify hosts by their addresses"
	case u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return "it has more than a host and a port"
	}
	return ""
}

// authorityFault returns why text contains no certificates, or "".
func authorityFault(text string) string {
	if !x509.NewCertPool().AppendCertsFromPEM([]byte(text)) {
		return "it contains no certificate in PEM form"
	}
	return ""
}
