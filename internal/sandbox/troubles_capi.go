package sandbox

import (
	"context"
	"errors"

	"github.com/macfleet/macfleet/internal/sandbox/kube"
)

const (
	ownedName   = "owned-by-cluster-api"
	unboundName = "machine-not-bound"

	capiCluster = "macfleet-sandbox-macs"
)

// capiTroubles are the incidents of the Cluster API. They add its kinds to the cluster.
func capiTroubles() []trouble {
	return []trouble{
		{
			Incident: Incident{ownedName, "the host is a Machine of the Cluster API that is not paused, so its controller configures the host too"},
			remember: nothing, cause: plantMachine, lasts: works, cure: dropMachine,
		},
		{
			Incident: Incident{unboundName, "the host's Machine of the Cluster API is bound to no Node"},
			remember: needNode, cause: plantMachine, lasts: unbound, cure: dropMachine,
		},
	}
}

// machineOf returns the Machine that an incident creates for the host, the provider's part of it, and
// the Cluster of all of them.
func (v *victim) machineOf() (machine, part, cluster kube.Object) {
	name := v.own("macfleet-sandbox-" + v.record.Incident)
	return kube.Object{Resource: "machines", Namespace: podNamespace, Name: name},
		kube.Object{Resource: "scalewayapplesiliconmachines", Namespace: podNamespace, Name: name},
		kube.Object{Resource: "clusters", Namespace: podNamespace, Name: capiCluster}
}

// plantMachine creates them in the state in which controllers reconcile them: none is paused, and the
// Machine has no Node yet.
func plantMachine(_ context.Context, v *victim) error {
	machine, part, cluster := v.machineOf()
	id := "scw-applesilicon://" + v.server.Zone + "/" + v.server.ID
	ref := map[string]any{"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "ScalewayAppleSiliconMachine", "name": part.Name}
	for o, spec := range map[kube.Object]map[string]any{
		cluster: {},
		machine: {"clusterName": cluster.Name, "providerID": id, "infrastructureRef": ref},
		part:    {"providerID": id, "type": v.server.Type, "zone": v.server.Zone},
	} {
		if err := v.world.kube.Edit(o, func(map[string]any) map[string]any { return map[string]any{"spec": spec} }); err != nil {
			return err
		}
	}
	return nil
}

// works reports whether the provider's controller reconciles its part of the Machine: it respects a
// pause of that or of the Cluster, not of the Machine.
func works(_ context.Context, v *victim) (bool, error) {
	machine, part, cluster := v.machineOf()
	var all [3]map[string]any
	var failed [3]error
	for i, o := range []kube.Object{machine, part, cluster} {
		all[i], failed[i] = v.world.kube.Read(o)
	}
	if err := errors.Join(failed[:]...); err != nil || all[0] == nil || all[1] == nil {
		return false, err
	}
	metadata, _ := all[1]["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	_, paused := annotations["cluster.x-k8s.io/paused"]
	spec, _ := all[2]["spec"].(map[string]any)
	return !paused && spec["paused"] != true, nil
}

func unbound(_ context.Context, v *victim) (bool, error) {
	machine, _, _ := v.machineOf()
	content, err := v.world.kube.Read(machine)
	status, _ := content["status"].(map[string]any)
	return content != nil && status["nodeRef"] == nil, err
}

// dropMachine keeps the Cluster: other hosts may have Machines in it.
func dropMachine(_ context.Context, v *victim) error {
	machine, part, _ := v.machineOf()
	gone := func(map[string]any) map[string]any { return nil }
	return errors.Join(v.world.kube.Edit(machine, gone), v.world.kube.Edit(part, gone))
}
