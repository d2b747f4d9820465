// Package fleet is the typed configuration of the fleets, and the grammar of server names. It does no I/O;
// fleet/load reads it from HCL, fleet/inventory describes what the providers return.
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
	GitHubApps   []GitHubApp
	Tailnet      *Tailnet // nil: no host joins one
	Guardrails   Guardrails
	Ignores      []Ignore // in the order of files and places
	Fleets       []Fleet  // in the order of files and places
	Hosts        []Listed // hosts with their own block, in that order too
	Moves        []Move   // former and present places of hosts
	Elsewhere    []string // ids of servers that host blocks adopt in other environments
}

// Scaleway is where the servers are rented.
type Scaleway struct {
	Zones      []string `hcl:"zones" is:"zone" least:"1"` // for example fr-par-1; never empty
	PoolPrefix string   `hcl:"pool_prefix"`               // servers whose name starts with it belong to the pool
}

// Vendor is the provider of the servers: where the servers are, and how messages and remedies name it.
type Vendor struct {
	Name       string
	Zones      []string
	PoolPrefix string
}

// Vendor returns the provider, by the block that the configuration has.
func (c *Config) Vendor() Vendor {
	return Vendor{Name: "Scaleway", Zones: c.Scaleway.Zones, PoolPrefix: c.Scaleway.PoolPrefix}
}

// Console is where a person orders and renames servers.
func (v Vendor) Console() string { return "the " + v.Name + " console" }

// Kubernetes is the cluster whose Nodes the hosts are.
type Kubernetes struct {
	Context   string `hcl:"context,optional" is:"context"`       // of the kubeconfig; empty = its current one
	APIServer string `hcl:"api_server,optional" is:"api_server"` // URL as the hosts reach it, never loopback; may be empty
	// How hosts verify and reach that address; empty: as the cluster publishes it, and directly.
	CA            string `hcl:"certificate_authority,optional" is:"authority"` // certificates in PEM
	TLSServerName string `hcl:"tls_server_name,optional" is:"server_name"`     // the name in the server's certificate
	ProxyURL      string `hcl:"proxy_url,optional" is:"proxy"`

	Namespace   string `hcl:"namespace,optional" is:"namespace"`       // macfleet's own namespace
	LabelPrefix string `hcl:"label_prefix,optional" is:"label_prefix"` // of macfleet's labels and annotations
	// PodNamespaces are where Pods for the hosts run, at least one: a kubelet may read Secrets, issue tokens
	// and run Pods only there.
	PodNamespaces []string `hcl:"pod_namespaces,optional" is:"pod_namespace" least:"1"`
	// IgnoreFieldManagers are controllers that may write to the hosts' Nodes next to macfleet, by the names that the
	// cluster records.
	IgnoreFieldManagers []string `hcl:"ignore_field_managers,optional" is:"field_manager"`
	CAPI                *CAPI    // nil: macfleet does not connect the Cluster API
}

// AgentNamespace returns the namespace of the hosts' accounts, next to macfleet's. It holds nothing else:
// rights given to all accounts of a namespace must not reach macfleet's account or the fleet's key.
func AgentNamespace(own string) string { return own + "-agents" }

// PodNamespaceFault says why a namespace cannot be among PodNamespaces, or "": root on one host can read its
// Secrets and issue tokens of its accounts.
func (c *Config) PodNamespaceFault(ns string) string {
	holds := func(ref secret.Ref) bool { return ref.Scheme == secret.Kubernetes && ref.Parts()[0] == ns }
	switch k := c.Kubernetes; {
	case CheckPodNamespace(ns) != "":
		return CheckPodNamespace(ns)
	case k != nil && (ns == k.Namespace || ns == AgentNamespace(k.Namespace)):
		return "it is macfleet's namespace"
	case holds(c.SSH.PrivateKey), holds(c.SSH.PreviousPrivateKey):
		return "it has the hosts' SSH key"
	}
	for _, a := range c.GitHubApps {
		if holds(a.PrivateKey) || holds(a.PreviousPrivateKey) {
			return "it has the key of " + a.String()
		}
	}
	if t := c.Tailnet; t != nil && (holds(t.Auth) || holds(t.IdentityToken)) {
		return "it has the credentials of the tailnet"
	}
	for _, of := range c.Specs() {
		if r := of.Spec.GithubRunner; r != nil && r.Token != nil && holds(*r.Token) {
			return "it has the token of the runners of fleet " + of.Fleet
		}
	}
	return ""
}

