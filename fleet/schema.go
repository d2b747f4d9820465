package fleet

import "strings"

// A Description is what the reference, and macfleet explain --schema, say of an attribute or of a block.
type Description struct {
	Text    string // one sentence
	Type    string // where the field's Go type does not tell it
	Unit    string // of a number
	Default string // as HCL, where no tag has it
	Example string // as HCL: the value of an attribute, the name of a block
}

// Described is a block that describes itself, under "", and its attributes by name. A test asks for each.
type Described interface {
	Describe() map[string]Description
}

// SchemaBlock is a block of the configuration language.
type SchemaBlock struct {
	Path        string // fleet.group
	Name        string
	Description // its Example is the block's name, "" where it has none
	Required    bool
	Many        bool // any number of them
	Step        bool
	Attributes  []SchemaAttribute
	Blocks      []SchemaBlock
}

// SchemaAttribute is an attribute of a block.
type SchemaAttribute struct {
	Path        string // fleet.group.type
	Name        string
	Description // complete: with type and default
	Required    bool
}

// Heading is how the block is written: fleet "NAME" { … }.
func (b SchemaBlock) Heading() string {
	if b.Example != "" {
		return b.Name + " \"NAME\" { … }"
	}
	return b.Name + " { … }"
}

// Find returns the block, or the attribute, at a path below b such as fleet.group.type. A step may be named
// without the block that holds it: power.sleep.
func (b SchemaBlock) Find(path string) (block *SchemaBlock, attribute *SchemaAttribute) {
	for i, inner := range b.Blocks {
		if inner.Path == path {
			return &b.Blocks[i], nil
		}
		for j, a := range inner.Attributes {
			if a.Path == path {
				return nil, &inner.Attributes[j]
			}
		}
		if block, attribute := inner.Find(path); block != nil || attribute != nil {
			return block, attribute
		}
	}
	if b.Path == "" && !strings.HasPrefix(path, stepsIn) {
		return b.Find(stepsIn + path)
	}
	return nil, nil
}

// stepsIn begins the paths of steps in the block in which most of them are written.
const stepsIn = "defaults."

// Paths returns the paths of all blocks and attributes below b. Those of steps are given once, without the
// block that holds them.
func (b SchemaBlock) Paths() []string {
	var all []string
	for _, inner := range b.Blocks {
		if inner.Step && b.Path != strings.TrimSuffix(stepsIn, ".") {
			continue
		}
		all = append(all, inner.Path)
		for _, a := range inner.Attributes {
			all = append(all, a.Path)
		}
		all = append(all, inner.Paths()...)
	}
	if b.Path != "" {
		return all
	}
	for i, path := range all {
		if short := strings.TrimPrefix(path, stepsIn); short != "os" {
			all[i] = short
		}
	}
	return all
}

// Describe describes the rented servers.
func (Scaleway) Describe() map[string]Description {
	return map[string]Description{
		"":            {Text: "Where servers are rented, and which of them are free."},
		"zones":       {Text: "Zones in which macfleet looks for servers.", Example: `["fr-par-1", "fr-par-3"]`},
		"pool_prefix": {Text: "Servers whose name starts with this prefix are free to be claimed.", Example: `"acme-pool-"`},
	}
}

