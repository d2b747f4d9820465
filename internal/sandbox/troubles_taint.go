package sandbox

import (
	"context"
	"slices"
)

// The taints of the incidents: one of a person, and one of a kubelet.
const (
	strangerTaint = "acme.dev/maintenance"
	agentTaint    = "tuist.dev/macos"
)

// editSpec changes the spec of the host's Node; it ignores a missing Node.
func (v *victim) editSpec(change func(spec map[string]any)) error {
	return v.world.kube.Edit(v.node(), func(content map[string]any) map[string]any {
		if content == nil {
			return nil
		}
		spec, _ := content["spec"].(map[string]any)
		if spec == nil {
			spec = map[string]any{}
		}
		change(spec)
		content["spec"] = spec
		return content
	})
}

func cordonNode(_ context.Context, v *victim) error {
	return v.editSpec(func(spec map[string]any) { spec["unschedulable"] = true })
}

func uncordonNode(_ context.Context, v *victim) error {
	return v.editSpec(func(spec map[string]any) { delete(spec, "unschedulable") })
}

func nodeCordoned(_ context.Context, v *victim) (bool, error) {
	content, err := v.world.kube.Read(v.node())
	spec, _ := content["spec"].(map[string]any)
	return spec["unschedulable"] == true, err
}

func taintsWithout(spec map[string]any, key string) []any {
	taints, _ := spec["taints"].([]any)
	return slices.DeleteFunc(slices.Clone(taints), func(one any) bool {
		t, _ := one.(map[string]any)
		return t["key"] == key
	})
}

func addTaint(key string) func(context.Context, *victim) error {
	return func(_ context.Context, v *victim) error {
		return v.editSpec(func(spec map[string]any) {
			spec["taints"] = append(taintsWithout(spec, key), map[string]any{"key": key, "value": "true", "effect": "NoSchedule"})
		})
	}
}

// loseTaint removes the kubelet's taint, and makes the kubelet a build that does not set it again.
func loseTaint(ctx context.Context, v *victim) error {
	if err := v.world.kube.Bare(v.server.ID, true); err != nil {
		return err
	}
	return dropTaint(agentTaint)(ctx, v)
}

// regainTaint lets the kubelet keep its taint.
func regainTaint(ctx context.Context, v *victim) error {
	if err := ignoreNoNode(v.world.kube.Bare(v.server.ID, false)); err != nil {
		return err
	}
	return addTaint(agentTaint)(ctx, v)
}

func dropTaint(key string) func(context.Context, *victim) error {
	return func(_ context.Context, v *victim) error {
		return v.editSpec(func(spec map[string]any) { spec["taints"] = taintsWithout(spec, key) })
	}
}

func hasTaint(key string) func(context.Context, *victim) (bool, error) {
	return func(_ context.Context, v *victim) (bool, error) {
		content, err := v.world.kube.Read(v.node())
		spec, _ := content["spec"].(map[string]any)
		taints, _ := spec["taints"].([]any)
		return len(taintsWithout(spec, key)) < len(taints), err
	}
}

func lacksTaint(key string) func(context.Context, *victim) (bool, error) {
	return func(ctx context.Context, v *victim) (bool, error) {
		content, err := v.world.kube.Read(v.node())
		if content == nil || err != nil {
			return false, err
		}
		has, err := hasTaint(key)(ctx, v)
		return !has, err
	}
}

// pressDisk sets the Node's disk condition.
func pressDisk(status string) func(context.Context, *victim) error {
	return func(_ context.Context, v *victim) error {
		return v.world.kube.Edit(v.node(), func(content map[string]any) map[string]any {
			nodeStatus, _ := content["status"].(map[string]any)
			conditions, _ := nodeStatus["conditions"].([]any)
			conditions = slices.DeleteFunc(slices.Clone(conditions), isDiskPressure)
			if nodeStatus != nil {
				nodeStatus["conditions"] = append(conditions, map[string]any{"type": "DiskPressure", "status": status,
					"reason": "TartKubeletHasDiskPressure", "message": "9 % of the host's disk are free", "lastTransitionTime": "2026-03-02T11:42:00Z"})
			}
			return content
		})
	}
}

func isDiskPressure(one any) bool {
	c, _ := one.(map[string]any)
	return c["type"] == "DiskPressure"
}

func diskPressed(_ context.Context, v *victim) (bool, error) {
	content, err := v.world.kube.Read(v.node())
	nodeStatus, _ := content["status"].(map[string]any)
	conditions, _ := nodeStatus["conditions"].([]any)
	return slices.ContainsFunc(conditions, func(one any) bool {
		c, _ := one.(map[string]any)
		return isDiskPressure(one) && c["status"] == "True"
	}), err
}
