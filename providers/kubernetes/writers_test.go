package kubernetes

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// TestWritersOf keeps only controllers that write what macfleet relies on, with how to pause each.
func TestWritersOf(t *testing.T) {
	t.Parallel()
	const taints = `{"f:spec":{"f:taints":{}}}`
	c := &Client{options: Options{LabelPrefix: "acme.dev"}}
	for _, test := range []struct {
		name, manager, fields, paused string
		want                          []inventory.Writer
	}{
		{name: "no record", want: nil},
		{name: "macfleet", manager: "macfleet", fields: taints},
		{name: "a kubelet", manager: "tart-kubelet", fields: taints},
		{name: "a person", manager: "kubectl-taint", fields: taints},
		{name: "a cloud", manager: "scaleway-cloud-controller-manager", fields: taints},
		{name: "the status", manager: "node-problem-detector", fields: `{"f:status":{"f:conditions":{}}}`},
		{name: "other labels", manager: "nfd-master", fields: `{"f:metadata":{"f:labels":{"f:feature.acme.org/cpu":{}}}}`},
		{name: "an unknown form", manager: "acme-operator", fields: `[]`},
		{name: "autoscaler", manager: "cluster-autoscaler", fields: taints, want: []inventory.Writer{{Name: "cluster-autoscaler", Fields: []string{"spec.taints"},
			Pause: "kubectl annotate node mini-1 cluster-autoscaler.kubernetes.io/scale-down-disabled=true"}}},
		{name: "paused autoscaler", manager: "cluster-autoscaler", fields: taints, paused: "cluster-autoscaler.kubernetes.io/scale-down-disabled"},
		{name: "an operator", manager: "acme-operator", fields: `{"f:metadata":{"f:annotations":{"f:acme.dev/hold":{}},"f:labels":{"f:acme.dev/fleet":{}}},"f:spec":{"f:unschedulable":{}}}`,
			want: []inventory.Writer{{Name: "acme-operator", Fields: []string{"annotation acme.dev/hold", "label acme.dev/fleet", "spec.unschedulable"},
				Pause: `stop acme-operator or exclude this Node from it; then remove its record: kubectl patch node mini-1 --type=json -p ` +
					`'[{"op":"test","path":"/metadata/managedFields/1/manager","value":"acme-operator"},{"op":"remove","path":"/metadata/managedFields/1"}]'`}}},
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "mini-1", Annotations: map[string]string{test.paused: "true"}}}
		if test.manager != "" {
			n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"},
				{Manager: test.manager, FieldsV1: metav1.NewFieldsV1(test.fields)}}
		}
		if diff := cmp.Diff(test.want, c.writersOf(n)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
