package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/drain"

	"github.com/macfleet/macfleet/fleet/inventory"
)

const (
	drainRetry  = 5 * time.Second // between two evictions that a budget refused
	drainPoll   = time.Second     // between two reads of a Pod that is being deleted
	drainRounds = 3               // how often Pods that came meanwhile are evicted too
	drainAtOnce = 16
)

// EvictPods evicts the Pods of a Node, which should be cordoned, and waits until
// they are gone. Pods of DaemonSets and the kubelet's own stay, and those that nothing
// makes again are an error unless unmanaged says that they may go. Disruption
// budgets are honoured: one that refuses until the time is up is named in the
// error. A Pod that is being deleted and whose phase is terminal counts as gone:
// nothing runs for it, even if a finalizer still holds it. report is called for each Pod
// (NAMESPACE/NAME) that is evicted, held or gone, from several goroutines at once.
func (c *Client) EvictPods(ctx context.Context, n inventory.Node, within time.Duration, unmanaged bool, report func(pod, what, why string)) (err error) {
	defer wrap(&err, "drain node %s", n.Name)
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if _, err := c.node(ctx, n); err != nil {
		return explain(err)
	}
	for range drainRounds {
		pods, err := c.toEvict(ctx, n.Name, within, unmanaged)
		if err != nil || len(pods) == 0 {
			return err
		}
		if err := c.evictAll(ctx, pods, report); err != nil {
			return err
		}
	}
	return errors.New("new Pods keep arriving; fix: cordon the Node first")
}

// toEvict chooses as kubectl does. Every field of its helper is set: the zero
// values kill at once, wait for ever and ask without a pause. Its own loop is
// not used: it sleeps without regard to a cancelled context, evicts whatever has
// the Pod's name by then, and names no budget.
func (c *Client) toEvict(ctx context.Context, node string, within time.Duration, unmanaged bool) ([]corev1.Pod, error) {
	helper := drain.Helper{
		Ctx: ctx, Client: c.api, Force: unmanaged, GracePeriodSeconds: -1, IgnoreAllDaemonSets: true,
		Timeout: within, DeleteEmptyDirData: true, Selector: "", PodSelector: "", ChunkSize: pageSize,
		DisableEviction: false, SkipWaitForDeleteTimeoutSeconds: 0, EvictErrorRetryDelay: drainRetry,
		AdditionalFilters: []drain.PodFilter{func(p corev1.Pod) drain.PodDeleteStatus {
			if over(&p) {
				return drain.MakePodDeleteStatusSkip()
			}
			return drain.MakePodDeleteStatusOkay()
		}},
		Out: io.Discard, ErrOut: io.Discard, DryRunStrategy: util.DryRunNone,
		OnPodDeletedOrEvicted: nil, OnPodDeletionOrEvictionFinished: nil, OnPodDeletionOrEvictionStarted: nil,
	}
	list, errs := helper.GetPodsForDeletion(node)
	if len(errs) > 0 {
		return nil, explain(errors.Join(errs...))
	}
	return list.Pods(), nil
}

// over reports whether nothing runs for a Pod any more.
func over(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil && (p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed)
}

func (c *Client) evictAll(ctx context.Context, pods []corev1.Pod, report func(pod, what, why string)) error {
	errs := make([]error, len(pods))
	var g errgroup.Group
	g.SetLimit(drainAtOnce)
	for i := range pods {
		g.Go(func() error {
			p := &pods[i]
			name := p.Namespace + "/" + p.Name
			err := c.evict(ctx, p, func(what, why string) { report(name, what, why) })
			if err == nil {
				report(name, "gone", "")
			} else {
				errs[i] = fmt.Errorf("pod %s: %w", name, explain(err))
			}
			return nil // one that fails ends no other
		})
	}
	_ = g.Wait()
	return errors.Join(errs...)
}

