package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// pods lists the Pods on Mac minis. A field selector can name one Node or none,
// so this asks for all Pods that are on any Node and drops those of other Nodes,
// page by page: what a big cluster costs is time, never memory. The answer is
// the present state, not the server's cache: whether a Pod is gone decides over
// virtual machines.
func (c *Client) pods(ctx context.Context, nodes func() ([]inventory.Node, error)) ([]inventory.Pod, error) {
	var out []inventory.Pod
	macs := sync.OnceValues(func() (map[string]bool, error) { // says of each Node whether it is a Mac mini
		all, err := nodes()
		macs := make(map[string]bool, len(all))
		for _, n := range all {
			macs[n.Name] = n.ServerID() != "" || n.IsMac()
		}
		return macs, err
	})
	bound := metav1.ListOptions{FieldSelector: "spec.nodeName!="}
	err := each(ctx, "pods", c.api.CoreV1().Pods(metav1.NamespaceAll).List, bound, func() func(*corev1.Pod) error {
		out = []inventory.Pod{}
		return func(p *corev1.Pod) error {
			all, err := macs()
			// A Pod outlives its Node: one that waits for a kubelet is a Mac's.
			mac, there := all[p.Spec.NodeName]
			if mac || !there && slices.ContainsFunc(p.Finalizers, inventory.IsVMFinalizer) {
				out = append(out, c.toPod(p))
			}
			return err
		}
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b inventory.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

func (c *Client) toPod(p *corev1.Pod) inventory.Pod {
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	out := inventory.Pod{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID), Node: p.Spec.NodeName, Phase: string(p.Status.Phase),
		Reason: reason(p), Mirror: mirror, Finalizers: p.Finalizers}
	if owner := metav1.GetControllerOf(p); owner != nil {
		out.Controller = owner.Kind
	}
	// A Pod's deletionTimestamp is when it has to be gone: the cluster adds the grace
	// itself.
	if p.DeletionTimestamp != nil {
		out.Due = p.DeletionTimestamp.UTC()
		out.Overdue = c.clock.now().After(out.Due)
	}
	return out
}

// reason says why a Pod does not run. An agent says it of the Pod, or of its one
// container.
func reason(p *corev1.Pod) string {
	why := p.Status.Reason
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Waiting != nil {
			why = cmp.Or(why, s.State.Waiting.Reason)
		}
		if s.State.Terminated != nil {
			why = cmp.Or(why, s.State.Terminated.Reason)
		}
	}
	return why
}

// ReleasePod takes the kubelets' finalizer off a Pod that is being deleted, so
// that it goes. The Pod must be the one that was seen, its time must be up, and
// nothing may run for it any more: its phase is terminal, or its Node is gone.
// A kubelet that returned at its own "terminal" before it saw the deletion
// left 504 Pods behind. Already deleted: nothing to do.
func (c *Client) ReleasePod(ctx context.Context, p inventory.Pod) error {
	// A test that does not hold is answered with 422: someone else changed the list.
	again := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsInvalid(err) }
	err := retry.OnError(atOnce, again, func() error { return c.release(ctx, p) })
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("release pod %s/%s: %w", p.Namespace, p.Name, explain(err))
}

func (c *Client) release(ctx context.Context, p inventory.Pod) error {
	pods := c.api.CoreV1().Pods(p.Namespace)
	have, err := pods.Get(ctx, p.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if string(have.UID) != p.UID {
		return fmt.Errorf("pod %s/%s %w", p.Namespace, p.Name, ErrReplaced)
	}
	if err := c.stuck(ctx, have); err != nil {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(have.Finalizers), inventory.IsVMFinalizer)
	if len(others) > 0 && len(others) == len(have.Finalizers) {
		return notStuck(have, "its finalizers are "+strings.Join(others, ", "))
	}
	// Where the Pod still ran when it was deleted, the cluster waits for the
	// kubelet's word besides the finalizer, which is a deletion without grace. It comes
	// first: cut off here, the Pod still shows by its finalizer that it is stuck.
	if len(others) == 0 && have.DeletionGracePeriodSeconds != nil && *have.DeletionGracePeriodSeconds > 0 {
		now := int64(0)
		err := pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &have.UID}})
		if err != nil {
			return err
		}
	}
	if len(others) == len(have.Finalizers) { // nothing held it but that word
		return nil
	}
	patch, err := withoutFinalizers(have)
	if err == nil {
		_, err = pods.Patch(ctx, p.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: manager})
	}
	return err
}

// withoutFinalizers is a patch that removes the kubelets' finalizers from their
// places, if they still stand there, and touches no other.
func withoutFinalizers(p *corev1.Pod) ([]byte, error) {
	patch := []map[string]any{{"op": "test", "path": "/metadata/uid", "value": p.UID}}
	for i, f := range slices.Backward(p.Finalizers) { // places behind one that goes are others then
		if at := fmt.Sprintf("/metadata/finalizers/%d", i); inventory.IsVMFinalizer(f) {
			patch = append(patch, map[string]any{"op": "test", "path": at, "value": f}, map[string]any{"op": "remove", "path": at})
		}
	}
	return json.Marshal(patch)
}

func notStuck(p *corev1.Pod, why string) error {
	return fmt.Errorf("pod %s/%s %w: %s", p.Namespace, p.Name, ErrNotStuck, why)
}

// stuck returns an error unless a Pod may be released.
func (c *Client) stuck(ctx context.Context, p *corev1.Pod) error {
	seen := c.toPod(p)
	switch {
	case p.DeletionTimestamp == nil:
		return notStuck(p, "it is not being deleted")
	case !seen.Overdue:
		return notStuck(p, "its grace period ends at "+seen.Due.Format("15:04:05 UTC"))
	case seen.Finished():
		return nil
	}
	_, err := c.api.CoreV1().Nodes().Get(ctx, p.Spec.NodeName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	return notStuck(p, "its Node exists and its phase is "+string(p.Status.Phase))
}
