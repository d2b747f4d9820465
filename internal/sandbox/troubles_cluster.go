package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
	"github.com/macfleet/macfleet/internal/sandbox/kube"
)

// ErrNoNode is returned for a host without a Node.
var ErrNoNode = kube.ErrNoNode

// StuckPods is the number of Pods that the incident stuck-terminating-pods leaves behind.
const StuckPods = 12

const (
	podNamespace = "default"
	strangerPod  = "macfleet-sandbox-stranger"
	pendingPod   = "macfleet-sandbox-pending"
	stuckPod     = "macfleet-sandbox-stuck"

	// silentFor is how long heartbeats have been missing: longer than the cluster waits before a Node
	// is unknown.
	silentFor = 3 * time.Minute

	noSession = "tart run: ensure gui session: kick loginwindow: exit status 1"
)

// clusterTroubles are the incidents of a host's Node. They need a host with one.
func clusterTroubles() []trouble {
	return []trouble{
		{
			Incident: Incident{"empty-provider-id", "the host's Node has no provider ID: its kubelet registered without the flag"},
			remember: rememberNode, cause: plantProviderID, lasts: providerIDPlanted, cure: restoreProviderID,
		},
		{
			Incident: Incident{"different-provider-id", "the host's Node has the provider ID of another server"},
			remember: rememberOtherID, cause: plantProviderID, lasts: providerIDPlanted, cure: restoreProviderID,
		},
		{
			Incident: Incident{"node-not-ready", "the kubelet runs, but the cluster receives no heartbeat"},
			remember: needNode, cause: silence, lasts: silenced, cure: unsilence,
		},
		{
			Incident: Incident{"foreign-cordon", "someone cordoned the host's Node with kubectl and left it cordoned"},
			remember: needNode, cause: cordonNode, lasts: nodeCordoned, cure: uncordonNode,
		},
		{
			Incident: Incident{"foreign-taint", "someone tainted the host's Node, so no new Pods are scheduled on it"},
			remember: needNode, cause: addTaint(strangerTaint), lasts: hasTaint(strangerTaint), cure: dropTaint(strangerTaint),
		},
		{
			Incident: Incident{"taint-missing", "someone removed the kubelet's taint from the host's Node, and this kubelet sets it only when it registers"},
			remember: needNode, cause: loseTaint, lasts: lacksTaint(agentTaint), cure: regainTaint,
		},
		{
			Incident: Incident{"labels-overwritten", "someone changed one of the kubelet's labels on the host's Node, and this kubelet sets it only when it starts"},
			remember: rememberLabel, cause: overwriteLabel, lasts: labelOverwritten, cure: restoreLabel,
		},
		{
			Incident: Incident{"disk-pressure", "the host's Node reports that its disk is nearly full"},
			remember: needNode, cause: pressDisk("True"), lasts: diskPressed, cure: pressDisk("False"),
		},
		{
			Incident: Incident{"stuck-terminating-pods", fmt.Sprintf("the kubelet ignores %d deleted Pods of the host, which stay in Terminating", StuckPods)},
			remember: needNode, cause: strandPods, lasts: podsThere(stuckNames()...), cure: freePods,
		},
		{
			Incident: Incident{"stranded-pods", "a removed host of the same group left deleted Pods, which its kubelet's finalizer keeps"},
			remember: needNode, cause: leavePods, lasts: podsThere(strandedPods()...), cure: dropPods(strandedPods()...),
		},
		{
			Incident: Incident{"pod-on-builder", "someone bound a Pod to the host's Node"},
			remember: needNode, cause: bindStranger, lasts: podsThere(strangerPod), cure: dropPods(strangerPod),
		},
		{
			Incident: Incident{"tart-create-failed", "virtual machines do not start on the host, and a Pod waits for one"},
			remember: needNode, cause: failVMs, lasts: vmsFail, cure: startVMs,
		},
		{
			Incident: Incident{"token-revoked", "someone deleted the binding and the Secret of the host's kubelet, so the cluster refuses it"},
			remember: rememberIdentity, cause: revoke, lasts: revoked, cure: readmit,
		},
		{
			Incident: Incident{"node-deleted", "someone deleted the host's Node; its kubelet still runs"},
			remember: rememberNode, cause: deleteNode, lasts: nodeGone, cure: restoreNode,
		},
	}
}

// node returns the object of the host's Node.
func (v *victim) node() kube.Object {
	return kube.Object{Resource: "nodes", Name: v.record.Settings["node"]}
}

// needNode refuses a host without a Node.
func needNode(_ context.Context, v *victim) error {
	name, err := v.world.kube.NodeOf(v.server.ID)
	if errors.Is(err, ErrNoNode) {
		return fmt.Errorf("%w; fix: apply a fleet with tart_kubelet to it first", err)
	}
	v.record.Settings = map[string]string{"node": name}
	return err
}