// Describe describes the cluster.
func (Kubernetes) Describe() map[string]Description {
	return map[string]Description{
		"":                      {Text: "The cluster whose Nodes the hosts are. Without it, hosts join no cluster."},
		"context":               {Text: "Context of the kubeconfig; without it, the current context.", Example: `"acme-production"`},
		"api_server":            {Text: "URL of the API server as hosts reach it; never a loopback address.", Example: `"https://api.acme.dev:6443"`},
		"certificate_authority": {Text: "Certificates, in PEM form, that sign the API server's certificate; without it, as the cluster says.", Type: "string (PEM)", Example: `var.cluster_ca`},
		"tls_server_name":       {Text: "Name in the API server's certificate, if it differs from the address.", Example: `"kubernetes.acme.dev"`},
		"proxy_url":             {Text: "Proxy through which hosts reach the API server: http, https or socks5, without a password.", Example: `"http://proxy.acme.dev:3128"`},
		"namespace":             {Text: "Namespace of macfleet's own objects. The hosts' accounts are in a second one, with the suffix -agents.", Default: `"macfleet"`, Example: `"macfleet"`},
		"label_prefix":          {Text: "Domain of macfleet's labels and annotations on Nodes.", Default: `"macfleet.dev"`, Example: `"macs.acme.dev"`},
		"ignore_field_managers": {Text: "Controllers that may write to the hosts' Nodes next to macfleet (`foreign-field-manager`), as `managedFields` names them.", Default: `[]`, Example: `["acme-node-operator"]`},
		"pod_namespaces":        {Text: "Namespaces in which Pods for the hosts run; kubelets have rights only there.", Default: `["default"]`, Example: `["ci"]`},
	}
}

// Describe describes the Cluster API.
func (CAPI) Describe() map[string]Description {
	return map[string]Description{
		"":          {Text: "A Cluster API inside the cluster, and its connection to this cluster."},
		"cluster":   {Text: "Name of the Cluster object.", Example: `"acme"`},
		"namespace": {Text: "Namespace of the Cluster object.", Default: `"default"`, Example: `"capi"`},
	}
}

// Describe describes how hosts are reached.
func (SSH) Describe() map[string]Description {
	return map[string]Description{
		"":                     {Text: "How hosts are reached."},
		"user":                 {Text: "Login user on every host.", Default: `"m1"`, Example: `"m1"`},
		"private_key":          {Text: "The one private key that macfleet offers; without it, your own keys.", Example: `secret("k8s://macfleet/fleet-ssh/id_ed25519")`},
		"previous_private_key": {Text: "The private key before a rotation, which hosts accept until all accept private_key.", Example: `secret("k8s://macfleet/fleet-ssh-old/id_ed25519")`},
		"via":                  {Text: "Paths to a host, in order of preference: \"tailscale\", \"public\".", Default: `["public"]`, Example: `["tailscale", "public"]`},
		"host_keys":            {Text: "Fingerprints of host keys, by the name or id of the server.", Example: `{ "acme-legacy-01" = "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU" }`},
	}
}

// Describe describes the deadlines of a connection.
func (Timeouts) Describe() map[string]Description {
	return map[string]Description{
		"":          {Text: "Deadlines of a connection to a host."},
		"dial":      {Text: "Time to open the connection.", Default: `"10s"`, Example: `"10s"`},
		"handshake": {Text: "Time from the open connection to the login.", Default: `"15s"`, Example: `"15s"`},
		"question":  {Text: "Time for one probe on the host, in whole seconds.", Default: `"10s"`, Example: `"10s"`},
		"change":    {Text: "Time for one change on the host, in whole seconds.", Default: `"60s"`, Example: `"90s"`},
		"exchange":  {Text: "Time for all probes of a host together, without changes.", Default: `"60s"`, Example: `"60s"`},
		"silence":   {Text: "Longest time without a byte from the host.", Default: `"20s"`, Example: `"20s"`},
		"undo":      {Text: "Time in which a change that may cut the connection must be confirmed; after it the host undoes the change.", Default: `"60s"`, Example: `"60s"`},
	}
}

// Describe describes a file that hosts get.
func (Artifact) Describe() map[string]Description {
	return map[string]Description{
		"":        {Text: "A file that hosts receive: a program, or an archive of one. Unused artifacts are allowed.", Example: `"tart"`},
		"version": {Text: "Version shown in plans and recorded on hosts.", Example: `"2.32.1"`},
		"source":  {Text: "An https URL, or the path of a file relative to the configuration.", Example: `"https://releases.acme.dev/tart-2.32.1.tar.gz"`},
		"sha256":  {Text: "Digest of the file, written by macfleet artifacts lock. Required once a fleet uses the artifact.", Example: `"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`},
		"size":    {Text: "Size of the file, written by macfleet artifacts lock.", Unit: "bytes", Example: `24117248`},
		"fetch":   {Text: "\"host\": each host downloads the URL (default for a URL). \"push\": macfleet uploads the file (default for a path).", Example: `"host"`},
	}
}

