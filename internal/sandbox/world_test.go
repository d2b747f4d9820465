package sandbox_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	applesilicon "github.com/scaleway/scaleway-sdk-go/api/applesilicon/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/macfleet/macfleet/internal/sandbox"
)

func TestFreshWorld(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t, 0)
	all := hosts(t, w)
	if len(all) != 16 || all[0].Name != "acme-pool-01" || all[15].Name != "acme-pool-16" {
		t.Fatalf("hosts: %+v", all)
	}
	types, ids, addresses, zones := map[string]int{}, map[string]bool{}, map[string]bool{}, map[string]int{}
	for _, h := range all {
		types[h.Type]++
		zones[h.Zone]++
		ids[h.ID[:5]], addresses[h.Address] = true, true
		if info, err := os.Stat(h.Root); err != nil || !info.IsDir() || len(h.Incidents) != 0 {
			t.Errorf("%s: root %s: %v, incidents %v", h.Name, h.Root, err, h.Incidents)
		}
	}
	if diff := cmp.Diff(map[string]int{"M2-L": 14, "M4-S": 1, "M2-M": 1}, types); diff != "" {
		t.Error(diff)
	}
	if len(ids) != 16 || len(addresses) != 16 || zones["fr-par-1"] != 8 || zones["fr-par-3"] != 8 {
		t.Errorf("%d short ids, %d addresses, zones %v", len(ids), len(addresses), zones)
	}
	if data, err := os.ReadFile(filepath.Join(dir, ".gitignore")); err != nil || string(data) != "*\n" {
		t.Errorf(".gitignore: %q %v", data, err)
	}
	if w.ProjectID() != project || w.ClusterUID() != cluster || !sandbox.Exists(dir) {
		t.Errorf("project %s, cluster %s", w.ProjectID(), w.ClusterUID())
	}
	other, _ := newWorld(t, 0)
	if diff := cmp.Diff(all, hosts(t, other), cmpopts.IgnoreFields(sandbox.Host{}, "Root")); diff != "" {
		t.Errorf("two fresh worlds differ:\n%s", diff)
	}
	if again := open(t, dir, sandbox.Seed{Hosts: 3}); len(hosts(t, again)) != 16 || again.ProjectID() != project {
		t.Error("an existing world did not keep its own values")
	}
}

func TestBigWorldsHaveDistinctHosts(t *testing.T) {
	t.Parallel()
	w, _ := newWorld(t, 600)
	ids, addresses := map[string]bool{}, map[string]bool{}
	list, err := scaleway(t, w).ListServers(&applesilicon.ListServersRequest{Zone: "fr-par-1", PageSize: scw.Uint32Ptr(100)}, scw.WithAllPages())
	must(t, err)
	for _, server := range list.Servers {
		ids[server.ID[:5]], addresses[server.IP.String()] = true, true
	}
	if len(ids) != 300 || len(addresses) != 300 || list.Servers[0].Name != "acme-pool-001" {
		t.Errorf("%d ids, %d addresses, first %s", len(ids), len(addresses), list.Servers[0].Name)
	}
}

func TestProviders(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t, 4)
	list, err := scaleway(t, w).ListServers(&applesilicon.ListServersRequest{Zone: "fr-par-3", ProjectID: scw.StringPtr(project)}, scw.WithAllPages())
	if err != nil || len(list.Servers) != 2 {
		t.Fatalf("%v %v", list, err)
	}
	server := list.Servers[0]
	if server.Os.Name != "macos-tahoe-26.3" || server.Os.Family != "Tahoe" || server.SSHUsername != "m1" || !server.Delivered ||
		server.Status != applesilicon.ServerStatusReady || !server.DeletableAt.Equal(server.CreatedAt.AddDate(0, 0, 1)) {
		t.Errorf("server: %+v", server)
	}
	client := kubernetesOf(t, w)
	system, err := client.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	if err != nil || system.UID != cluster {
		t.Errorf("kube-system: %v %v", system, err)
	}
	secret, err := client.CoreV1().Secrets("macfleet").Get(t.Context(), "fleet-ssh", metav1.GetOptions{})
	if value, _ := w.Secret(keyRef); err != nil || value == "" || string(secret.Data["id_ed25519"]) != value {
		t.Errorf("the fleet's key differs between the cluster and Secret: %v", err)
	}
	if got := accessLog(t, dir, "scaleway GET /apple-silicon/v1alpha1/zones/fr-par-3/servers?"); len(got) != 1 || !strings.HasSuffix(got[0], "&project_id="+project+" 200") {
		t.Errorf("log: %q", got)
	}
	if got := accessLog(t, dir, "kubernetes GET /api/v1/"); len(got) != 2 {
		t.Errorf("log: %q", got)
	}
}

