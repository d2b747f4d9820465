package kube_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// clock is the cluster's time, set by a test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 5, 4, 10, 0, 7, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// fleet is a cluster with Macs whose kubelets have a role.
type fleet struct {
	*cluster
	clock    *clock
	admin    kubernetes.Interface
	kubelets map[string][]agent.Kubelet
}

func newFleet(t testing.TB) *fleet {
	t.Helper()
	clock := newClock()
	c := newClusterAt(t, clock.Now)
	f := &fleet{cluster: c, clock: clock, admin: c.client(t, token), kubelets: map[string][]agent.Kubelet{}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "agents"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes", "nodes/status", "pods", "pods/status"}, Verbs: []string{"*"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}},
	}}
	if _, err := f.admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return f
}

// identity creates a ServiceAccount, its Secret and its binding, and returns the token.
func (f *fleet) identity(t testing.TB, name, role string) string {
	t.Helper()
	core := f.admin.CoreV1()
	if _, err := core.ServiceAccounts("macfleet").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{Type: corev1.SecretTypeServiceAccountToken, ObjectMeta: metav1.ObjectMeta{
		Name: name + "-token", Annotations: map[string]string{corev1.ServiceAccountNameKey: name},
	}}
	if _, err := core.Secrets("macfleet").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.bind(t, name, role)
	made, err := core.Secrets("macfleet").Get(t.Context(), name+"-token", metav1.GetOptions{})
	if err != nil || len(made.Data["token"]) == 0 {
		t.Fatalf("no token: %v %v", made, err)
	}
	return string(made.Data["token"])
}

func (f *fleet) bind(t testing.TB, name, role string) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "macfleet", Name: name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: role},
	}
	if _, err := f.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// start runs a kubelet on a Mac, and replaces the previous one.
func (f *fleet) start(t testing.TB, node string, change func(*agent.Kubelet)) {
	t.Helper()
	server := "server-" + node
	k := agent.Kubelet{
		ServerID: server, Job: "dev.macfleet.tart-kubelet", PID: 100 + len(f.kubelets[server]), Started: f.clock.Now(),
		Node: node, ProviderID: "scw-applesilicon://fr-par-1/" + node, Labels: map[string]string{"acme.dev/fleet": "runners"},
		Address: "198.51.100.7", CPU: 8, MemoryMB: 14336, MaxPods: 3, GC: true, Version: "0.4.0",
	}
	if running := f.kubelets[server]; len(running) > 0 {
		k.Token = running[len(running)-1].Token
		f.stop(t, node)
	}
	if change != nil {
		change(&k)
	}
	f.kubelets[server] = append(f.kubelets[server], k)
	f.publish(t)
}

func (f *fleet) stop(t testing.TB, node string) {
	t.Helper()
	for i := range f.kubelets["server-"+node] {
		if k := &f.kubelets["server-"+node][i]; k.Runs() {
			k.Ended = f.clock.Now()
		}
	}
	f.publish(t)
}

func (f *fleet) publish(t testing.TB) {
	t.Helper()
	must(t, store.WriteJSON(filepath.Join(f.dir, "agents.json"), f.kubelets))
}

func (f *fleet) node(t testing.TB, name string) *corev1.Node {
	t.Helper()
	node, err := f.admin.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	return node
}

func (f *fleet) lease(t testing.TB, name string) *coordinationv1.Lease {
	t.Helper()
	lease, err := f.admin.CoordinationV1().Leases("kube-node-lease").Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	return lease
}

func ready(node *corev1.Node) corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{}
}

// joined returns a fleet of one Node.
func joined(t testing.TB) *fleet {
	t.Helper()
	f := newFleet(t)
	secret := f.identity(t, "tart-kubelet-acme-01", "agents")
	f.start(t, "acme-01", func(k *agent.Kubelet) { k.Token = secret })
	return f
}