// Describe describes drift that raises no alarm.
func (Ignore) Describe() map[string]Description {
	return map[string]Description{
		"":       {Text: "Drift that raises no alarm until a date. Write step, code or both. apply still fixes it.", Example: `"vendor-test"`},
		"step":   {Text: "Step, or another part of a host or cluster, whose drift is ignored.", Example: `"power"`},
		"code":   {Text: "Reason code that is ignored.", Example: `"sleep-enabled"`},
		"on":     {Text: "Selector of hosts, as in --on; without it, all hosts.", Example: `"fleet=builders"`},
		"field":  {Text: "The one field of a difference that is ignored; without it, all fields.", Example: `"display sleep"`},
		"owner":  {Text: "Who is responsible for the exception.", Example: `"team-ci"`},
		"reason": {Text: "Why the drift is accepted.", Example: `"vendor test until Christmas"`},
		"until":  {Text: "Last day on which it holds, in UTC; at most 180 days ahead.", Type: "date", Example: `"2026-12-31"`},
	}
}

// Describe describes how a run goes over a fleet.
func (Rollout) Describe() map[string]Description {
	return map[string]Description{
		"":                 {Text: "How many hosts of a fleet are disturbed at the same time, and in which order."},
		"max_unavailable":  {Text: "Hosts that may be unavailable at the same time: a number, or a share of the Ready hosts.", Default: `"20%"`, Example: `"20%"`},
		"canary":           {Text: "Hosts that go first; the others wait for them. 0: none.", Unit: "hosts", Default: `1`, Example: `1`},
		"soak":             {Text: "How long the canary must stay Ready before the others start.", Default: `"0s"`, Example: `"15m"`},
		"failure_budget":   {Text: "Failed hosts that are tolerated before no further host starts.", Unit: "hosts", Default: `0`, Example: `1`},
		"min_ready":        {Text: "Hosts of the fleet that must stay Ready. 0: no such limit.", Unit: "hosts", Default: `0`, Example: `6`},
		"quarantine_after": {Text: "Failed repairs in a row after which a host is quarantined: it is cordoned, and does not count for its fleet. 0: never.", Unit: "repairs", Default: `3`, Example: `5`},
		"order":            {Text: "\"name\": by group and name. \"idle\": hosts with the fewest Pods first.", Default: `"name"`, Example: `"idle"`},
	}
}

// Describe describes what a single run may do.
func (Guardrails) Describe() map[string]Description {
	return map[string]Description{
		"":              {Text: "Limits of a single run. What exceeds them is deferred to a later run; repairs are never deferred."},
		"max_hosts":     {Text: "Hosts that one run may change; without it, any number.", Unit: "hosts", Example: `20`},
		"max_disrupted": {Text: "Ready hosts of a fleet that one run may drain, reboot or wipe: a number or a share; without it, any number.", Example: `"25%"`},
		"max_wipes":     {Text: "Hosts that one run may wipe.", Unit: "hosts", Default: `1`, Example: `1`},
		"ignore_jobs":   {Text: "Labels of launchd jobs that may control hosts next to macfleet (`foreign-job`); `*` stands for any text.", Default: `[]`, Example: `["com.buildkite.*"]`},
		"windows":       {Text: "When hosts may be drained, rebooted or wiped; without it, at any time.", Example: `["Mon-Fri 22:00-06:00 Europe/Paris"]`},
	}
}

// Describe describes the step.
func (Sudo) Describe() map[string]Description {
	return map[string]Description{"": {Text: "The login user has passwordless sudo. Every fleet has this step unless it disables it."}}
}

