package load

import (
	"regexp"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/secret"
)

// document is the top of a file: every block that this version knows.
type document struct {
	Macfleet     *macfleetBlock     `hcl:"macfleet,block" says:"the name of the configuration"`
	Variables    []variableBlock    `hcl:"variable,block"`
	Environments []environmentBlock `hcl:"environment,block"`
	Locals       []localsBlock      `hcl:"locals,block"`
	Scaleway     *scalewayBlock     `hcl:"scaleway,block" says:"the zones and the prefix of the pool"`
	Kubernetes   *kubernetesBlock   `hcl:"kubernetes,block"`
	SSH          *sshBlock          `hcl:"ssh,block" says:"how hosts are reached"`
	Artifacts    []artifactBlock    `hcl:"artifact,block"`
	GitHubApps   []githubAppBlock   `hcl:"github_app,block"`
	Tailnet      *tailnetBlock      `hcl:"tailnet,block"`
	Guardrails   *guardrailsBlock   `hcl:"guardrails,block"`
	Ignores      []ignoreBlock      `hcl:"ignore,block"`
	Defaults     *defaultsBlock     `hcl:"defaults,block"`
	Fleets       []fleetBlock       `hcl:"fleet,block"`
	Hosts        []hostBlock        `hcl:"host,block"`
	Moved        []movedBlock       `hcl:"moved,block"`
}

type macfleetBlock struct {
	Place           place
	RequiredVersion string `hcl:"required_version,optional"`
	Name            string `hcl:"name" is:"configuration"`
}

type variableBlock struct {
	Place       place
	Name        string               `hcl:"name,label" is:"identifier"`
	Type        hclsyntax.Expression `hcl:"type,optional"`
	Default     hclsyntax.Expression `hcl:"default,optional"`
	Description *string              `hcl:"description,optional"`
}

type environmentBlock struct {
	Place      place
	Name       string               `hcl:"name,label" is:"owner"`
	ClusterUID string               `hcl:"cluster_uid,optional" is:"uuid"`
	ProjectID  string               `hcl:"project_id,optional" is:"uuid"`
	Variables  hclsyntax.Expression `hcl:"variables,optional"`
}

type scalewayBlock struct {
	Place place
	fleet.Scaleway
}

type kubernetesBlock struct {
	Place place
	fleet.Kubernetes
	CAPI capiBlock `hcl:"capi,block"`
}

type capiBlock struct {
	Place place
	fleet.CAPI
}

type sshBlock struct {
	Place place
	fleet.SSH
}

type artifactBlock struct {
	Place place
	fleet.Artifact
}

type githubAppBlock struct {
	Place place
	fleet.GitHubApp
}

type ignoreBlock struct {
	Place place
	fleet.Ignore
	Until string `hcl:"until" is:"day"`
}

type defaultsBlock struct {
	Place place
	OS    string `hcl:"os,optional" is:"os"`
	fleet.Spec
}

type fleetBlock struct {
	Place   place
	Name    string        `hcl:"name,label" is:"part"`
	OS      string        `hcl:"os,optional" is:"os"`
	Disable []string      `hcl:"disable,optional"`
	Groups  []groupBlock  `hcl:"group,block"`
	Rollout fleet.Rollout `hcl:"rollout,block"`
	fleet.Spec
}

type groupBlock struct {
	Place    place
	Name     string   `hcl:"name,label" is:"part"`
	Type     string   `hcl:"type,optional" is:"type" or:"types"`
	Types    []string `hcl:"types,optional" is:"type" least:"1"`
	Replicas int      `hcl:"replicas" max:"1000"`
	fleet.Spec
}

type hostBlock struct {
	Place       place
	Name        string               `hcl:"name,label" is:"host"`
	ServerID    string               `hcl:"server_id,optional" is:"uuid"`
	Environment hclsyntax.Expression `hcl:"environment,optional"`
	Group       hclsyntax.Expression `hcl:"group,optional"` // a reference, never evaluated
	Password    secret.Ref           `hcl:"password,optional"`
	fleet.Spec
}