// bearer adds the token to requests.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func TestDial(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t, 3)
	key := signer(t, w)
	for _, h := range hosts(t, w) {
		if _, _, err := exec(t.Context(), w, key, h.Address, "true"); err != nil {
			t.Errorf("%s: %v", h.Name, err)
		}
	}
	if got := accessLog(t, dir, "ssh acme-pool-02"); !slices.Equal(got, []string{"ssh acme-pool-02 connect", "ssh acme-pool-02 login", "ssh acme-pool-02 exec"}) {
		t.Errorf("log: %q", got)
	}
	for addr, want := range map[string]error{
		"192.0.2.1:22": syscall.EHOSTUNREACH, "example.com:22": syscall.EHOSTUNREACH, "127.0.0.1:22": syscall.EHOSTUNREACH,
		hosts(t, w)[0].Address + ":5900": syscall.ECONNREFUSED,
	} {
		_, err := w.DialContext(t.Context(), "tcp", addr)
		if op, ok := errors.AsType[*net.OpError](err); !ok || !errors.Is(err, want) || op.Op != "dial" {
			t.Errorf("dial %s: %v, want %v", addr, err, want)
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.DialContext(canceled, "tcp", hosts(t, w)[0].Address+":22"); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled dial: %v", err)
	}
}

// TestCloseHangsUp leaves connections open when the world is closed. goleak checks that nothing keeps
// running.
func TestCloseHangsUp(t *testing.T) {
	t.Parallel()
	w, err := sandbox.Open(filepath.Join(t.TempDir(), "sandbox"), seed(2))
	must(t, err)
	address := hosts(t, w)[0].Address + ":22"
	conn, err := w.DialContext(t.Context(), "tcp", address)
	must(t, err)
	url := w.KubernetesURL()
	must(t, w.Close())
	if err := w.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	buffer := make([]byte, 1024)
	for err == nil {
		_, err = conn.Read(buffer)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if _, err := w.DialContext(t.Context(), "tcp", address); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a dial after Close: %v", err)
	}
	if response, err := http.Get(url + "/version"); err == nil {
		_ = response.Body.Close()
		t.Error("the API still answers after Close")
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sandbox")
	with := seed(1)
	with.SSHKeyRef = "op://acme/FLEET/private-key"
	w := open(t, dir, with)
	if value, err := w.Secret(with.SSHKeyRef); err != nil || !strings.HasPrefix(value, "-----BEGIN OPENSSH PRIVATE KEY-----") {
		t.Errorf("the fleet's key: %q %v", value, err)
	}
	path := filepath.Join(dir, "secrets.json")
	for _, ref := range []string{"env://TOKEN", "file://token.txt", "op://acme/X/y", "scaleway://token/latest"} {
		if _, err := w.Secret(ref); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), ref) {
			t.Errorf("%s: %v, want an error that names it and %s", ref, err, path)
		}
	}
	must(t, os.WriteFile(path, []byte(`{"env://TOKEN": "by hand"}`), 0o600))
	if value, err := w.Secret("env://TOKEN"); err != nil || value != "by hand" {
		t.Errorf("after an edit: %q %v", value, err)
	}
	must(t, os.WriteFile(path, []byte(`{"env://TOKEN": "hunter2"`), 0o600))
	if _, err := w.Secret("env://TOKEN"); err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("with a broken file: %v", err)
	}
	for _, ref := range []string{"k8s://macfleet/other/key", "k8s://macfleet", "k8s:////"} {
		if _, err := w.Secret(ref); err == nil || !strings.Contains(err.Error(), "k8s://") {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

func TestTwoWorldsOnOneFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sandbox")
	worlds := make(chan *sandbox.World, 4)
	for range cap(worlds) {
		go func() {
			w, err := sandbox.Open(dir, seed(6))
			if err != nil {
				t.Error(err)
			}
			worlds <- w
		}()
	}
	var all []*sandbox.World
	for range cap(worlds) {
		if w := <-worlds; w != nil {
			all = append(all, w)
		}
	}
	defer func() {
		for _, w := range all {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
	}()
	if t.Failed() {
		t.FailNow()
	}
	results := make(chan error)
	for _, w := range all {
		go func() {
			own, err := w.Hosts()
			for _, h := range own {
				_, _, failed := exec(t.Context(), w, signer(t, w), h.Address, "true")
				err = errors.Join(err, failed)
			}
			results <- err
		}()
	}
	for range all {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(hosts(t, all[0]), hosts(t, all[3])); diff != "" {
		t.Errorf("the worlds differ:\n%s", diff)
	}
	if got := accessLog(t, dir, "ssh "); len(got) != 3*4*6 {
		t.Errorf("%d lines of ssh, want %d", len(got), 3*4*6)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".macfleet*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left in the folder above the world: %q %v", left, err)
	}
}
