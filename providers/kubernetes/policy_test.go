package kubernetes_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kube "k8s.io/client-go/kubernetes"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// bound is a cluster with a policy, an agent of host A, and Nodes, Pods and Leases of A and B.
type bound struct {
	*cluster
	agent kube.Interface
	a, b  string // hosts
}

func (b bound) node(t *testing.T, name, patch string, sub ...string) error {
	_, err := b.agent.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, sub...)
	return err
}

func (b bound) pod(t *testing.T, name, patch string, sub ...string) error {
	_, err := b.agent.CoreV1().Pods(ns(t)).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, sub...)
	return err
}

func (b bound) lease(t *testing.T, name string) error {
	leases := b.agent.CoordinationV1().Leases("kube-node-lease")
	have, err := leases.Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	if err == nil {
		have.Spec.HolderIdentity = &name
		_, err = leases.Update(t.Context(), have, metav1.UpdateOptions{})
	}
	return err
}

// byPolicy wants the policy to refuse: a right that is missing is refused in other words.
func byPolicy(err error) error {
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
		return nil
	}
	return errors.Join(errors.New("it is not the policy that answers"), err)
}

// withPolicy registers two hosts as their agents do, and waits until the policy is followed.
func withPolicy(t *testing.T) bound {
	t.Helper()
	c := realCluster(t)
	o := c.options(t)
	o.PodNamespaces = []string{"default", ns(t)}
	client := c.client(t, o)
	prepare(t, client)
	c.control(t)
	kept(t, client)
	out := bound{cluster: c, a: name(t, "a"), b: name(t, "b")}
	out.agent = c.as(t, identified(t, client, out.a))
	for _, host := range []string{out.a, out.b} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: host, Labels: map[string]string{"kubernetes.io/os": "darwin"},
			Annotations: map[string]string{"acme.dev/host-key": "SHA256:x", "tuist.dev/runner-egress-public-key": "k"}},
			Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "tuist.dev/macos", Value: "true", Effect: "NoSchedule"}}}}
		must(t, errOf(c.admin.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{})))
		c.addPod(t, host, "of-"+host, func(p *corev1.Pod) { p.Labels = map[string]string{"app": "ci"} })
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: host}}
		must(t, errOf(c.admin.CoordinationV1().Leases("kube-node-lease").Create(t.Context(), lease, metav1.CreateOptions{})))
	}
	eventually(t, "the policy is followed", func() error { return byPolicy(out.node(t, out.b, `{"metadata":{"labels":{"a":"b"}}}`)) })
	return out
}