type guardrailsBlock struct {
	Place place
	fleet.Guardrails
	Windows []string `hcl:"windows,optional" is:"window" least:"1"`
}

// A phrase is the message for a wrong value whose kind is named by the tag "is".
type phrase struct {
	wrong   func(text string) string // why it is; nil: as package fleet judges the kind
	summary string
	detail  string // takes the argument's name, the text and why
	empty   string // of a list with nothing in it: takes the argument's name
	once    string // what may stand in a list only once
	anyCase bool   // and in any case
}

const invalidValue = "Invalid value"

var phrases = map[string]phrase{
	"app_id": {wrong: because(func(text string) bool { return !appPattern.MatchString(text) }, "it has another form"), summary: "Invalid id",
		detail: "The argument %[1]q must be the id of the App, only digits, or its client id, such as \"Iv23liExample01\". Both are on the page of the App's settings."},
	"installation_id": {wrong: because(func(text string) bool { return !installationPattern.MatchString(text) }, "it has another form"), summary: "Invalid id",
		detail: "The argument %[1]q must be only digits: those at the end of the address of the installation's settings. Leave it out to let macfleet look it up."},
	"api_server": {wrong: apiServerFault, summary: "Invalid API server",
		detail: "%[2]s cannot be the API server's address: %[3]s. Write it as hosts reach it, such as \"https://api.acme.dev:6443\"."},
	"authority": {wrong: authorityFault, summary: "Invalid certificate authority",
		detail: "The argument %[1]q cannot be used: %[3]s. Write the certificate that signs the API server's, such as <<-PEM … PEM."},
	"proxy": {wrong: proxyFault, summary: "Invalid proxy",
		detail: "%[2]s cannot be the proxy to the API server: %[3]s. Write it as hosts reach it, such as \"http://proxy.acme.dev:3128\"."},
	"server_name": {wrong: because(func(text string) bool { return !fleet.IsDomain(text) }, "it is not a domain"), summary: "Invalid server name",
		detail: "The argument %[1]q must be a name in the API server's certificate, such as \"kubernetes.acme.dev\", not %[2]s."},
	"configuration": {wrong: func(text string) string { return fleet.CheckText("owner", text) }, summary: "Invalid name",
		detail: "The name of the configuration cannot be %[2]s: %[3]s."},
	"context": {wrong: because(func(text string) bool { return text == "" }, "it is empty"), summary: "Empty text",
		detail: "The argument %[1]q must not be empty. Name a context of the kubeconfig, or leave it out for the current one."},
	"day": {wrong: because(func(text string) bool { return parseDay(text).IsZero() }, "it is not a date"), summary: "Invalid date",
		detail: "The argument %[1]q must be a date such as \"2026-12-31\", not %[2]s. The ignore block is valid until the end of that day, in UTC."},
	"dns": {summary: "Invalid name", detail: "The argument %[1]q must not be %[2]s: %[3]s."},
	"fetch": {wrong: oneOf(fleet.FetchHost, fleet.FetchPush), summary: "Invalid fetch",
		detail: "The argument %[1]q must be \"host\" (each host downloads it) or \"push\" (macfleet uploads it), not %[3]s"},
	"github_host": {wrong: githubHostFault, summary: "Invalid host", detail: "The argument %[1]q must be the host name of GitHub's web pages, such as \"github.com\": %[3]s"},
	"host": {wrong: because(func(text string) bool { return !fleet.IsDNSLabel(text) },
		"it becomes the name of a Node, so it must be at most 63 lower-case letters, digits and hyphens, and begin and end with a letter or digit. Rename the server first")},
	"identifier": {wrong: because(func(text string) bool { return !hclsyntax.ValidIdentifier(text) },
		"it must be letters, digits, hyphens and underscores, and begin with a letter")},
	"label_prefix": {wrong: labelPrefixFault, summary: "Invalid label prefix", detail: "%[2]s %[3]s."},
	"namespace":    {wrong: namespaceFault, summary: "Invalid namespace", detail: "%[3]s."},
	"organization": {wrong: organizationFault, summary: "Invalid organization", detail: "The argument %[1]q must be the name of an organization, such as \"acme\": %[3]s"},
	"repository":   {wrong: repositoryFault, summary: "Invalid repository", detail: "The argument %[1]q must have the form OWNER/NAME, such as \"acme/images\": %[3]s"},
	"runner_group": {wrong: groupFault, summary: "Invalid runner group", detail: "The argument %[1]q must not be %[2]s: %[3]s."},
	"runner_label": {wrong: labelFault, summary: "Invalid label", once: "label", anyCase: true},
	"runner_mode": {wrong: oneOf("persistent"), summary: "Invalid mode",
		detail: "The argument %[1]q must be \"persistent\", not %[3]s A runner for one job needs a service that registers it again after each job, and macfleet does not run all the time."},
	"runner_sha256": {wrong: func(text string) string { return fleet.CheckText("sha256", text) }, summary: invalidValue,
		detail: "The argument %[1]q must be 64 digits, 0 to 9 and a to f, not %[2]s. Leave it out for the digest that GitHub publishes."},
	"runner_version": {wrong: runnerVersionFault, summary: "Invalid version", detail: "The argument %[1]q must be a version of the runner, such as \"2.336.0\": %[3]s"},
	"work_folder":    {wrong: workFolderFault, summary: "Invalid folder", detail: "The argument %[1]q must not be %[2]s: %[3]s."},
	"host_path": {wrong: because(func(text string) bool { return text != "" && !hostPath.MatchString(text) }, "it is not an absolute path"), summary: "Invalid path",
		detail: "The argument %[1]q must be an absolute path on the host without spaces and quotes, such as \"/opt/build-cache\", not %[2]s."},
	"variable": {wrong: because(func(text string) bool { return !variablePattern.MatchString(text) }, "it has another form"), summary: "Invalid variable", once: "variable",
		detail: "The argument %[1]q must have the form NAME=value without control characters, such as \"ACME_BUILD_ROOT=/opt/build-cache\", not %[2]s."},
	"formula": {wrong: because(func(text string) bool { return !formulaPattern.MatchString(text) }, "it is not the name of one"), summary: "Invalid formula", once: "formula",
		detail: "The argument %[1]q must be the full name of a formula of Homebrew, such as \"git-lfs\" or \"acme/tap/crane\", not %[2]s."},
	"vm_pattern": {wrong: because(func(text string) bool { return !machinePattern.MatchString(text) }, "it is not the name of one"), summary: "Invalid name", once: "name",
		detail: "The argument %[1]q must be the name of a virtual machine, with * for any text and at least one other character, such as \"bake-*\", not %[2]s."},
	"order": {wrong: oneOf(fleet.ByName, fleet.ByIdle), summary: "Invalid order",
		detail: "The argument %[1]q must be \"name\" or \"idle\" (those with the fewest Pods first), not %[2]s."},
	"os": {wrong: familyFault, summary: "Invalid os", detail: "%[2]s %[3]s"},
	"pod_namespace": {wrong: fleet.CheckPodNamespace, summary: "Invalid namespace of Pods", once: "namespace",
		detail: "%[2]s cannot be a namespace of Pods that run on the hosts: %[3]s.",
		empty:  "The argument %[1]q must name at least one namespace, because Pods run on the hosts only there. Leave it out for \"default\"."},
	"selector": {wrong: func(text string) string { _, err := fleet.SelectorTerms(text); return reason(err) }, summary: "Invalid selector", detail: "%[3]s."},
	"step":     {wrong: stepFault, summary: "Unknown step", detail: "No step is named %[3]s"},
	"tailnet_tag": {wrong: tagFault, summary: "Invalid tag", once: "tag", detail: "The argument %[1]q must not contain %[2]s: %[3]s",
		empty: "The argument %[1]q must name at least one tag, such as \"tag:macmini\": a device without a tag belongs to a person, and its key expires."},
	"tailnet_client": {wrong: because(func(text string) bool { return !clientPattern.MatchString(text) }, "it has another form"), summary: "Invalid id",
		detail: "The argument %[1]q must be the client id of a federated identity, such as \"T1234CNTRL-k5678\"."},
	"collector": {wrong: because(func(text string) bool { return !collectorPattern.MatchString(text) }, "it is not the name of one"), summary: "Invalid collector", once: "collector",
		detail: "The argument %[1]q must have names of collectors of node_exporter, such as \"cpu\", not %[2]s.", empty: "The argument %[1]q must name at least one collector. Leave it out for the usual ones."},
	"control_url": {wrong: controlFault, summary: "Invalid control server", detail: "%[2]s cannot be a control server: %[3]s. Write it as hosts reach it, such as \"https://headscale.acme.dev\"."},
	"type": {wrong: typeFault, summary: "Invalid type", detail: "%[2]s is not a server type: %[3]s", once: "server type",
		empty: "The argument %[1]q must name at least one server type, such as \"M2-L\"."},
	"user": {summary: "Invalid user", detail: "%[2]s is not the name of a user: %[3]s."},
	"uuid": {summary: "Invalid id",
		detail: "The argument %[1]q must be a UUID in lower case, such as 5d6e0f1a-2b3c-4d5e-8f90-a1b2c3d4e5f6, not %[2]s."},
	"via": {wrong: oneOf("tailscale", "public"), summary: "Unknown path", once: "path", detail: "No path to a host is named %[3]s The paths are tailscale and public.",
		empty: "The argument %[1]q must name at least one path: tailscale or public."},
	"window": {wrong: func(text string) string { _, err := fleet.ParseWindow(text); return reason(err) }, summary: "Invalid window", detail: "%[3]s.",
		empty: "The argument %[1]q must contain at least one window, or no host could ever be drained. Leave it out if hosts may be disturbed at any time."},
	"zone": {summary: "Invalid zone", once: "zone", wrong: zoneFault, detail: "%[2]s is not the name of a zone: %[3]s",
		empty: "The argument %[1]q must name at least one zone, such as \"fr-par-1\"."},
}

