package kube

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (a *API) delete(r *request) (answer, error) {
	present, err := a.target(r)
	if err != nil {
		return answer{}, err
	}
	options, err := deleteOptions(r)
	if err != nil {
		return answer{}, err
	}
	return a.end(r, present, options)
}

// deleteOptions reads the options of a deletion from the body or the query. Both may be missing.
func deleteOptions(r *request) (metav1.DeleteOptions, error) {
	var options metav1.DeleteOptions
	if err := bodyInto(r, &options); err != nil {
		return options, err
	}
	if text := r.query.Get("gracePeriodSeconds"); text != "" && options.GracePeriodSeconds == nil {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return options, apierrors.NewBadRequest(fmt.Sprintf("gracePeriodSeconds %q is not a whole number", text))
		}
		options.GracePeriodSeconds = &seconds
	}
	if r.dryRun() {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return options, nil
}

// end deletes an object, or marks it as deleted until its finalizers and, for a Pod, the kubelet of
// its Node release it.
func (a *API) end(r *request, present *object, options metav1.DeleteOptions) (answer, error) {
	if err := r.kind.checkPreconditions(present, options.Preconditions); err != nil {
		return answer{}, err
	}
	grace := r.kind.grace(present, options.GracePeriodSeconds)
	dry := len(options.DryRun) > 0
	if grace == 0 && len(present.GetFinalizers()) == 0 && !r.kind.holdsContent() {
		if !dry {
			if err := a.state.remove(r.resource, present); err != nil {
				return answer{}, err
			}
		}
		return answer{code: http.StatusOK, body: metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusSuccess,
			Details:  &metav1.StatusDetails{Name: present.GetName(), Group: r.kind.group, Kind: r.resource, UID: present.GetUID()},
		}}, nil
	}
	if !mark(present, grace, r.now) || dry {
		return answer{code: http.StatusOK, body: present}, nil
	}
	if r.resource == namespaces {
		set(present, "Terminating", "status", "phase")
	}
	return answer{code: http.StatusOK, body: present}, a.state.put(r.resource, present)
}

// holdsContent reports whether objects of the kind remain until everything in them is deleted.
func (k *kind) holdsContent() bool { return k.resource == namespaces }

// grace returns how many seconds an object has left: 0 unless it is a Pod that is bound to a Node and
// has not terminated.
func (k *kind) grace(o *object, wanted *int64) int64 {
	if k.resource != pods || textAt(o, "spec", "nodeName") == "" || finished(o) {
		return 0
	}
	seconds := numberAt(o, "spec", "terminationGracePeriodSeconds")
	if wanted != nil {
		seconds = *wanted
	}
	if seconds < 0 {
		seconds = 1
	}
	return seconds
}

// finished reports whether a Pod has terminated.
func finished(pod *object) bool {
	phase := textAt(pod, "status", "phase")
	return phase == "Succeeded" || phase == "Failed"
}

// mark records the deletion on an object, and reports whether that is new. An earlier deadline can
// only be shortened.
func mark(o *object, grace int64, now time.Time) bool {
	from := now.Truncate(time.Second)
	if already := o.GetDeletionTimestamp(); already != nil {
		before := o.GetDeletionGracePeriodSeconds()
		if before == nil || grace >= *before {
			return false
		}
		from = already.Add(-time.Duration(*before) * time.Second)
	} else if o.GetGeneration() > 0 {
		o.SetGeneration(o.GetGeneration() + 1)
	}
	due := metav1.NewTime(from.Add(time.Duration(grace) * time.Second).UTC())
	if early := now.Truncate(time.Second); due.Time.Before(early) {
		due = metav1.NewTime(early)
	}
	o.SetDeletionTimestamp(&due)
	o.SetDeletionGracePeriodSeconds(&grace)
	return true
}

func (k *kind) checkPreconditions(present *object, wanted *metav1.Preconditions) error {
	if wanted == nil {
		return nil
	}
	if wanted.UID != nil && *wanted.UID != present.GetUID() {
		return apierrors.NewConflict(k.groupResource(), present.GetName(), fmt.Errorf(
			"the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated",
			*wanted.UID, present.GetUID()))
	}
	if wanted.ResourceVersion != nil && *wanted.ResourceVersion != present.GetResourceVersion() {
		return apierrors.NewConflict(k.groupResource(), present.GetName(), fmt.Errorf(
			"the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified",
			*wanted.ResourceVersion, present.GetResourceVersion()))
	}
	return nil
}

// deleteCollection deletes all objects that a list with the same selectors would return.
func (a *API) deleteCollection(r *request) (answer, error) {
	options, err := deleteOptions(r)
	if err != nil {
		return answer{}, err
	}
	found, err := a.selected(r)
	if err != nil {
		return answer{}, err
	}
	for _, shared := range found {
		if _, err := a.end(r, shared.DeepCopy(), options); err != nil {
			return answer{}, err
		}
	}
	return a.listed(r, found)
}