func rememberNode(ctx context.Context, v *victim) error {
	if err := needNode(ctx, v); err != nil {
		return err
	}
	return v.rememberObjects(v.node())
}

// rememberObjects records objects for the cure.
func (v *victim) rememberObjects(all ...kube.Object) error {
	var kept []keptObject
	for _, one := range all {
		content, err := v.world.kube.Read(one)
		if err != nil {
			return err
		}
		kept = append(kept, keptObject{one, content})
	}
	data, err := json.Marshal(kept)
	v.record.Settings["objects"] = string(data)
	return err
}

type keptObject struct {
	Object  kube.Object
	Content map[string]any
}

func (v *victim) remembered() (kept []keptObject, err error) {
	return kept, json.Unmarshal([]byte(v.record.Settings["objects"]), &kept)
}

func rememberOtherID(ctx context.Context, v *victim) error {
	if err := rememberNode(ctx, v); err != nil {
		return err
	}
	sum := digest("another server in the place of " + v.server.ID)
	v.record.Settings["planted"] = "scw-applesilicon://" + v.server.Zone + "/" + cloud.FormatUUID([16]byte(sum[:16]))
	return nil
}

func providerID(content map[string]any) string {
	spec, _ := content["spec"].(map[string]any)
	id, _ := spec["providerID"].(string)
	return id
}

func setProviderID(content map[string]any, id string) map[string]any {
	spec, _ := content["spec"].(map[string]any)
	if content == nil || spec == nil && id == "" {
		return content
	}
	if spec == nil {
		spec = map[string]any{}
	}
	if delete(spec, "providerID"); id != "" {
		spec["providerID"] = id
	}
	content["spec"] = spec
	return content
}

func plantProviderID(_ context.Context, v *victim) error {
	return v.world.kube.Edit(v.node(), func(content map[string]any) map[string]any {
		return setProviderID(content, v.record.Settings["planted"])
	})
}

func providerIDPlanted(_ context.Context, v *victim) (bool, error) {
	content, err := v.world.kube.Read(v.node())
	return content != nil && providerID(content) == v.record.Settings["planted"], err
}

func restoreProviderID(ctx context.Context, v *victim) error {
	planted, err := providerIDPlanted(ctx, v)
	if err != nil || !planted {
		return err
	}
	kept, err := v.remembered()
	if err != nil || len(kept) == 0 {
		return err
	}
	return v.world.kube.Edit(v.node(), func(content map[string]any) map[string]any {
		return setProviderID(content, providerID(kept[0].Content))
	})
}

func deleteNode(_ context.Context, v *victim) error {
	return v.world.kube.Edit(v.node(), func(map[string]any) map[string]any { return nil })
}

func nodeGone(_ context.Context, v *victim) (bool, error) {
	content, err := v.world.kube.Read(v.node())
	return content == nil, err
}

func restoreNode(_ context.Context, v *victim) error { return v.restoreMissing() }

// restoreMissing restores the recorded objects that are missing.
func (v *victim) restoreMissing() error {
	kept, err := v.remembered()
	for _, one := range kept {
		if one.Content == nil {
			continue
		}
		err = errors.Join(err, v.world.kube.Edit(one.Object, func(content map[string]any) map[string]any {
			if content == nil {
				content = one.Content
			}
			return content
		}))
	}
	return err
}

func silence(_ context.Context, v *victim) error {
	return v.world.kube.Silence(v.server.ID, time.Now().UTC().Add(-silentFor))
}

func silenced(_ context.Context, v *victim) (bool, error) {
	silent, err := v.world.kube.Silent(v.server.ID)
	return silent, ignoreNoNode(err)
}

func unsilence(_ context.Context, v *victim) error {
	return ignoreNoNode(v.world.kube.Silence(v.server.ID, time.Time{}))
}

// ignoreNoNode skips a host without a Node: nothing is left of the incident.
func ignoreNoNode(err error) error {
	if errors.Is(err, ErrNoNode) {
		return nil
	}
	return err
}

func rememberIdentity(ctx context.Context, v *victim) error {
	if err := needNode(ctx, v); err != nil {
		return err
	}
	parts, err := v.world.kube.IdentityOf(v.server.ID)
	if err != nil {
		return err
	}
	return v.rememberObjects(parts...)
}

func revoke(_ context.Context, v *victim) error {
	kept, err := v.remembered()
	for _, one := range slices.Backward(kept) { // the binding first, since the Secret's token depends on it
		err = errors.Join(err, v.world.kube.Edit(one.Object, func(map[string]any) map[string]any { return nil }))
	}
	return err
}

func revoked(_ context.Context, v *victim) (bool, error) {
	kept, err := v.remembered()
	for _, one := range kept {
		content, failed := v.world.kube.Read(one.Object)
		if err = errors.Join(err, failed); content == nil {
			return true, err
		}
	}
	return false, err
}

func readmit(_ context.Context, v *victim) error { return v.restoreMissing() }