var (
	hostPath        = regexp.MustCompile(`^(/[A-Za-z0-9_.@+-]+)+$`)
	machinePattern  = regexp.MustCompile(`^[A-Za-z0-9._*-]*[A-Za-z0-9_][A-Za-z0-9._*-]*$`)
	formulaPattern  = regexp.MustCompile(`^([a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9@+._-]*$`)
	variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=[^\x00-\x1f\x7f]*$`)
)

// wrong says what is wrong with a text of a kind, or "".
func wrong(kind, text string) string {
	if p := phrases[kind]; p.wrong != nil {
		return p.wrong(text)
	}
	return fleet.CheckText(kind, text)
}

// zoneFault is the check of a zone, with the zone that was probably meant.
func zoneFault(text string) string {
	why := fleet.CheckText("zone", text)
	if why == "" {
		return ""
	}
	return why + "." + didYouMean(fleet.Nearest(text, fleet.Zones()))
}

// because is a check that gives one reason.
func because(faulty func(string) bool, why string) func(string) string {
	return func(text string) string {
		if faulty(text) {
			return why
		}
		return ""
	}
}

// oneOf is a check that gives the text and the name that was probably meant.
func oneOf[T ~string](names ...T) func(string) string {
	var known []string
	for _, n := range names {
		known = append(known, string(n))
	}
	return func(text string) string {
		if slices.Contains(known, text) {
			return ""
		}
		return quoted(text) + "." + didYouMean(fleet.Nearest(text, known))
	}
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
