package sandbox

import (
	"context"
	"fmt"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/kube"
)

// vmFinalizer is the finalizer of tart-kubelet on the Pods that it runs.
const vmFinalizer = "tart-kubelet.tuist.dev/vm-cleanup"

func podObject(name string) kube.Object {
	return kube.Object{Resource: "pods", Namespace: podNamespace, Name: name}
}

// own returns the name of an incident's Pod on this host: several hosts may have the incident.
func (v *victim) own(name string) string { return name + "-" + v.server.ID[:8] }

func stuckNames() []string {
	names := make([]string, StuckPods)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%02d", stuckPod, i)
	}
	return names
}

// strandPods leaves Pods as a kubelet did that read a Pod's phase before its deletion: terminated,
// deleted long ago, and kept by the kubelet's finalizer.
func strandPods(_ context.Context, v *victim) error {
	if err := v.world.kube.PassOver(v.server.ID, true); err != nil {
		return err
	}
	due := time.Now().UTC().Add(-2 * time.Hour).Format(time.RFC3339)
	for _, name := range stuckNames() {
		if err := v.world.kube.PutPod(v.record.Settings["node"], podNamespace, v.own(name)); err != nil {
			return err
		}
		err := v.world.kube.Edit(podObject(v.own(name)), func(content map[string]any) map[string]any {
			metadata, _ := content["metadata"].(map[string]any)
			metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"] = due, int64(0)
			metadata["finalizers"] = []any{vmFinalizer}
			content["status"] = map[string]any{"phase": "Succeeded", "reason": "TartRunExited"}
			return content
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func strandedPods() []string {
	return []string{"macfleet-sandbox-stranded-00", "macfleet-sandbox-stranded-01"}
}

// goneSuffix is the end of a host name that no server of a world has.
const goneSuffix = "fade0"

// leavePods leaves Pods on the missing Node of a removed host. One of them was still running.
func leavePods(_ context.Context, v *victim) error {
	own := v.record.Settings["node"]
	node := own[:max(0, len(own)-len(goneSuffix))] + goneSuffix
	due := time.Now().UTC().Add(-2 * time.Hour).Format(time.RFC3339)
	for i, name := range strandedPods() {
		if err := v.world.kube.PutPod(node, podNamespace, v.own(name)); err != nil {
			return err
		}
		err := v.world.kube.Edit(podObject(v.own(name)), func(content map[string]any) map[string]any {
			metadata, _ := content["metadata"].(map[string]any)
			metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"] = due, int64(30)
			metadata["finalizers"] = []any{vmFinalizer}
			content["status"] = map[string]any{"phase": []string{"Running", "Succeeded"}[i]}
			return content
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func freePods(ctx context.Context, v *victim) error {
	if err := ignoreNoNode(v.world.kube.PassOver(v.server.ID, false)); err != nil {
		return err
	}
	return dropPods(stuckNames()...)(ctx, v)
}

func podsThere(names ...string) func(context.Context, *victim) (bool, error) {
	return func(_ context.Context, v *victim) (bool, error) {
		for _, name := range names {
			if content, err := v.world.kube.Read(podObject(v.own(name))); err != nil || content != nil {
				return content != nil, err
			}
		}
		return false, nil
	}
}

func dropPods(names ...string) func(context.Context, *victim) error {
	return func(_ context.Context, v *victim) error {
		for _, name := range names {
			if err := v.world.kube.Edit(podObject(v.own(name)), func(map[string]any) map[string]any { return nil }); err != nil {
				return err
			}
		}
		return nil
	}
}

func bindStranger(_ context.Context, v *victim) error {
	return v.world.kube.PutPod(v.record.Settings["node"], podNamespace, v.own(strangerPod))
}

func failVMs(_ context.Context, v *victim) error {
	if err := v.world.kube.FailVMs(v.server.ID, noSession); err != nil {
		return err
	}
	return v.world.kube.PutPod(v.record.Settings["node"], podNamespace, v.own(pendingPod))
}

func vmsFail(_ context.Context, v *victim) (bool, error) {
	fail, err := v.world.kube.FailsVMs(v.server.ID)
	return fail, ignoreNoNode(err)
}

func startVMs(ctx context.Context, v *victim) error {
	if err := ignoreNoNode(v.world.kube.FailVMs(v.server.ID, "")); err != nil {
		return err
	}
	return dropPods(pendingPod)(ctx, v)
}
