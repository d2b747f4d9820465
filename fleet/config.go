// Package fleet says what is wanted: the typed configuration of the fleets, and
// the grammar of the names that carry it. It does no I/O; fleet/load reads it
// from HCL, fleet/inventory describes what the providers see.
package fleet

import (
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/secret"
)

// Config is the configuration of one directory, evaluated for one environment.
type Config struct {
	Owner
	Environments []string // every environment the directory defines, in order
	ProjectID    string   // Scaleway project; empty = the one of the credentials
	ClusterUID   string   // uid of the kube-system namespace; empty = not checked
	Scaleway     Scaleway
	Kubernetes   *Kubernetes // nil: this configuration has no cluster
	SSH          SSH
	Artifacts    []Artifact // in the order of files and places
	Guardrails   Guardrails
	Ignores      []Ignore // in the order of files and places
	Fleets       []Fleet  // in the order of files and places
	Hosts        []Listed // hosts with a block of their own, in that order too
	Moves        []Move   // places that hosts had, and those that they have now
	Elsewhere    []string // ids of servers that host blocks adopt in other environments
}

// Scaleway is where the servers are rented.
type Scaleway struct {
	Zones      []string `hcl:"zones" is:"zone" least:"1"` // for example fr-par-1; never empty
	PoolPrefix string   `hcl:"pool_prefix"`               // servers whose name starts with it are nobody's
}

// Vendor is who rents the servers out, for all that does not speak to them: where the
// servers are, and what its messages and remedies call whom.
type Vendor struct {
	Name       string
	Zones      []string
	PoolPrefix string
}

// Vendor returns who rents the servers out, by the block that the configuration has.
func (c *Config) Vendor() Vendor {
	return Vendor{Name: "Scaleway", Zones: c.Scaleway.Zones, PoolPrefix: c.Scaleway.PoolPrefix}
}

// Console is where a person orders and renames servers.
func (v Vendor) Console() string { return "the " + v.Name + " console" }

// Kubernetes is the cluster whose Nodes the hosts are.
type Kubernetes struct {
	Context   string `hcl:"context,optional" is:"context"`       // of the kubeconfig; empty = its current one
	APIServer string `hcl:"api_server,optional" is:"api_server"` // URL as the hosts reach it, never loopback; may be empty
	// How hosts verify and reach that address; empty = as the cluster says, and directly.
	CA            string `hcl:"certificate_authority,optional" is:"authority"` // certificates in PEM
	TLSServerName string `hcl:"tls_server_name,optional" is:"server_name"`     // the name in the server's certificate
	ProxyURL      string `hcl:"proxy_url,optional" is:"proxy"`

	Namespace   string `hcl:"namespace,optional" is:"namespace"`       // macfleet's own namespace
	LabelPrefix string `hcl:"label_prefix,optional" is:"label_prefix"` // of macfleet's labels and annotations
	// PodNamespaces are where Pods for the hosts run, at least one: a kubelet reads
	// Secrets, issues tokens and runs Pods there and nowhere else.
	PodNamespaces []string `hcl:"pod_namespaces,optional" is:"pod_namespace" least:"1"`
	CAPI          *CAPI    // nil: the cluster's Cluster API, if there is one, is not served
}

// AgentNamespace returns the namespace of the hosts' accounts, beside macfleet's own.
// Nothing else is in it: a right can be given to all accounts of a namespace, and
// neither macfleet's own account nor the fleet's key is to be reached by that.
func AgentNamespace(own string) string { return own + "-agents" }

// PodNamespaceFault says why a namespace cannot be among PodNamespaces, or "": whoever is root on one host
// reads the Secrets there, and issues tokens of its accounts.
func (c *Config) PodNamespaceFault(ns string) string {
	ref := c.SSH.PrivateKey
	switch k := c.Kubernetes; {
	case CheckPodNamespace(ns) != "":
		return CheckPodNamespace(ns)
	case k != nil && (ns == k.Namespace || ns == AgentNamespace(k.Namespace)):
		return "it is macfleet's own"
	case ref.Scheme == secret.Kubernetes && ref.Parts()[0] == ns:
		return "it holds the hosts' SSH key"
	}
	return ""
}

