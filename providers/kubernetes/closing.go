package kubernetes

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// cordonRun is the annotation that names the run that cordoned a Node, and will
// uncordon it. A person's cordon has none.
const cordonRun = "cordon-run"

// CloseNode cordons a Node in the name of a run. ours says whether the cordon is a run's
// now: one that an earlier run left behind is taken over, and what a person or another
// tool closed is theirs and stays so.
func (c *Client) CloseNode(ctx context.Context, n inventory.Node, run plan.Run) (ours bool, err error) {
	err = c.changeNode(ctx, "cordon", n, func(have *corev1.Node) (map[string]any, error) {
		of, left := have.Annotations[c.label(cordonRun)]
		ours = left || !have.Spec.Unschedulable
		if !ours || have.Spec.Unschedulable && of == run.ID {
			return nil, nil
		}
		return c.closing(true, run.Who, run.ID), nil
	})
	return ours && err == nil, err
}

// OpenNode takes back the cordon of a run. Any other cordon stays. A Node that is gone, or
// was made anew, has none.
func (c *Client) OpenNode(ctx context.Context, n inventory.Node) error {
	err := c.changeNode(ctx, "uncordon", n, func(have *corev1.Node) (map[string]any, error) {
		if _, ours := have.Annotations[c.label(cordonRun)]; !ours {
			return nil, nil
		}
		return c.closing(nil, nil, nil), nil
	})
	var replaced *ReplacedError
	if err == nil || apierrors.IsNotFound(err) || errors.As(err, &replaced) {
		return nil
	}
	return err
}

func (c *Client) closing(unschedulable, by, run any) map[string]any {
	return map[string]any{"spec": map[string]any{"unschedulable": unschedulable},
		"metadata": map[string]any{"annotations": map[string]any{c.label(cordonedBy): by, c.label(cordonRun): run}}}
}

// EmptyNode evicts the Pods of a Node within a time, as Drain does. tell hears of each Pod
// (NAMESPACE/NAME) that is evicted, held or gone, from several goroutines at once.
func (c *Client) EmptyNode(ctx context.Context, n inventory.Node, within time.Duration, tell func(pod, what, why string)) error {
	return c.Drain(ctx, n, DrainOptions{Timeout: within, Progress: func(e DrainEvent) { tell(e.Namespace+"/"+e.Pod, string(e.What), e.Why) }})
}

// PodsOn lists the Pods of one Node.
func (c *Client) PodsOn(ctx context.Context, n inventory.Node) ([]inventory.Pod, error) {
	var out []inventory.Pod
	of := metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.Name}
	err := each(ctx, "pods of node "+n.Name, c.api.CoreV1().Pods(metav1.NamespaceAll).List, of, func(l *corev1.PodList) error {
		for i := range l.Items {
			out = append(out, c.toPod(&l.Items[i]))
		}
		return nil
	})
	return out, err
}