func TestKubeletRegisters(t *testing.T) {
	t.Parallel()
	f := joined(t)
	node := f.node(t, "acme-01")
	want := map[string]string{"acme.dev/fleet": "runners", "kubernetes.io/os": "darwin", "kubernetes.io/arch": "arm64", "kubernetes.io/hostname": "acme-01", "tuist.dev/runtime": "tart"}
	if !maps.Equal(node.Labels, want) || node.Spec.ProviderID != "scw-applesilicon://fr-par-1/acme-01" || len(node.Spec.Taints) != 1 || node.Spec.Taints[0].ToString() != "tuist.dev/macos=true:NoSchedule" {
		t.Errorf("labels %v, id %q, taints %v", node.Labels, node.Spec.ProviderID, node.Spec.Taints)
	}
	info := node.Status.NodeInfo
	if got := fmt.Sprint(node.Status.Capacity.Cpu(), node.Status.Capacity.Memory(), node.Status.Capacity.Pods(), info.KubeletVersion, info.OperatingSystem, info.Architecture, info.ContainerRuntimeVersion); got != "8 14Gi 3tart-kubelet-v0darwinarm64tart" {
		t.Errorf("status %s", got)
	}
	if c := ready(node); c.Status != "True" || c.Reason != "TartKubeletReady" || !c.LastHeartbeatTime.Time.Equal(time.Date(2026, 5, 4, 10, 0, 7, 0, time.UTC)) {
		t.Errorf("ready %+v", c)
	}
	f.clock.pass(5 * time.Minute)
	if c := ready(f.node(t, "acme-01")); !c.LastHeartbeatTime.Time.Equal(time.Date(2026, 5, 4, 10, 5, 7, 0, time.UTC)) {
		t.Errorf("heartbeat %v", c.LastHeartbeatTime)
	}
	if again := f.node(t, "acme-01"); again.ResourceVersion != node.ResourceVersion {
		t.Error("a heartbeat was written")
	}
	lease := f.lease(t, "acme-01")
	if renewed := lease.Spec.RenewTime.Time; !renewed.Equal(time.Date(2026, 5, 4, 10, 5, 7, 0, time.UTC)) || *lease.Spec.LeaseDurationSeconds != 40 || *lease.Spec.HolderIdentity != "acme-01" {
		t.Errorf("lease %+v", lease.Spec)
	}
}

func TestSilentKubelet(t *testing.T) {
	t.Parallel()
	f := joined(t)
	f.node(t, "acme-01")
	f.clock.pass(time.Minute)
	f.stop(t, "acme-01")
	f.clock.pass(39 * time.Second)
	if c := ready(f.node(t, "acme-01")); c.Status != "True" {
		t.Errorf("within the grace period: %+v", c)
	}
	f.clock.pass(time.Second)
	node := f.node(t, "acme-01")
	if c := ready(node); c.Status != "Unknown" || c.Reason != "NodeStatusUnknown" || c.Message != "Kubelet stopped posting node status." {
		t.Errorf("after the grace period: %+v", c)
	}
	equal(t, len(node.Spec.Taints), 3, "taints", node.Spec.Taints)
	f.clock.pass(time.Hour)
	if renewed := f.lease(t, "acme-01").Spec.RenewTime.Time; !renewed.Equal(time.Date(2026, 5, 4, 10, 1, 7, 0, time.UTC)) {
		t.Errorf("the lease is still renewed: %v", renewed)
	}
	f.start(t, "acme-01", nil)
	if node := f.node(t, "acme-01"); ready(node).Status != "True" || len(node.Spec.Taints) != 1 {
		t.Errorf("after a restart: %+v %v", ready(node), node.Spec.Taints)
	}
}