// evict asks until the Pod may go, and then waits until it is gone.
func (c *Client) evict(ctx context.Context, p *corev1.Pod, report func(what, why string)) error {
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID}}}
	held := ""
	for {
		err := c.api.PolicyV1().Evictions(p.Namespace).Evict(ctx, eviction)
		switch {
		case err == nil:
			report("evicted", "")
			return c.awaitGone(ctx, p)
		case apierrors.IsNotFound(err):
			return nil
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return c.awaitGone(ctx, p) // its namespace takes it along
		case held != "" && (ctx.Err() != nil || outOfTime(err)):
			return &endedError{cmp.Or(ctx.Err(), context.DeadlineExceeded), held}
		}
		pause := drainRetry
		switch {
		case apierrors.IsConflict(err):
			ends, unread := c.ends(ctx, p)
			switch {
			case denied(unread):
				return unread
			case ends:
				return c.awaitGone(ctx, p)
			}
			held, pause = "concurrent changes prevented its eviction: "+err.Error(), drainPoll
			if unread != nil && ctx.Err() == nil && !outOfTime(unread) {
				held += "; and it could not be read: " + unread.Error()
			}
		case passes(err):
			held, pause = "the API server failed: "+err.Error(), drainPoll
			report("held", held)
		case !apierrors.IsTooManyRequests(err):
			return err
		default:
			var why string
			why, held, pause = refusal(err)
			report("held", why)
		}
		if err := sleep(ctx, pause); err != nil {
			return &endedError{err, held}
		}
	}
}

// ends reports whether a Pod is gone or on its way. A conflict does not say which: another Pod may have
// the name, or someone changed this one.
func (c *Client) ends(ctx context.Context, p *corev1.Pod) (bool, error) {
	have, err := c.api.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return err == nil && (have.UID != p.UID || have.DeletionTimestamp != nil), err
}

// denied reports whether a Pod could not be read because a permission is missing. All else may pass, and one answer
// that failed must not leave a Node half drained.
func denied(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

// passes reports whether a failed eviction is worth another one: the server failed, or did not answer. An eviction that
// was carried out nevertheless finds another Pod, or none. A Pod with two disruption budgets has the status of a
// failure and never passes.
func passes(err error) bool {
	var s apierrors.APIStatus
	if !errors.As(err, &s) {
		return !outOfTime(err) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	}
	return s.Status().Code >= http.StatusInternalServerError && !strings.Contains(s.Status().Message, "more than one PodDisruptionBudget")
}

// refusal says why an eviction is refused for now, what holds the Pod by that, and when to ask again: a
// disruption budget is named in a cause, and a server that has too much to do says itself how long.
func refusal(err error) (why, held string, pause time.Duration) {
	if cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause); ok {
		return cause.Message, "a disruption budget blocked it: " + cause.Message, drainRetry
	}
	pause = drainRetry
	if seconds, says := apierrors.SuggestsClientDelay(err); says && seconds > 0 {
		pause = time.Duration(seconds) * time.Second
	}
	return "the API server is too busy: " + err.Error(), "the API server was too busy: " + err.Error(), pause
}

// outOfTime reports whether a request was not sent because its turn would come
// only after the deadline: client-go then reports it before the deadline has come, in
// an error of no type.
func outOfTime(err error) bool {
	return err != nil && strings.Contains(err.Error(), "would exceed context deadline")
}

func (c *Client) awaitGone(ctx context.Context, p *corev1.Pod) error {
	for {
		have, err := c.api.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && (have.UID != p.UID || over(have)):
			return nil
		case denied(err):
			return err
		}
		held := fmt.Sprintf("it was being deleted; `kubectl describe pod -n %s %s` shows what blocks it", p.Namespace, p.Name)
		if !slices.Contains(c.options.PodNamespaces, p.Namespace) {
			held += fmt.Sprintf("; %s is not in pod_namespaces, so the kubelet has no permission to remove its Pods", p.Namespace)
		}
		if err != nil && ctx.Err() == nil && !outOfTime(err) {
			held = "it was being deleted, and could not be read: " + err.Error()
		}
		if err := sleep(ctx, drainPoll); err != nil {
			return &endedError{err, held}
		}
	}
}

// endedError says what a drain waited for when its time was up, or when someone
// interrupted it.
type endedError struct {
	cause error // the context's
	by    string
}

func (e *endedError) Error() string {
	if errors.Is(e.cause, context.DeadlineExceeded) {
		return "timed out while " + e.by
	}
	return "interrupted while " + e.by
}

func (e *endedError) Unwrap() error { return e.cause }

// sleep waits, and no longer than the context lives.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