// TestAgentsAreBound tries with the token of one host's agent what would affect others, and
// what its own work asks of the cluster, against the real server.
func TestAgentsAreBound(t *testing.T) {
	t.Parallel()
	b := withPolicy(t)
	ofA, ofB := "of-"+b.a, "of-"+b.b
	_, create := b.agent.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name(t, "c")}}, metav1.CreateOptions{})
	_, generated := b.agent.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: b.a}}, metav1.CreateOptions{})
	refusals := map[string]error{
		"a label of another Node":            b.node(t, b.b, `{"metadata":{"labels":{"x":"y"}}}`),
		"a taint of another Node":            b.node(t, b.b, `{"spec":{"taints":[]}}`),
		"the status of another Node":         b.node(t, b.b, `{"status":{"phase":"Running"}}`, "status"),
		"another Node":                       create,
		"a Node with a name that is made up": generated,
		"the host key on its Node":           b.node(t, b.a, `{"metadata":{"annotations":{"acme.dev/host-key":"SHA256:y"}}}`),
		"no host key on its Node":            b.node(t, b.a, `{"metadata":{"annotations":{"acme.dev/host-key":null}}}`),
		"the host key, by the status":        b.node(t, b.a, `{"metadata":{"annotations":{"acme.dev/host-key":"SHA256:y"}}}`, "status"),
		"a new annotation of macfleet's":     b.node(t, b.a, `{"metadata":{"annotations":{"acme.dev/hold":"{}"}}}`),
		"no annotations":                     b.node(t, b.a, `{"metadata":{"annotations":null}}`),
		"a label that is kept from agents":   b.node(t, b.a, `{"metadata":{"labels":{"node-restriction.kubernetes.io/team":"x"}}}`),
		"no taint on its Node":               b.node(t, b.a, `{"spec":{"taints":null}}`),
		"another taint on its Node":          b.node(t, b.a, `{"spec":{"taints":[{"key":"tuist.dev/macos","value":"true","effect":"PreferNoSchedule"}]}}`),
		"the image of its Pod":               b.pod(t, ofA, `{"spec":{"containers":[{"name":"vm","image":"evil:1"}]}}`),
		"the deadline of its Pod":            b.pod(t, ofA, `{"spec":{"activeDeadlineSeconds":1}}`),
		"a label of its Pod":                 b.pod(t, ofA, `{"metadata":{"labels":{"app":"web"}}}`),
		"an owner of its Pod":                b.pod(t, ofA, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"u"}]}}`),
		"the image of another's Pod":         b.pod(t, ofB, `{"spec":{"containers":[{"name":"vm","image":"evil:1"}]}}`),
		"an annotation of another's Pod":     b.pod(t, ofB, `{"metadata":{"annotations":{"x":"y"}}}`),
		"the status of another's Pod":        b.pod(t, ofB, `{"status":{"phase":"Failed"}}`, "status"),
		"another's Pod":                      b.agent.CoreV1().Pods(ns(t)).Delete(t.Context(), ofB, metav1.DeleteOptions{}),
		"another's Lease":                    b.lease(t, b.b),
		"a Lease of a host that has none":    b.lease(t, name(t, "c")),
	}
	for _, what := range slices.Sorted(maps.Keys(refusals)) {
		if err := byPolicy(refusals[what]); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, own := range []struct {
		what string
		err  error
	}{
		{"the heartbeat", b.node(t, b.a, `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, "status")},
		{"labels of its flags", b.node(t, b.a, `{"metadata":{"labels":{"acme.dev/fleet":"runners","tuist.dev/golden-0":"true"}}}`)},
		{"the place of its server", b.node(t, b.a, `{"metadata":{"labels":{"topology.kubernetes.io/zone":"fr-par-1","topology.kubernetes.io/region":"fr-par","node.kubernetes.io/instance-type":"M2-L"}}}`)},
		{"fewer labels", b.node(t, b.a, `{"metadata":{"labels":{"tuist.dev/golden-0":null}}}`)},
		{"its annotations", b.node(t, b.a, `{"metadata":{"annotations":{"tuist.dev/runner-egress-public-key":null}}}`)},
		{"one more taint", b.node(t, b.a, `{"spec":{"taints":[{"key":"node.kubernetes.io/not-ready","effect":"NoSchedule"},`+
			`{"key":"tuist.dev/macos","value":"true","effect":"NoSchedule"},{"key":"b","effect":"NoSchedule"}]}}`)},
		{"the provider id", b.node(t, b.a, `{"spec":{"providerID":"scw-applesilicon://fr-par-1/id-1"}}`)},
		{"its Lease", b.lease(t, b.a)},
		{"the status of its Pod", b.pod(t, ofA, `{"status":{"phase":"Running"}}`, "status")},
		{"the finalizer of its Pod", b.pod(t, ofA, `{"metadata":{"finalizers":["tart-kubelet.tuist.dev/vm-cleanup"],"annotations":{"tuist.dev/vnc-session-id":"1"}}}`)},
		{"no finalizer", b.pod(t, ofA, `{"metadata":{"finalizers":null}}`)},
		{"the end of its Pod", b.agent.CoreV1().Pods(ns(t)).Delete(t.Context(), ofA, *metav1.NewDeleteOptions(0))},
	} {
		if own.err != nil {
			t.Errorf("%s: %v", own.what, own.err)
		}
	}
}

