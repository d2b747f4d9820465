package kube

import (
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// subresource answers a request for a path below an object.
func (a *API) subresource(r *request) (answer, error) {
	switch {
	case r.verb != "create":
		return answer{}, notModelled(r)
	case r.resource == pods && r.sub == "eviction":
		return a.evict(r)
	case r.resource == serviceAccounts && r.sub == "token":
		return a.issue(r)
	}
	return answer{}, notModelled(r)
}

// evict deletes a Pod if no disruption budget protects it.
func (a *API) evict(r *request) (answer, error) {
	var eviction policyv1.Eviction
	if err := bodyInto(r, &eviction); err != nil {
		return answer{}, err
	}
	if eviction.Name != "" && eviction.Name != r.name {
		return answer{}, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	pod, err := a.target(r)
	if err != nil {
		return answer{}, err
	}
	options := metav1.DeleteOptions{}
	if eviction.DeleteOptions != nil {
		options = *eviction.DeleteOptions
	}
	if r.dryRun() {
		options.DryRun = []string{metav1.DryRunAll}
	}
	// A Pod that has terminated, has not started or is being deleted does not count against a budget.
	phase := textAt(pod, "status", "phase")
	if !finished(pod) && phase != "Pending" && pod.GetDeletionTimestamp() == nil {
		if err := a.spend(pod, len(options.DryRun) > 0); err != nil {
			return answer{}, err
		}
	}
	if _, err := a.end(r, pod, options); err != nil {
		return answer{}, err
	}
	return answer{code: http.StatusCreated, body: metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess, Code: http.StatusCreated,
	}}, nil
}

// spend takes one disruption from the budget that protects a Pod, or refuses.
func (a *API) spend(pod *object, dry bool) error {
	found, err := a.budgetsOf(pod)
	if err != nil || len(found) == 0 {
		return err
	}
	if len(found) > 1 {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
		}}
	}
	budget := found[0]
	status := budget.Status
	if !podReady(pod) {
		policy := budget.Spec.UnhealthyPodEvictionPolicy
		if policy != nil && *policy == policyv1.AlwaysAllow || status.CurrentHealthy >= status.DesiredHealthy && status.DesiredHealthy > 0 {
			return nil
		}
	}
	if status.ObservedGeneration < budget.Generation {
		return tooMany(10, fmt.Sprintf("The disruption budget %s is still being processed by the server.", budget.Name))
	}
	if status.DisruptionsAllowed == 0 {
		message := fmt.Sprintf("The disruption budget %s does not allow evicting pods currently", budget.Name)
		if status.CurrentHealthy <= status.DesiredHealthy {
			message = fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", budget.Name, status.DesiredHealthy, status.CurrentHealthy)
		}
		return tooMany(0, message)
	}
	if dry {
		return nil
	}
	stored, err := a.state.get(disruptionBudgets, pod.GetNamespace(), budget.Name)
	if err != nil || at(stored, "status", "observedGeneration") == nil {
		return err // the controller computes the status again when the Pod is deleted
	}
	set(stored, int64(status.DisruptionsAllowed-1), "status", "disruptionsAllowed")
	return a.state.put(disruptionBudgets, stored)
}

func tooMany(retry int, cause string) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", retry)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: cause})
	return err
}

// budgetsOf returns the budgets that protect a Pod, with the status that the controller would compute.
func (a *API) budgetsOf(pod *object) ([]policyv1.PodDisruptionBudget, error) {
	all, err := a.state.list(disruptionBudgets, pod.GetNamespace())
	if err != nil {
		return nil, err
	}
	var found []policyv1.PodDisruptionBudget
	for _, o := range all {
		matches, err := budgetSelector(o)
		if err != nil {
			return nil, err
		}
		if !matches.Matches(labels.Set(pod.GetLabels())) {
			continue
		}
		shown, err := a.budgetStatus(o)
		if err != nil {
			return nil, err
		}
		var budget policyv1.PodDisruptionBudget
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(shown.Object, &budget); err != nil {
			return nil, fmt.Errorf("the disruption budget %s: %w", o.GetName(), err)
		}
		found = append(found, budget)
	}
	return found, nil
}

func budgetSelector(o *object) (labels.Selector, error) {
	var budget policyv1.PodDisruptionBudget
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &budget); err != nil {
		return nil, fmt.Errorf("the disruption budget %s: %w", o.GetName(), err)
	}
	return metav1.LabelSelectorAsSelector(budget.Spec.Selector)
}

// budgetStatus returns a budget with its status: the one that a client wrote, else the one that the
// disruption controller would compute. It counts existing Pods, not those that a controller wants.
func (a *API) budgetStatus(o *object) (*object, error) {
	if at(o, "status", "observedGeneration") != nil {
		return o, nil
	}
	matches, err := budgetSelector(o)
	if err != nil {
		return nil, err
	}
	all, err := a.state.list(pods, o.GetNamespace())
	if err != nil {
		return nil, err
	}
	expected, healthy := 0, 0
	for _, pod := range all {
		if !matches.Matches(labels.Set(pod.GetLabels())) || finished(pod) {
			continue
		}
		expected++
		if podReady(pod) && pod.GetDeletionTimestamp() == nil {
			healthy++
		}
	}
	desired := expected
	if wanted, ok := share(at(o, "spec", "minAvailable"), expected); ok {
		desired = wanted
	} else if spare, ok := share(at(o, "spec", "maxUnavailable"), expected); ok {
		desired = max(0, expected-spare)
	}
	shown := o.DeepCopy()
	shown.Object["status"] = map[string]any{
		"observedGeneration": o.GetGeneration(), "expectedPods": int64(expected), "currentHealthy": int64(healthy),
		"desiredHealthy": int64(desired), "disruptionsAllowed": int64(max(0, healthy-desired)),
	}
	return shown, nil
}

// share returns a number or a percentage of a whole, rounded up.
func share(value any, whole int) (int, bool) {
	var parsed intstr.IntOrString
	switch value := value.(type) {
	case int64:
		parsed = intstr.FromInt32(int32(min(value, 1<<30)))
	case string:
		parsed = intstr.FromString(value)
	default:
		return 0, false
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&parsed, whole, true)
	return n, err == nil
}

func podReady(pod *object) bool {
	return slices.ContainsFunc(itemsAt(pod, "status", "conditions"), func(c map[string]any) bool {
		return c["type"] == string(corev1.PodReady) && c["status"] == "True"
	})
}