// CheckPodNamespace says why Pods for hosts cannot run in a namespace, whatever the configuration, or "".
func CheckPodNamespace(ns string) string {
	if strings.HasPrefix(ns, "kube-") {
		return "it is the cluster's own. Whoever is root on one host reads the Secrets of these namespaces, and issues tokens of their accounts"
	}
	return CheckText("dns", ns)
}

// CAPI is the connection that the Cluster API inside a cluster needs to that same
// cluster, so that its Machines find their Nodes.
type CAPI struct {
	Cluster   string `hcl:"cluster" is:"dns"`            // name of the Cluster object
	Namespace string `hcl:"namespace,optional" is:"dns"` // where it lives
}

// SSH is how hosts are reached.
type SSH struct {
	User       string     `hcl:"user,optional" is:"user"`         // login user on every host
	PrivateKey secret.Ref `hcl:"private_key,optional"`            // the one key that is offered; zero: the person's own
	Via        []string   `hcl:"via,optional" is:"via" least:"1"` // "tailscale", "public": paths in order of preference
	// HostKeys are fingerprints of host keys, by the name or the id of the server.
	HostKeys map[string]string `hcl:"host_keys,optional" is:"host_key"`
	Timeouts Timeouts          `hcl:"timeouts,block"`
}

// Timeouts bound a conversation with a host. A zero field means the default of the
// package that keeps it. The tag "shortest" bounds a field; one of a second or more
// also means whole seconds, as the host counts them.
type Timeouts struct {
	Dial      time.Duration `hcl:"dial,optional" shortest:"1ms"`      // until the connection stands
	Handshake time.Duration `hcl:"handshake,optional" shortest:"1ms"` // from there until the login is done
	Question  time.Duration `hcl:"question,optional" shortest:"1s"`   // one question, on the host
	Change    time.Duration `hcl:"change,optional" shortest:"1s"`     // one change, on the host
	Exchange  time.Duration `hcl:"exchange,optional" shortest:"1ms"`  // all questions together, beyond the changes' own time
	Silence   time.Duration `hcl:"silence,optional" shortest:"1ms"`   // without a byte from the host
	Undo      time.Duration `hcl:"undo,optional" shortest:"10s"`      // until a change that may cut the line is confirmed; the host looks every five seconds
}

// Fleet is a named set of servers with one specification.
type Fleet struct {
	Name    string
	OS      string // macOS family, for example Tahoe
	Rollout Rollout
	Groups  []Group
}

// Group is the part of a fleet that has one server type.
type Group struct {
	Name     string
	Type     string // Scaleway's server type, for example M2-L
	Replicas int    // servers wanted, 0 or more
	Spec     Spec   // defaults, fleet and group merged, with nothing left open
	Sources  Sources
}

// Listed is a host with a block of its own: it is adopted under its present
// name, or some of its values are its own.
type Listed struct {
	Name     string // the name it bears and keeps
	ServerID string // of an adopted server; empty: Name is one that the grammar of names makes
	Fleet    string
	Group    string
	Password secret.Ref // the login user's, where the provider tells none; zero: not written
	Spec     Spec       // the group's, and this block's on top
	Sources  Sources
}

// Listed returns the block of the host of that name.
func (c *Config) Listed(name string) (Listed, bool) {
	if i := slices.IndexFunc(c.Hosts, func(l Listed) bool { return l.Name == name }); i >= 0 {
		return c.Hosts[i], true
	}
	return Listed{}, false
}

// SourcesOf returns where the values of a host come from: its own block's where
// it has one, else its group's.
func (c *Config) SourcesOf(host, fleet, group string) Sources {
	if l, ok := c.Listed(host); ok {
		return l.Sources
	}
	_, g, _ := c.Group(fleet, group)
	return g.Sources
}

// Group returns the group of that fleet and name.
func (c *Config) Group(fleet, group string) (Fleet, Group, bool) {
	for _, f := range c.Fleets {
		if i := slices.IndexFunc(f.Groups, func(g Group) bool { return g.Name == group }); f.Name == fleet && i >= 0 {
			return f, f.Groups[i], true
		}
	}
	return Fleet{}, Group{}, false
}

// Version is macfleet's own version. It is a constant of the source, so that a
// binary says the same whoever built it.
const Version = "0.1.0"