// TestLeaseRightLost takes the right to renew its Lease from a kubelet: the last renewal stays, and its Node is Ready.
func TestLeaseRightLost(t *testing.T) {
	t.Parallel()
	f := joined(t)
	f.node(t, "acme-01")
	f.clock.pass(time.Hour)
	roles := f.admin.RbacV1().ClusterRoles()
	role, err := roles.Get(t.Context(), "agents", metav1.GetOptions{})
	must(t, err)
	all := role.Rules
	role.Rules = all[:1]
	if role, err = roles.Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.node(t, "acme-01")
	for range 2 {
		f.clock.pass(10 * time.Minute)
		if renewed := f.lease(t, "acme-01").Spec.RenewTime.Time; !renewed.Equal(time.Date(2026, 5, 4, 11, 0, 7, 0, time.UTC)) {
			t.Errorf("the last renewal is at %v", renewed)
		}
	}
	if c := ready(f.node(t, "acme-01")); c.Status != "True" {
		t.Errorf("its status still arrives: %+v", c)
	}
	role.Rules = all
	if _, err = roles.Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if renewed := f.lease(t, "acme-01").Spec.RenewTime.Time; !renewed.Equal(time.Date(2026, 5, 4, 11, 20, 7, 0, time.UTC)) {
		t.Errorf("with the right back: %v", renewed)
	}
}

func TestKubeletLabels(t *testing.T) {
	t.Parallel()
	f := joined(t)
	patch := []byte(`{"metadata":{"labels":{"acme.dev/extra":"x","other.dev/kept":"y","acme.dev/fleet":"z","tuist.dev/golden":"x","tuist.dev/runtime":"docker"}}}`)
	if _, err := f.admin.CoreV1().Nodes().Patch(t.Context(), "acme-01", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := f.node(t, "acme-01").Labels; got["acme.dev/fleet"] != "z" {
		t.Errorf("before a heartbeat: labels %v", got)
	}
	f.clock.pass(31 * time.Second)
	got := f.node(t, "acme-01").Labels
	if got["acme.dev/extra"] != "" || got["other.dev/kept"] != "y" || got["acme.dev/fleet"] != "runners" || got["tuist.dev/golden"] != "" || got["tuist.dev/runtime"] != "tart" {
		t.Errorf("labels %v", got)
	}
}

func TestProviderIDIsFilledAtTheStart(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	secret := f.identity(t, "tart-kubelet-acme-01", "agents")
	f.start(t, "acme-01", func(k *agent.Kubelet) { k.Token, k.ProviderID = secret, "" })
	equal(t, f.node(t, "acme-01").Spec.ProviderID, "", "without the flag")
	f.start(t, "acme-01", nil)
	equal(t, f.node(t, "acme-01").Spec.ProviderID, "scw-applesilicon://fr-par-1/acme-01", "with the flag")
	f.start(t, "acme-01", func(k *agent.Kubelet) { k.ProviderID = "scw-applesilicon://fr-par-1/other" })
	equal(t, f.node(t, "acme-01").Spec.ProviderID, "scw-applesilicon://fr-par-1/acme-01", "it was overwritten")
}

func TestRefusedToken(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start(t, "acme-02", func(k *agent.Kubelet) { k.Token = "stranger" })
	unbound := f.identity(t, "tart-kubelet-acme-03", "none")
	f.start(t, "acme-03", func(k *agent.Kubelet) { k.Token = unbound })
	if list, err := f.admin.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("nodes of kubelets without rights: %v %v", list, err)
	}
	secret := f.identity(t, "tart-kubelet-acme-01", "agents")
	f.start(t, "acme-01", func(k *agent.Kubelet) { k.Token = secret })
	f.node(t, "acme-01")
	bindings := f.admin.RbacV1().ClusterRoleBindings()
	must(t, bindings.Delete(t.Context(), "tart-kubelet-acme-01", metav1.DeleteOptions{}))
	f.clock.pass(time.Minute)
	if c := ready(f.node(t, "acme-01")); c.Status != "Unknown" {
		t.Errorf("a minute after its rights were removed: %+v", c)
	}
	f.bind(t, "tart-kubelet-acme-01", "agents")
	if c := ready(f.node(t, "acme-01")); c.Status != "True" {
		t.Errorf("after they were restored: %+v", c)
	}
}

