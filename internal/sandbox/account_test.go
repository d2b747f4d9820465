package sandbox_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	applesilicon "github.com/scaleway/scaleway-sdk-go/api/applesilicon/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/cloud"
)

func (p *patient) injectAccount(incident string) {
	p.Helper()
	for range 2 { // the second time changes nothing
		must(p, p.world.Inject(sandbox.Account, incident))
	}
	if got, err := p.world.Places(); err != nil || !slices.Equal(got[sandbox.Account], []string{incident}) {
		p.Errorf("open are %q, %v, want %q", got, err, incident)
	}
}

func (p *patient) healAccount() {
	p.Helper()
	for range 2 {
		must(p, p.world.Heal(sandbox.Account, ""))
	}
	if got, err := p.world.Places(); err != nil || len(got) > 0 {
		p.Errorf("after healing are open %q, %v", got, err)
	}
}

// seen returns what the API key sees of the servers in the first zone: their names, or the error.
func (p *patient) seen() string {
	p.Helper()
	list, err := scalewayOf(p.T, p.world).ListServers(&applesilicon.ListServersRequest{Zone: "fr-par-1", ProjectID: scw.StringPtr(project)})
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, s := range list.Servers {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

// scalewayOf is the vendor's client without the request that it makes first.
func scalewayOf(t testing.TB, w *sandbox.World) *applesilicon.API {
	t.Helper()
	access, secret := w.ScalewayKeys()
	client, err := scw.NewClient(scw.WithAPIURL(w.ScalewayURL()), scw.WithAuth(access, secret), scw.WithDefaultProjectID(w.ProjectID()))
	must(t, err)
	return applesilicon.NewAPI(client)
}

// TestAccountIncidents injects each incident of the account into a new world, and compares what the API
// shows with what is expected.
func TestAccountIncidents(t *testing.T) {
	t.Parallel()
	all := map[string]string{ // a part of what the list of servers shows
		"revoked-key": "does not exist", "read-only-key": "acme-pool-01", "iam-project-missing": "acme-pool-01", "wrong-project": "insufficient permissions", "rate-limited": "429", "answer-lost": "acme-pool-01",
		"out-of-stock": "globex-ci-", "os-family-gone": "acme-pool-01", "install-fails": "acme-pool-01", "stray-server": "ci-scratch", "unnamed-orphan": "as-wonderful-lamport",
		"moved-project": "", "half-made-claim": "acme-pool-01", "dirty-pool-host": "acme-pool-01",
	}
	if got := sandbox.AccountIncidents(); len(got) != len(all) {
		t.Errorf("incidents of the account: %+v", got)
	}
	for _, incident := range sandbox.AccountIncidents() {
		t.Run(incident.Name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			before := p.seen()
			p.injectAccount(incident.Name)
			if want, known := all[incident.Name]; !known || incident.Summary == "" || !strings.Contains(p.seen(), want) || want == "" && p.seen() != "" {
				t.Errorf("the API shows %q, want %q", p.seen(), want)
			}
			p.healAccount()
			p.want("list of servers", p.seen(), before)
		})
	}
}

func TestPoolIncidents(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.writeMarker(`{"configuration":"acme","environment":"production","fleet":"runners","group":"m2","epoch":12}`)
	p.injectAccount("unnamed-orphan")
	orphan := hosts(t, p.world)[2]
	data, err := p.world.Mac(orphan.ID)
	must(t, err)
	marker, err := data.ReadFile("/etc/macfleet/host.json")
	if err != nil || !strings.Contains(string(marker), `"acme-production-runners-m2-`+orphan.ID[:5]+`"`) || !strings.Contains(string(marker), orphan.ID) {
		t.Errorf("its marker is %s, %v", marker, err)
	}
	p.healAccount()
	p.run("rm -rf /etc/macfleet")

	p.injectAccount("half-made-claim")
	p.want("claim", p.run("grep -c acme-production-runners-m2-"+p.host.ID[:5]+" /etc/macfleet/claim.json"), "1")
	p.healAccount()
	p.want("folder", p.run("if [ -e /etc/macfleet ]; then echo there; fi"), "")

	p.injectAccount("half-made-claim")
	p.writeMarker("finished")
	p.healAccount()
	p.want("a finished claim", p.run("cat /etc/macfleet/host.json && ls /etc/macfleet/claim.json"), "finished/etc/macfleet/claim.json")
	p.run("rm -rf /etc/macfleet")

	p.injectAccount("dirty-pool-host")
	p.want("leftovers", p.run("grep -c globex /etc/macfleet/host.json && ls /Library/LaunchDaemons"), "2\ndev.tuist.tart-kubelet.plist")
	p.healAccount()
	p.want("leftovers after healing", p.run("ls /etc/macfleet /Library/LaunchDaemons 2>/dev/null | grep -c plist || true"), "0")
}

func TestTargetsOfIncidents(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	if err := p.world.Inject(p.host.Name, "revoked-key"); err == nil || !strings.Contains(err.Error(), "sandbox inject scaleway revoked-key") {
		t.Errorf("an incident of the account on a host: %v", err)
	}
	if err := p.world.Inject(sandbox.Account, "sleep-enabled"); err == nil || !strings.Contains(err.Error(), "sandbox list") {
		t.Errorf("an incident of a host on the account: %v", err)
	}
	must(t, p.world.Inject(p.host.Name, "swapped-serial"))
	if got := host(t, p.world, p.host.ID).Incidents; !slices.Equal(got, []string{"swapped-host"}) {
		t.Errorf("under its other name: %q", got)
	}
	if err := p.world.Heal(p.host.Name, "swapped-serial"); err != nil || len(host(t, p.world, p.host.ID).Incidents) > 0 {
		t.Errorf("healed under its other name: %v", err)
	}
}

func TestReinstalledByHand(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	must(t, p.world.Provider().EditKeys(func(all []cloud.SSHKey) []cloud.SSHKey { return all[:0] }))
	p.writeMarker("own")
	p.inject("reinstalled-by-hand")
	p.want("marker", p.marker(), "")
	if _, _, err := exec(t.Context(), p.world, signer(t, p.world), p.host.Address, "true"); err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
		t.Errorf("without a registered key it accepts the fleet's key: %v", err)
	}
	p.heal("reinstalled-by-hand")
	p.want("marker after healing", p.marker(), "")
}

// kubernetesOf is a client with the user's kubeconfig.
func kubernetesOf(t testing.TB, w *sandbox.World) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: w.KubernetesURL()}, &http.Client{Transport: bearer(w.KubernetesToken())})
	must(t, err)
	return client
}

// TestClusterIncidents: the user's requests fail or reach another cluster, and the world's cluster is the same after
// healing.
func TestClusterIncidents(t *testing.T) {
	t.Parallel()
	wanted := map[string]string{"revoked-kubeconfig": "Unauthorized", "wrong-cluster": "0e1f2a3b-0000-4000-8000-00000000000c"}
	if got := sandbox.ClusterIncidents(); len(got) != len(wanted) {
		t.Errorf("incidents of the cluster: %+v", got)
	}
	for name, want := range wanted {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := newWorld(t, 1)
			reached := func() string {
				ns, err := kubernetesOf(t, w).CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
				if err != nil {
					return err.Error()
				}
				return string(ns.UID)
			}
			before := reached()
			for range 2 {
				must(t, w.Inject(sandbox.Cluster, name))
			}
			if got := reached(); got != want || got == before {
				t.Errorf("the kubeconfig reaches %q, want %q", got, want)
			}
			must(t, w.Heal(sandbox.Cluster, name))
			equal(t, reached(), before, "after healing")
		})
	}
}