// Describe describes the step.
func (Hostname) Describe() map[string]Description {
	return map[string]Description{"": {Text: "The host has the name of its server."}}
}

// Describe describes the step.
func (Power) Describe() map[string]Description {
	return map[string]Description{
		"":                         {Text: "The Mac stays awake and logged in, and restarts after a power loss."},
		"sleep":                    {Text: "Idle time before the system sleeps; 0: never.", Unit: "minutes", Example: `0`},
		"display_sleep":            {Text: "Idle time before the display sleeps; 0: never.", Unit: "minutes", Example: `10`},
		"disk_sleep":               {Text: "Idle time before disks sleep; 0: never.", Unit: "minutes", Example: `0`},
		"screensaver":              {Text: "Idle time before the screen saver starts; 0: never.", Unit: "seconds", Example: `600`},
		"auto_logout":              {Text: "Idle time before the session ends; 0: never.", Unit: "seconds", Example: `0`},
		"restart_after_power_loss": {Text: "Whether the Mac restarts when power returns.", Example: `true`},
	}
}

// Describe describes the step.
func (System) Describe() map[string]Description {
	return map[string]Description{
		"":                  {Text: "macOS does not update, index or lease addresses for a day by itself."},
		"automatic_updates": {Text: "Whether macOS and apps are updated automatically, which restarts the Mac.", Example: `true`},
		"spotlight":         {Text: "Whether Spotlight indexes the volumes.", Example: `true`},
		"reboot_after":      {Text: "Time after which an apply drains and restarts a host; 0: never. macOS opens no connections after 49 days and 17 hours.", Unit: "days", Example: `30`},
		"address_lease":     {Text: "How long a virtual machine keeps its address. macOS's default is a day, so 253 virtual machines a day use up all addresses.", Unit: "seconds", Example: `3600`},
	}
}

// Describe describes the step.
func (LocalNetwork) Describe() map[string]Description {
	return map[string]Description{
		"":       {Text: "Jobs of a CI agent reach virtual machines without a click: macOS asks from 15.0 on. A restart is part of it."},
		"subnet": {Text: "Network of the virtual machines, as vmnet gives it.", Example: `"192.168.2.0/24"`},
	}
}

// Describe describes the step.
func (Disk) Describe() map[string]Description {
	return map[string]Description{
		"":             {Text: "Room on the disk for the next image. Without attributes it only warns."},
		"warn_below":   {Text: "How much should be free.", Unit: "GB", Example: `100`},
		"cache_budget": {Text: "How much Tart's cached images may use; those that were not used longest are deleted. 0: any.", Unit: "GB", Example: `150`},
		"delete":       {Text: "Names of stopped virtual machines that may be deleted, with * for any text. Others are never deleted.", Example: `["bake-*"]`},
		"older_than":   {Text: "How long a virtual machine must not have been used before it is deleted.", Unit: "hours", Example: `48`},
	}
}

// Describe describes the step.
func (BuildTools) Describe() map[string]Description {
	return map[string]Description{
		"":            {Text: "The tools of jobs on a builder: packer, Homebrew, Xcode, a folder for caches, and variables of every shell."},
		"homebrew":    {Text: "Homebrew's installer, which runs without prompts where Homebrew is missing.", Example: `artifact.homebrew`},
		"formulae":    {Text: "Formulae of Homebrew by full name: installed once, trusted, pinned, and never upgraded by macfleet.", Example: `["git-lfs", "acme/tap/crane"]`},
		"packer":      {Text: "The vendor's archive of packer for darwin-arm64: its code signature changes only with the configuration.", Example: `artifact.packer`},
		"xcode":       {Text: "The Xcode that the command line tools use. It must be installed: macfleet selects it and accepts its licence. Empty: any, or none.", Example: `"/Applications/Xcode-26.1.app"`},
		"cache":       {Text: "A folder for caches of builds, which the login user owns.", Example: `"/opt/build-cache"`},
		"environment": {Text: "Variables of every shell, also of those without a login: lines in /etc/zshenv.", Example: `["ACME_BUILD_ROOT=/opt/build-cache"]`},
	}
}

