package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// toEvict chooses the Pods of a Node that have to be evicted as kubectl drain does, or none of
// them if one must not be. macfleet does not use kubectl's package: that brings kubectl's
// other commands along, and every start of macfleet would wait for their tables.
func (c *Client) toEvict(ctx context.Context, node string, unmanaged bool) ([]*corev1.Pod, error) {
	on := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()}
	pods, err := listed[*corev1.Pod](ctx, "pods", c.api.CoreV1().Pods(metav1.NamespaceAll).List, on)
	if err != nil {
		return nil, err
	}
	var evict []*corev1.Pod
	var alone []string
	var errs []error
	for _, p := range pods {
		stays, err := c.stays(ctx, p, unmanaged)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("pod %s/%s: %w", p.Namespace, p.Name, explain(err)))
		case stays || over(p):
		case !unmanaged && !finished(p) && metav1.GetControllerOf(p) == nil:
			alone = append(alone, p.Namespace+"/"+p.Name)
		default:
			evict = append(evict, p)
		}
	}
	if len(alone) > 0 {
		errs = append(errs, errors.New("these Pods have no controller that recreates them: "+strings.Join(alone, ", ")))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return evict, nil
}

// stays reports whether a Pod belongs to its Node: the kubelet made it from a file, or a DaemonSet
// would make it again there. A DaemonSet that is gone makes none, but its name may be a mistake, so
// such a Pod goes only if unmanaged Pods may.
func (c *Client) stays(ctx context.Context, p *corev1.Pod, unmanaged bool) (bool, error) {
	owner := metav1.GetControllerOf(p)
	if owner != nil && owner.Kind == "DaemonSet" && owner.APIVersion == appsv1.SchemeGroupVersion.String() && !finished(p) {
		_, err := c.api.AppsV1().DaemonSets(p.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) || !unmanaged {
			return err == nil, err
		}
	}
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror, nil
}

// finished reports whether a Pod's containers ended for good.
func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// over reports whether nothing runs for a Pod any more.
func over(p *corev1.Pod) bool { return p.DeletionTimestamp != nil && finished(p) }
