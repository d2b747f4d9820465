package kubernetes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// familiar are the names, or how they start or end, under which macfleet, kubelets, Kubernetes' own controllers and
// people write to Nodes. "before-first-apply" is the server's name for all writers before the record started.
var familiar = struct{ names, prefixes, suffixes []string }{
	names:    []string{manager, "kubelet", "kube-controller-manager", "kube-apiserver", "kube-scheduler", "before-first-apply", "k9s", "Mozilla"},
	prefixes: []string{"kubectl", "tart-kubelet"},
	suffixes: []string{"cloud-controller-manager"},
}

// pauses say how to keep a known controller off one Node: an annotation that it respects.
var pauses = map[string]string{
	"cluster-autoscaler": "cluster-autoscaler.kubernetes.io/scale-down-disabled",
	"karpenter":          "karpenter.sh/do-not-disrupt",
}

// isFamiliar reports whether a writer is one of these.
func isFamiliar(name string) bool {
	return slices.Contains(familiar.names, name) ||
		slices.ContainsFunc(familiar.prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) ||
		slices.ContainsFunc(familiar.suffixes, func(s string) bool { return strings.HasSuffix(name, s) })
}

// writersOf returns the controllers that write what macfleet relies on: who gets Pods, and macfleet's own labels and
// annotations. Without the server's record of managers, which a proxy may remove, there are none. The status is
// left out: a program that reports conditions controls nothing.
func (c *Client) writersOf(n *corev1.Node) []inventory.Writer {
	var out []inventory.Writer
	for i, m := range n.ManagedFields {
		pause, known := pauses[m.Manager]
		if m.FieldsV1 == nil || isFamiliar(m.Manager) || known && n.Annotations[pause] == "true" {
			continue
		}
		w := inventory.Writer{Name: m.Manager, Fields: c.reliedOn(m.FieldsV1.GetRawBytes()), Pause: fmt.Sprintf("kubectl annotate node %s %s=true", n.Name, pause)}
		if !known {
			w.Pause = fmt.Sprintf(`stop %s or exclude this Node from it; then remove its record: kubectl patch node %s --type=json -p `+
				`'[{"op":"test","path":"/metadata/managedFields/%d/manager","value":%q},{"op":"remove","path":"/metadata/managedFields/%[3]d"}]'`, m.Manager, n.Name, i, m.Manager)
		}
		if len(w.Fields) > 0 {
			out = append(out, w)
		}
	}
	return out
}

// reliedOn returns those of the fields in an entry of the record that macfleet relies on.
func (c *Client) reliedOn(entry []byte) []string {
	var owned struct {
		Spec     map[string]json.RawMessage `json:"f:spec"`
		Metadata struct {
			Labels      map[string]json.RawMessage `json:"f:labels"`
			Annotations map[string]json.RawMessage `json:"f:annotations"`
		} `json:"f:metadata"`
	}
	if err := json.Unmarshal(entry, &owned); err != nil {
		return nil // an unknown form of the record names no fields
	}
	var out []string
	for _, field := range []string{"taints", "unschedulable"} {
		if _, is := owned.Spec["f:"+field]; is {
			out = append(out, "spec."+field)
		}
	}
	for kind, keys := range map[string]map[string]json.RawMessage{"label": owned.Metadata.Labels, "annotation": owned.Metadata.Annotations} {
		for key := range keys {
			if key = strings.TrimPrefix(key, "f:"); strings.HasPrefix(key, c.label("")) || key == inventory.AgentLabel {
				out = append(out, kind+" "+key)
			}
		}
	}
	slices.Sort(out)
	return out
}