// Describe describes the step.
func (AutoLogin) Describe() map[string]Description {
	return map[string]Description{"": {Text: "The login user is logged in at the screen, also after a restart."}}
}

// Describe describes the step.
func (VMFirewall) Describe() map[string]Description {
	return map[string]Description{
		"":           {Text: "Virtual machines reach no private networks and no metadata service."},
		"anchor":     {Text: "Name of the pf anchor.", Example: `"macfleet"`},
		"legacy":     {Text: "Anchors of other tools that this one replaces.", Default: `[]`, Example: `["com.acme.vm"]`},
		"vm_sources": {Text: "Networks of the virtual machines.", Example: `["192.168.64.0/22"]`},
		"block":      {Text: "Networks that virtual machines must not reach.", Example: `["10.0.0.0/8", "169.254.0.0/16"]`},
	}
}

// Describe describes the step.
func (Tart) Describe() map[string]Description {
	return map[string]Description{
		"":         {Text: "Tart is installed, complete and of this version."},
		"artifact": {Text: "Archive of tart.app. Required here or in a level above.", Example: `artifact.tart`},
	}
}

// Describe describes the step.
func (TartKubelet) Describe() map[string]Description {
	return map[string]Description{
		"":         {Text: "The host is a Node of the cluster: tart-kubelet runs there, with its own identity."},
		"artifact": {Text: "The tart-kubelet program. Required here or in a level above.", Example: `artifact.tart_kubelet`},
		"max_pods": {Text: "Pods that may run on the host at the same time.", Unit: "Pods", Example: `2`},
		"labels":   {Text: "Labels of the Node, in addition to those that macfleet sets.", Default: `{}`, Example: `{ "acme.dev/size" = "big" }`},
		"legacy":   {Text: "launchd jobs that run the same program under other labels and are replaced.", Default: `[]`, Example: `["dev.tuist.tart-kubelet"]`},
	}
}

// Describe describes the tailnet.
func (Tailnet) Describe() map[string]Description {
	return map[string]Description{
		"":                 {Text: "The Tailscale network that hosts join. Without it nothing of Tailscale exists on any host."},
		"enabled":          {Text: "Whether hosts join it. With false they leave it, and their devices are deleted.", Default: "true", Example: "var.tailnet"},
		"auth":             {Text: "Secret of an OAuth client with the scopes devices:core and auth_keys; or an auth key made by hand, which control_url needs.", Example: `secret("op://acme/TAILSCALE/oauth-client-secret")`},
		"client_id":        {Text: "In place of auth: client id of a federated identity.", Example: `"T1234CNTRL-k5678"`},
		"identity_token":   {Text: "Token (a JWT) of the CI job that client_id trusts.", Example: `secret("env://TAILSCALE_ID_TOKEN")`},
		"tags":             {Text: "Tags of every host's device.", Example: `["tag:macmini-${env.name}"]`},
		"control_url":      {Text: "Address of another control server, such as Headscale; without it, Tailscale's own.", Example: `"https://headscale.acme.dev"`},
		"device_budget":    {Text: "Tagged devices that the tailnet's plan allows; without it, any number.", Unit: "devices", Example: "50"},
		"reserved_devices": {Text: "Tagged devices to come besides hosts: the operator's, proxies and connectors.", Unit: "devices", Default: "0", Example: "5"},
	}
}

// Describe describes the step.
func (Tailscale) Describe() map[string]Description {
	return map[string]Description{
		"":         {Text: "The host is a device of the tailnet. Without an enabled tailnet block it has no effect."},
		"artifact": {Text: "Archive of tailscale and tailscaled, made by macfleet artifacts build. Required here or in a level above.", Example: `artifact.tailscale`},
		"port":     {Text: "UDP port on which the daemon receives packets.", Unit: "port", Example: "41641"},
	}
}

