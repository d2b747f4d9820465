package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// The labels by which macfleet knows what it made.
const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	labelComponent = "app.kubernetes.io/component"
	labelHost      = "host"  // behind the configuration's prefix
	labelOwner     = "owner" // so here
)

// ForeignError says that an object that macfleet would make is there and is
// somebody else's. It is never touched.
type ForeignError struct{ Kind, Namespace, Name, Why string }

// Error says what is foreign about the object, and what to do.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s %s is not this configuration's: %s; rename or delete it, or set its labels as macfleet would", e.Kind, path(e.Namespace, e.Name), e.Why)
}

// path is how an object's place is written.
func path(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// typed is what client-go's clients of one kind have in common.
type typed[T metav1.Object] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (T, error)
	Create(ctx context.Context, object T, o metav1.CreateOptions) (T, error)
	Update(ctx context.Context, object T, o metav1.UpdateOptions) (T, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}

// wish is an object that is to be in the cluster.
type wish[T metav1.Object] struct {
	kind  string
	api   typed[T]
	want  T
	owner string // the label that must be equal beside managed-by; "" = none
	// mend makes of an object that is there what is wanted, and says what it changed;
	// nil: it need only be there. Labels are mended by themselves.
	mend func(have T) (changed string)
	// spoilt says that the object is ours and has to be made anew; nil: never.
	spoilt func(have T) bool
	// metadata tells an object by its metadata alone, where plan must not read the
	// rest; nil: all of it is read.
	metadata func(ctx context.Context) (*metav1.PartialObjectMetadata, error)
	judge    func(have metav1.Object) (differs string)
}

// object names the thing.
func (w wish[T]) object() inventory.Object {
	return inventory.Object{Kind: w.kind, Namespace: w.want.GetNamespace(), Name: w.want.GetName()}
}

func (w wish[T]) foreign(have metav1.Object) error {
	for _, name := range []string{labelManagedBy, w.owner} {
		want, wanted := w.want.GetLabels()[name]
		if has := have.GetLabels()[name]; wanted && has != want {
			why := fmt.Sprintf("its label %s is %q, not %q", name, has, want)
			return &ForeignError{Kind: w.kind, Namespace: w.want.GetNamespace(), Name: w.want.GetName(), Why: why}
		}
	}
	return nil
}

// labels completes an object's labels and returns the first that was not right.
func labels(want, have metav1.Object) string {
	has, changed := maps.Clone(have.GetLabels()), ""
	for _, name := range slices.Sorted(maps.Keys(want.GetLabels())) {
		if value := want.GetLabels()[name]; has[name] != value {
			if has == nil {
				has = make(map[string]string)
			}
			has[name] = value
			if changed == "" {
				changed = "label " + name
			}
		}
	}
	have.SetLabels(has)
	return changed
}

// look compares what is there with what is wanted, and changes nothing.
func (w wish[T]) look(ctx context.Context) (inventory.Object, error) {
	out := w.object()
	why, err := w.difference(ctx)
	switch {
	case apierrors.IsNotFound(err):
		out.State = inventory.ObjectMissing
	case err != nil:
		return out, fmt.Errorf("read %s %s: %w", w.kind, path(out.Namespace, out.Name), explain(err))
	case why != "":
		out.State, out.Why = inventory.ObjectDiffers, why
	default:
		out.State = inventory.ObjectKept
	}
	return out, nil
}

func (w wish[T]) difference(ctx context.Context) (why string, err error) {
	var have metav1.Object
	if w.metadata != nil {
		have, err = w.metadata(ctx)
	} else {
		have, err = w.api.Get(ctx, w.want.GetName(), metav1.GetOptions{})
	}
	if err != nil {
		return "", err
	}
	if err := w.foreign(have); err != nil {
		return err.Error(), nil
	}
	whole, ok := have.(T)
	switch {
	case ok && w.spoilt != nil && w.spoilt(whole):
		return "has to be made anew", nil
	case ok:
		return w.change(whole), nil
	}
	if why = labels(w.want, have); why == "" && w.judge != nil {
		why = w.judge(have)
	}
	return why, nil
}

// change makes of what is there what is wanted, and says what it changed.
func (w wish[T]) change(have T) string {
	why := labels(w.want, have)
	if w.mend != nil {
		if more := w.mend(have); more != "" {
			why = more
		}
	}
	return why
}

// ensure brings the object to what is wanted and returns it. It makes nothing
// twice: who loses a race for a name, or meets another's change, looks again.
func (w wish[T]) ensure(ctx context.Context) (T, error) {
	var have T
	var err error
	for range tries {
		have, err = w.once(ctx)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
		if w.namespaceMissing(err) {
			break
		}
	}
	if err != nil {
		return have, fmt.Errorf("keep %s %s: %w", w.kind, path(w.want.GetNamespace(), w.want.GetName()), explain(err))
	}
	return have, nil
}

// namespaceMissing tells a create that failed for want of a namespace, which no
// further try mends.
func (w wish[T]) namespaceMissing(err error) bool {
	status, ok := err.(apierrors.APIStatus)
	return ok && apierrors.IsNotFound(err) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}

func (w wish[T]) once(ctx context.Context) (T, error) {
	have, err := w.api.Get(ctx, w.want.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return w.api.Create(ctx, w.want, metav1.CreateOptions{FieldManager: manager})
	}
	if err != nil {
		return have, err
	}
	if err := w.foreign(have); err != nil {
		return have, err
	}
	if w.spoilt != nil && w.spoilt(have) {
		if err := remove(ctx, w.api, have); err != nil {
			return have, err
		}
		return w.api.Create(ctx, w.want, metav1.CreateOptions{FieldManager: manager})
	}
	if w.change(have) == "" {
		return have, nil
	}
	return w.api.Update(ctx, have, metav1.UpdateOptions{FieldManager: manager})
}

// remove deletes the very object that was read; one that is gone is no error.
func remove[T metav1.Object](ctx context.Context, api typed[T], have T) error {
	uid := have.GetUID()
	err := api.Delete(ctx, have.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// revoke deletes the object if it is ours; one that is gone is no error.
func (w wish[T]) revoke(ctx context.Context) error {
	have, err := w.api.Get(ctx, w.want.GetName(), metav1.GetOptions{})
	if err == nil {
		if err = w.foreign(have); err == nil {
			err = remove(ctx, w.api, have)
		}
	}
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("delete %s %s: %w", w.kind, path(w.want.GetNamespace(), w.want.GetName()), explain(err))
}