// CheckPodNamespace says why Pods for hosts can never run in a namespace, or "".
func CheckPodNamespace(ns string) string {
	if strings.HasPrefix(ns, "kube-") {
		return "it belongs to the cluster itself: root on one host could read its Secrets and issue tokens of its accounts"
	}
	return CheckText("dns", ns)
}

// CAPI connects the Cluster API inside a cluster to that cluster, so that its Machines find their Nodes.
type CAPI struct {
	Cluster   string `hcl:"cluster" is:"dns"`            // name of the Cluster object
	Namespace string `hcl:"namespace,optional" is:"dns"` // where it lives
}

// SSH is how hosts are reached.
type SSH struct {
	User       string     `hcl:"user,optional" is:"user"` // login user on every host
	PrivateKey secret.Ref `hcl:"private_key,optional"`    // the one key that is offered; zero: the user's own keys
	// PreviousPrivateKey is offered to hosts that do not accept PrivateKey yet; zero: the key is not being rotated.
	PreviousPrivateKey secret.Ref `hcl:"previous_private_key,optional"`
	Via                []string   `hcl:"via,optional" is:"via" least:"1"` // "tailscale", "public": paths in order of preference
	// HostKeys are fingerprints of host keys, by the name or the id of the server.
	HostKeys map[string]string `hcl:"host_keys,optional" is:"host_key"`
	Timeouts Timeouts          `hcl:"timeouts,block"`
}

// Timeouts limit a connection to a host. Zero means the default of the package that uses it. The tag
// "shortest" is a lower limit; one second or more also means whole seconds, as hosts count them.
type Timeouts struct {
	Dial      time.Duration `hcl:"dial,optional" shortest:"1ms"`      // until the connection is established
	Handshake time.Duration `hcl:"handshake,optional" shortest:"1ms"` // from there until login is complete
	Question  time.Duration `hcl:"question,optional" shortest:"1s"`   // one probe, on the host
	Change    time.Duration `hcl:"change,optional" shortest:"1s"`     // one change, on the host
	Exchange  time.Duration `hcl:"exchange,optional" shortest:"1ms"`  // all probes together, beyond the changes' own time
	Silence   time.Duration `hcl:"silence,optional" shortest:"1ms"`   // without a byte from the host
	Undo      time.Duration `hcl:"undo,optional" shortest:"10s"`      // until a change that may cut the connection is confirmed; the host checks every five seconds
}

// Fleet is a named set of servers with one specification.
type Fleet struct {
	Name    string
	OS      string // macOS family, for example Tahoe
	Rollout Rollout
	Groups  []Group
}

// Group is the part of a fleet whose servers have one type, or one of several.
type Group struct {
	Name     string
	Type     string   // Scaleway's server type, for example M2-L; of several, the preferred one
	Also     []string // further types that it accepts, in order of preference; usually none
	Replicas int      // servers wanted, 0 or more
	Spec     Spec     // defaults, fleet and group merged, with every value set
	Sources  Sources
}

// Types returns the server types that the group accepts, the preferred one first.
func (g Group) Types() []string { return append([]string{g.Type}, g.Also...) }

// Accepts reports whether servers of a type may be in the group.
func (g Group) Accepts(serverType string) bool {
	return serverType == g.Type || slices.Contains(g.Also, serverType)
}

// TypeText names the group's server types in a sentence: "M2-L", "M2-L or M4-S".
func (g Group) TypeText() string { return strings.Join(g.Types(), " or ") }

// Listed is a host with its own block: it is adopted under its present name, or overrides some values.
type Listed struct {
	Name     string // the name it has and keeps
	ServerID string // of an adopted server; empty: Name follows the naming grammar
	Fleet    string
	Group    string
	Password secret.Ref // the login user's, if the provider has none; zero: not set
	Spec     Spec       // the group's, overridden by this block
	Sources  Sources
}

// Listed returns the block of the host of that name.
func (c *Config) Listed(name string) (Listed, bool) {
	if i := slices.IndexFunc(c.Hosts, func(l Listed) bool { return l.Name == name }); i >= 0 {
		return c.Hosts[i], true
	}
	return Listed{}, false
}

// SourcesOf returns where the values of a host come from: its own block's if it has one, else its group's.
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

// Version is macfleet's version. It is a constant, so that every build of the same source reports the same.
const Version = "0.1.0"
