package kubernetes

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/macfleet/macfleet/fleet/inventory"
)

//go:embed policy.yaml
var policyText string

// policy binds each agent to its own Node, Lease and Pods, where the server serves such
// policies: Kubernetes does since 1.30. It has the owner's name, as several
// configurations may have agents in one namespace, each with its own annotations.
func (c *Client) policy() []desired {
	meta := metav1.ObjectMeta{Name: c.agentBindingName(), Labels: c.agentMarks()}
	var spec admissionv1.ValidatingAdmissionPolicySpec
	text := strings.NewReplacer("AGENTS", c.options.AgentNamespace, "PREFIX", c.options.LabelPrefix).Replace(policyText)
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		panic(fmt.Sprintf("the embedded policy.yaml cannot be read: %v", err)) // it is a file of this package
	}
	return []desired{
		c.desired(&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: spec}),
		c.desired(&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: meta.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}),
	}
}

// ServesPolicies reports whether what Prepare read binds each agent to its own host: a
// server before Kubernetes 1.30 serves no such policies.
func (c *Client) ServesPolicies(all []inventory.Object) bool {
	return slices.ContainsFunc(all, func(o inventory.Object) bool {
		return o.Kind == "ValidatingAdmissionPolicy" && o.State != inventory.ObjectUnserved
	})
}
