package load

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/secret"
)

// document is the top of a file: every block that this version knows.
type document struct {
	Macfleet     *macfleetBlock     `hcl:"macfleet,block"`
	Variables    []variableBlock    `hcl:"variable,block"`
	Environments []environmentBlock `hcl:"environment,block"`
	Locals       []struct{}         `hcl:"locals,block"` // any arguments
	Scaleway     *scalewayBlock     `hcl:"scaleway,block"`
	Kubernetes   *kubernetesBlock   `hcl:"kubernetes,block"`
	SSH          *sshBlock          `hcl:"ssh,block"`
	Artifacts    []artifactBlock    `hcl:"artifact,block"`
	Guardrails   *guardrailsBlock   `hcl:"guardrails,block"`
	Ignores      []ignoreBlock      `hcl:"ignore,block"`
	Defaults     *defaultsBlock     `hcl:"defaults,block"`
	Fleets       []fleetBlock       `hcl:"fleet,block"`
	Hosts        []hostBlock        `hcl:"host,block"`
}

type macfleetBlock struct {
	Place           place
	RequiredVersion *string `hcl:"required_version,optional"`
	Name            string  `hcl:"name"`
}

type variableBlock struct {
	Place       place
	Name        string               `hcl:"name,label"`
	Type        hclsyntax.Expression `hcl:"type,optional"`
	Default     hclsyntax.Expression `hcl:"default,optional"`
	Description *string              `hcl:"description,optional"`
}

type environmentBlock struct {
	Place      place
	Name       string               `hcl:"name,label"`
	ClusterUID *string              `hcl:"cluster_uid,optional"`
	ProjectID  *string              `hcl:"project_id,optional"`
	Variables  hclsyntax.Expression `hcl:"variables,optional"`
}

type scalewayBlock struct {
	Place      place
	Zones      []string `hcl:"zones"`
	PoolPrefix string   `hcl:"pool_prefix"`
}

type kubernetesBlock struct {
	Place         place
	Context       *string    `hcl:"context,optional"`
	APIServer     *string    `hcl:"api_server,optional"`
	Namespace     *string    `hcl:"namespace,optional"`
	LabelPrefix   *string    `hcl:"label_prefix,optional"`
	PodNamespaces []string   `hcl:"pod_namespaces,optional"`
	CAPI          *capiBlock `hcl:"capi,block"`
}

type capiBlock struct {
	Place     place
	Cluster   string  `hcl:"cluster"`
	Namespace *string `hcl:"namespace,optional"`
}

type sshBlock struct {
	Place      place
	User       *string         `hcl:"user,optional"`
	PrivateKey secret.Ref      `hcl:"private_key,optional"`
	Via        []string        `hcl:"via,optional"`
	Timeouts   *fleet.Timeouts `hcl:"timeouts,block"`
}

type artifactBlock struct {
	Place   place
	Name    string  `hcl:"name,label"`
	Version string  `hcl:"version" is:"version"`
	Source  string  `hcl:"source"`
	SHA256  *string `hcl:"sha256,optional" is:"sha256"`
	Size    *int64  `hcl:"size,optional" least:"1" max:"1000000000000"` // bytes
	Fetch   *string `hcl:"fetch,optional"`
}

type defaultsBlock struct {
	Place place
	OS    *string `hcl:"os,optional"`
	fleet.Spec
}

type fleetBlock struct {
	Place   place
	Name    string        `hcl:"name,label"`
	OS      *string       `hcl:"os,optional"`
	Disable []string      `hcl:"disable,optional"`
	Groups  []groupBlock  `hcl:"group,block"`
	Rollout *rolloutBlock `hcl:"rollout,block"`
	fleet.Spec
}

type groupBlock struct {
	Place    place
	Name     string `hcl:"name,label"`
	Type     string `hcl:"type"`
	Replicas int    `hcl:"replicas" max:"1000"`
	fleet.Spec
}

type hostBlock struct {
	Place       place
	Name        string               `hcl:"name,label"`
	ServerID    *string              `hcl:"server_id,optional"`
	Environment hclsyntax.Expression `hcl:"environment,optional"`
	Group       hclsyntax.Expression `hcl:"group,optional"` // a reference, never evaluated
	Password    secret.Ref           `hcl:"password,optional"`
	fleet.Spec
}

type guardrailsBlock struct {
	Place    place
	MaxHosts *int     `hcl:"max_hosts,optional" least:"1" max:"100000"`
	Windows  []string `hcl:"windows,optional"`
}

type rolloutBlock struct {
	Place          place
	MaxUnavailable cty.Value `hcl:"max_unavailable,optional"` // a number or "20%"
	Canary         *int      `hcl:"canary,optional" max:"1000"`
	Soak           *string   `hcl:"soak,optional"`
	FailureBudget  *int      `hcl:"failure_budget,optional" max:"1000"`
	MinReady       *int      `hcl:"min_ready,optional" max:"1000"`
	Order          *string   `hcl:"order,optional"`
}