// Describe describes the step.
func (NodeExporter) Describe() map[string]Description {
	return map[string]Description{
		"":           {Text: "The host's metrics are served in the tailnet only. It needs tailscale."},
		"artifact":   {Text: "The vendor's archive of node_exporter. Required here or in a level above.", Example: `artifact.node_exporter`},
		"port":       {Text: "Port on the host's tailnet address.", Unit: "port", Example: "9100"},
		"collectors": {Text: "Collectors that are turned on; without it, those that a Mac's dashboards need.", Example: `["cpu", "meminfo", "filesystem"]`},
	}
}

// Describe describes what a Node does not offer.
func (Reserve) Describe() map[string]Description {
	return map[string]Description{
		"":       {Text: "What the host keeps for itself; the Node offers the rest."},
		"cpu":    {Text: "Cores that Pods do not get.", Unit: "cores", Example: `2`},
		"memory": {Text: "Memory that Pods do not get, in Kubernetes notation.", Example: `"2Gi"`},
	}
}

// Describe describes the step.
func (GithubRunner) Describe() map[string]Description {
	return map[string]Description{
		"":                          {Text: "The host is a builder: only DaemonSets run Pods there. With organization or repository, macfleet registers GitHub's runner."},
		"app":                       {Text: "GitHub App that registers the runner. A runner that macfleet registers needs app or token.", Example: "github_app.builders"},
		"token":                     {Text: "In place of app: a personal access token that may manage runners.", Example: `secret("env://GITHUB_TOKEN")`},
		"host":                      {Text: "Host name of GitHub's web pages: also a data residency host, or an Enterprise Server.", Example: `"github.acme.dev"`},
		"organization":              {Text: "Organization whose jobs run on the host.", Example: `"acme"`},
		"repository":                {Text: "In place of organization: the one repository whose jobs run on the host, as OWNER/NAME.", Example: `"acme/images"`},
		"labels":                    {Text: "Labels for runs-on, in addition to those that GitHub sets; the case does not count.", Default: "[]", Example: `["vm-image-builder"]`},
		"default_labels":            {Text: "Whether the runner also has GitHub's own labels: self-hosted, macOS and ARM64.", Example: "true"},
		"runner_group":              {Text: "Runner group of the organization; without it, the default group.", Example: `"builders"`},
		"work_folder":               {Text: "Folder for jobs, relative to the runner's own folder, or absolute.", Example: `"_work"`},
		"min_version":               {Text: "Oldest version of the runner that is accepted. The runner updates itself.", Example: `"2.336.0"`},
		"version":                   {Text: "Version to install; without it, the newest that GitHub offers. The runner updates itself afterwards.", Example: `"2.336.0"`},
		"sha256":                    {Text: "Digest of the archive of version; without it, as GitHub publishes it.", Example: `"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`},
		"fence_group":               {Text: "Runner group without repositories, for a runner whose host is being changed; without it, its labels are removed.", Example: `"parked"`},
		"allow_public_repositories": {Text: "Allows workflows of public repositories to run on the host.", Example: "false"},
		"mode":                      {Text: "\"persistent\": the runner stays registered after a job. No other mode exists yet.", Example: `"persistent"`},
	}
}

// Describe describes an App that manages runners.
func (GitHubApp) Describe() map[string]Description {
	return map[string]Description{
		"":                     {Text: "A GitHub App that may manage self-hosted runners, referred to as github_app.NAME.", Example: `"builders"`},
		"app_id":               {Text: "Id of the App, or its client id.", Example: `"Iv23liExample01"`},
		"installation_id":      {Text: "Id of the App's installation; without it, macfleet looks it up.", Example: `secret("op://acme/BUILDERS/installation-id")`},
		"private_key":          {Text: "Private key of the App, as GitHub generates it (PEM).", Example: `secret("op://acme/BUILDERS/private-key")`},
		"previous_private_key": {Text: "The App's private key before a rotation, used while GitHub does not accept private_key.", Example: `secret("op://acme/BUILDERS/old-private-key")`},
	}
}
