package sandbox

import (
	"context"
	"errors"

	"github.com/macfleet/macfleet/internal/sandbox/kube"
)

const (
	heldPod    = "macfleet-sandbox-held"
	endlessPod = "macfleet-sandbox-endless"
)

// drainTroubles prevent a host's Node from being drained. They need a host with one.
func drainTroubles() []trouble {
	return []trouble{
		{
			Incident: Incident{"budget-blocks", "a disruption budget blocks every eviction on the host"},
			remember: needNode, cause: holdPod, lasts: podsThere(heldPod), cure: freeHeld,
		},
		{
			Incident: Incident{"pod-never-ends", "the host's kubelet never ends a deleted Pod"},
			remember: needNode, cause: neverEnd, lasts: neverEnds, cure: endAtLast,
		},
	}
}

// putOwned creates a Pod on the host's Node that a controller would replace.
func (v *victim) putOwned(pod string) error {
	if err := v.world.kube.PutPod(v.record.Settings["node"], podNamespace, v.own(pod)); err != nil {
		return err
	}
	return v.world.own(podNamespace, v.own(pod))
}

func (v *victim) budget() kube.Object {
	return kube.Object{Resource: "poddisruptionbudgets", Namespace: podNamespace, Name: v.own(heldPod)}
}

func holdPod(_ context.Context, v *victim) error {
	if err := v.putOwned(heldPod); err != nil {
		return err
	}
	return v.world.kube.Edit(v.budget(), func(map[string]any) map[string]any {
		return map[string]any{"spec": map[string]any{"minAvailable": "100%", "selector": map[string]any{"matchLabels": map[string]any{"app": v.own(heldPod)}}}}
	})
}

func freeHeld(ctx context.Context, v *victim) error {
	none := func(map[string]any) map[string]any { return nil }
	return errors.Join(v.world.kube.Edit(v.budget(), none), dropPods(heldPod)(ctx, v))
}

func neverEnd(_ context.Context, v *victim) error {
	if err := v.putOwned(endlessPod); err != nil {
		return err
	}
	return v.world.kube.Linger(v.server.ID, -1)
}

func neverEnds(_ context.Context, v *victim) (bool, error) {
	does, err := v.world.kube.Lingers(v.server.ID)
	return does, ignoreNoNode(err)
}

func endAtLast(ctx context.Context, v *victim) error {
	return errors.Join(ignoreNoNode(v.world.kube.Linger(v.server.ID, 0)), dropPods(endlessPod)(ctx, v))
}