func TestDeletedNode(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"at-restart", "at-heartbeat"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			f := joined(t)
			must(t, store.WriteJSON(filepath.Join(f.dir, "preferences.json"), map[string]string{"deleted_node_returns": when}))
			before := f.node(t, "acme-01")
			must(t, f.admin.CoreV1().Nodes().Delete(t.Context(), "acme-01", metav1.DeleteOptions{}))
			f.clock.pass(time.Minute)
			_, err := f.admin.CoreV1().Nodes().Get(t.Context(), "acme-01", metav1.GetOptions{})
			equal(t, err == nil, when == "at-heartbeat", "a minute later", err)
			f.start(t, "acme-01", nil)
			if after := f.node(t, "acme-01"); after.UID == before.UID || ready(after).Status != "True" {
				t.Errorf("after a restart: %v", after)
			}
		})
	}
}

func TestPodsOfAKubelet(t *testing.T) {
	t.Parallel()
	f := joined(t)
	pods := f.admin.CoreV1().Pods("default")
	create := func(name, node string) {
		t.Helper()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "vm", Image: "acme/macos"}}}}
		if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	get := func(name string) *corev1.Pod {
		t.Helper()
		pod, err := pods.Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		return pod
	}
	create("job", "acme-01")
	if pod := get("job"); pod.Status.Phase != "Running" || pod.Status.PodIP == "" || len(pod.Finalizers) != 1 || pod.Finalizers[0] != "tart-kubelet.tuist.dev/vm-cleanup" {
		t.Errorf("a Pod of a live kubelet: %+v %v", pod.Status, pod.Finalizers)
	}
	must(t, pods.Delete(t.Context(), "job", metav1.DeleteOptions{}))
	if _, err := pods.Get(t.Context(), "job", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a deleted Pod of a live kubelet: %v", err)
	}
	create("held", "acme-01")
	get("held")
	f.stop(t, "acme-01")
	must(t, pods.Delete(t.Context(), "held", metav1.DeleteOptions{}))
	f.clock.pass(time.Hour)
	pod := get("held")
	if pod.DeletionTimestamp == nil || *pod.DeletionGracePeriodSeconds != 30 || len(pod.Finalizers) != 1 {
		t.Errorf("a deleted Pod of a dead kubelet: %+v", pod.ObjectMeta)
	}
	f.start(t, "acme-01", func(k *agent.Kubelet) { k.NoVMs = "no session" })
	if _, err := pods.Get(t.Context(), "held", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the kubelet's restart: %v", err)
	}
	create("stuck", "acme-01")
	if pod := get("stuck"); pod.Status.Phase != "Pending" || pod.Status.Reason != "TartCreateFailed" || pod.Status.ContainerStatuses[0].State.Waiting.Reason != "TartCreateFailed" {
		t.Errorf("without a virtual machine: %+v", pod.Status)
	}
	found, err := f.api.Pods("acme-01")
	if err != nil || len(found) != 1 || found[0].Name != "stuck" {
		t.Errorf("the Mac's view: %v %v", found, err)
	}
}

// BenchmarkList500 lists 500 Nodes with running kubelets.
func BenchmarkList500(b *testing.B) {
	f := newFleet(b)
	for i := range 500 {
		name := fmt.Sprintf("acme-%03d", i)
		secret := f.identity(b, name, "agents")
		f.kubelets[name] = []agent.Kubelet{{ServerID: name, Job: "j", PID: 1, Started: f.clock.Now(), Node: name, ProviderID: name, Token: secret, Labels: map[string]string{"acme.dev/fleet": "x"}}}
	}
	f.publish(b)
	for b.Loop() {
		list, err := f.admin.CoreV1().Nodes().List(b.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 500 {
			b.Fatal(len(list.Items), err)
		}
		f.clock.pass(10 * time.Second)
	}
}