// TestAgentRegisters: a Node that someone deleted comes back as its agent makes it, and
// without macfleet's labels. A cordon is not the agent's to lift.
func TestAgentRegisters(t *testing.T) {
	t.Parallel()
	b := withPolicy(t)
	nodes := b.admin.CoreV1().Nodes()
	b.patchNode(t, b.a, `{"spec":{"unschedulable":true},"metadata":{"annotations":{"acme.dev/cordoned-by":"ann"}}}`)
	if err := byPolicy(b.node(t, b.a, `{"spec":{"unschedulable":null}}`)); err != nil {
		t.Errorf("the cordon: %v", err)
	}
	if err := b.node(t, b.a, `{"metadata":{"labels":{"x":"y"}},"status":{"phase":"Running"}}`); err != nil {
		t.Errorf("a cordoned Node's label: %v", err)
	}
	must(t, nodes.Delete(t.Context(), b.a, metav1.DeleteOptions{}))
	create := func(notes map[string]string) error {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: b.a, Annotations: notes, Labels: map[string]string{"acme.dev/fleet": "runners"}},
			Spec: corev1.NodeSpec{ProviderID: "scw-applesilicon://fr-par-1/id-1", Taints: []corev1.Taint{{Key: "tuist.dev/macos", Effect: "NoSchedule"}}}}
		_, err := b.agent.CoreV1().Nodes().Create(context.WithoutCancel(t.Context()), n, metav1.CreateOptions{})
		return err
	}
	if err := byPolicy(create(map[string]string{"acme.dev/host-key": "SHA256:y"})); err != nil {
		t.Errorf("with a host key: %v", err)
	}
	if err := create(nil); err != nil {
		t.Errorf("as its agent makes it: %v", err)
	}
	// No expression fails of a Node without labels and annotations.
	if err := b.node(t, b.a, `{"metadata":{"labels":null,"annotations":null}}`); err != nil {
		t.Errorf("without labels: %v", err)
	}
}

// TestPolicyLost: that the agents are no longer bound is seen, whether the policy was deleted or
// the server does not serve its kind any more. init cluster makes it, or takes note.
func TestPolicyLost(t *testing.T) {
	t.Parallel()
	for how, state := range map[string]inventory.ObjectState{"deleted": inventory.ObjectMissing, "not served": inventory.ObjectUnserved} {
		c := sandboxCluster(t)
		client := c.client(t, c.options(t))
		prepare := func() []inventory.Object {
			t.Helper()
			prepare(t, client)
			return objects(t, client)
		}
		before := prepare()
		for _, kind := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"} {
			dir := filepath.Join(c.dir, kind)
			files, err := filepath.Glob(filepath.Join(dir, "*.json"))
			if err != nil || len(files) != 1 {
				t.Fatalf("%s: %v, %v", kind, files, err)
			}
			if how == "not served" {
				err = os.RemoveAll(dir)
			} else {
				err = os.Remove(files[0])
			}
			must(t, err)
		}
		lost := slices.DeleteFunc(objects(t, client), func(o inventory.Object) bool { return o.State == inventory.ObjectKept })
		for _, o := range lost {
			if o.State != state || o.Made != inventory.MadeAsWanted || !o.Prepared || !strings.HasPrefix(o.Kind, "ValidatingAdmissionPolicy") {
				t.Errorf("%s: %+v", how, o)
			}
		}
		if len(lost) != 2 || client.ServesPolicies(lost) != (how == "deleted") {
			t.Errorf("%s: lost %v, bound %t", how, lost, client.ServesPolicies(lost))
		}
		after := prepare()
		if left := wrong(after); len(left) != 0 || client.ServesPolicies(after) != (how == "deleted") || how == "not served" && len(after) != len(before)-2 {
			t.Errorf("%s, prepared again: left %v of %d", how, left, len(after))
		}
	}
}
