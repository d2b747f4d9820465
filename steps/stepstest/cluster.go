package stepstest

import (
	"encoding/base64"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// TartArtifact is a version of Tart.
func TartArtifact() *fleet.Artifact {
	return &fleet.Artifact{Name: "vm", Version: "2.32.1", Source: "https://artifacts.acme.dev/tart-2.32.1.tar.gz",
		SHA256: strings.Repeat("7a", 32), Size: 24_000_000, Fetch: fleet.FetchHost}
}

// KubeletArtifact is a version of the kubelet.
func KubeletArtifact() *fleet.Artifact {
	return &fleet.Artifact{Name: "kubelet", Version: "0.4.0", Source: "https://artifacts.acme.dev/tart-kubelet-0.4.0",
		SHA256: strings.Repeat("4c", 32), Size: 60_000_000, Fetch: fleet.FetchPush}
}

// OlderSHA is the digest of the version before both.
func OlderSHA() string { return strings.Repeat("03", 32) }

// Server is the server of the sample hosts.
func Server() inventory.Server {
	return inventory.Server{ID: "0a1b2c3d-0000-4000-8000-000000000000", Zone: "fr-par-1", Status: "ready", Delivered: true}
}

// Join is the cluster of the sample hosts.
func Join() inventory.Join {
	return inventory.Join{Server: "https://api.acme.dev:6443", CA: "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"}
}

// AccountUID is the uid of the ServiceAccount of each sample host.
const AccountUID = "5a5a5a5a-0000-4000-8000-000000000001"

// View is what a step sees of a host that is well known to the cluster, with
// these answers.
func View(h fleet.Host, facts plan.Facts) plan.View {
	return plan.View{Host: h, Server: Server(), Facts: facts, Root: true,
		Node: inventory.Present(inventory.Node{Name: h.Name, UID: "node-uid", ProviderID: Server().ProviderID(), Ready: inventory.Ready,
			Labels: map[string]string{"topology.kubernetes.io/region": "fr-par", "topology.kubernetes.io/zone": Server().Zone}}),
		Identity: inventory.Present(inventory.Identity{Host: h.Name, ServiceAccount: AccountUID, Secret: "secret-uid", Issued: true, Bound: true}),
		Join:     inventory.Present(Join()), Pods: inventory.Present([]inventory.Pod{}), Peers: Peers(h.Name, facts)}
}

// Claims are the middle part of a token of a ServiceAccount's Secret.
func Claims(account, secret string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"kubernetes/serviceaccount","kubernetes.io/serviceaccount/namespace":"macfleet",` +
		`"kubernetes.io/serviceaccount/secret.name":"` + secret + `","kubernetes.io/serviceaccount/service-account.uid":"` + account + `"}`))
}

// Kubeconfig is what the sample hosts have, without the token's line.
func Kubeconfig(name string) string {
	return `apiVersion: v1
kind: Config
clusters:
- name: cluster
  cluster:
    server: https://api.acme.dev:6443
    certificate-authority-data: ` + base64.StdEncoding.EncodeToString([]byte(Join().CA)) + `
contexts:
- name: tart-kubelet-` + name + `
  context:
    cluster: cluster
    user: tart-kubelet-` + name + `
current-context: tart-kubelet-` + name + `
users:
- name: tart-kubelet-` + name + `
  user:
`
}
