package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/retry"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// The labels by which macfleet knows what it made.
const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	labelComponent = "app.kubernetes.io/component"
	labelHost      = "host"  // behind the configuration's prefix
	labelOwner     = "owner" // so here
)

// desired is an object that the cluster should hold. Its labels, annotations and fields
// are corrected; the rest of it stays.
type desired struct {
	c    *Client
	api  dynamic.ResourceInterface
	want *unstructured.Unstructured

	prepared bool // an administrator makes it, as macfleet's own rights do not reach so far
	gates    inventory.Gate
	recent   bool // versions that noted nothing did not make it
	asFound  bool // an existing one is never changed
	unowned  bool // it must have no owner, which would take it along
	// later completes it from other objects: existing ones or, where it is
	// being made, those that it makes. nil: it is complete.
	later func(ctx context.Context, making bool) (desired, error)
	// broken reports that the object is macfleet's and must be recreated; nil: never.
	broken func(have metav1.Object) bool
	// judge says what shows in the metadata of an object whose fields plan must not
	// read; nil: nothing does.
	judge func(have metav1.Object) (differs string)
	// put replaces fix: it changes the existing object and returns what it changed; nil: use fix.
	put func(have *unstructured.Unstructured) (changed string, err error)
}

// desired returns the desired object for one of client-go's kinds.
func (c *Client) desired(o runtime.Object) desired {
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	fields, ferr := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err := cmp.Or(err, ferr); err != nil {
		// The kinds are constants of this package, and client-go knows them.
		panic(fmt.Sprintf("%T is not a client-go kind: %v", o, err))
	}
	maps.DeleteFunc(fields, func(_ string, value any) bool { // such as the status, which is not configured
		part, ok := value.(map[string]any)
		return ok && len(part) == 0
	})
	want := &unstructured.Unstructured{Object: fields}
	want.SetGroupVersionKind(kinds[0])
	at, _ := meta.UnsafeGuessKindToResource(kinds[0])
	return desired{c: c, want: want, api: c.dynamic.Resource(at).Namespace(want.GetNamespace())}
}

// object names the thing.
func (w desired) object() inventory.Object {
	return inventory.Object{Kind: w.want.GetKind(), Namespace: w.want.GetNamespace(), Name: w.want.GetName(),
		Prepared: w.prepared, Gates: w.gates, Recent: w.recent}
}

// gating says what fails on hosts while the cluster lacks the object.
func (w desired) gating(g inventory.Gate) desired {
	w.gates = g
	return w
}

// foreign returns an error where an object of that name belongs to someone else.
func (w desired) foreign(have metav1.Object) error {
	if foreignLabel := w.foreignLabel(have); foreignLabel != "" {
		return fmt.Errorf("%s %w: %s; fix: rename or delete it, or set the labels that macfleet sets", w.object(), ErrForeign, foreignLabel)
	}
	return nil
}

// foreignLabel describes the label that shows that someone else made an object, or returns "".
func (w desired) foreignLabel(have metav1.Object) string {
	return w.c.foreignLabel(w.want.GetLabels(), have)
}

// foreignLabel compares the labels of an object with the desired ones. A host's object is never
// taken for one that is of no host: names may be the same.
func (c *Client) foreignLabel(marks map[string]string, have metav1.Object) string {
	for _, name := range []string{labelManagedBy, c.label(labelOwner), labelComponent} {
		want, wanted := marks[name]
		has := have.GetLabels()[name]
		if name == labelComponent {
			wanted = !wanted && has == component // one that lost this label is corrected
		}
		if wanted && has != want {
			return fmt.Sprintf("its label %s is %q, not %q", name, has, want)
		}
	}
	return ""
}

// others says why an object that should be deleted is not macfleet's, or not any more, or "".
func (w desired) others(have metav1.Object) string {
	if foreignLabel := w.foreignLabel(have); foreignLabel != "" || w.judge == nil {
		return foreignLabel
	}
	return w.judge(have)
}

// get returns the object of that name; nil: none. Of a Secret it reads only the
// metadata. What a listing has is not read again.
func (w desired) get(ctx context.Context, there listing) (metav1.Object, error) {
	if have := there.find(w.object()); have != nil {
		return have, nil
	}
	var have metav1.Object
	var err error
	if w.want.GetKind() == "Secret" {
		have, err = w.c.secrets(w.want.GetNamespace()).Get(ctx, w.want.GetName(), metav1.GetOptions{})
	} else {
		have, err = w.api.Get(ctx, w.want.GetName(), metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", w.object(), explain(err))
	}
	return have, nil
}

// compared compares the object with the desired one and changes nothing.
func (w desired) compared(ctx context.Context, have metav1.Object) (inventory.Object, error) {
	out := w.object()
	if w.later != nil {
		var err error
		if w, err = w.later(ctx, false); err != nil {
			return out, err
		}
	}
	switch {
	case have == nil:
		out.State = inventory.ObjectMissing
		return out, nil
	case have.GetDeletionTimestamp() != nil:
		out.State, out.Why = inventory.ObjectMissing, "it is being deleted"
		return out, nil
	}
	out.State = inventory.ObjectKept
	if whole, ok := have.(*unstructured.Unstructured); ok {
		have = whole.DeepCopy() // the comparison fixes it
	}
	void := w.void(have)
	if out.Why = w.differs(have); out.Why != "" {
		out.State, out.Void = inventory.ObjectDiffers, void
	}
	return out, nil
}

// grants are the fields by which roles and bindings give rights.
var grants = []string{"rules", "subjects", "roleRef"}

// void reports whether an object that gives rights gives none of the desired ones.
func (w desired) void(have metav1.Object) bool {
	whole, ok := have.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	return slices.ContainsFunc(grants, func(name string) bool {
		want, wanted := w.want.Object[name]
		if all, list := want.([]any); list {
			has, _ := whole.Object[name].([]any)
			return !slices.ContainsFunc(all, func(one any) bool {
				return slices.ContainsFunc(has, func(h any) bool { return equality.Semantic.DeepEqual(one, h) })
			})
		}
		return wanted && !equality.Semantic.DeepEqual(want, whole.Object[name])
	})
}

func (w desired) differs(have metav1.Object) string {
	if err := w.foreign(have); err != nil {
		return err.Error()
	}
	why := ""
	if w.judge != nil {
		why = w.judge(have)
	}
	if why == "" && w.mustRecreate(have) {
		why = "has to be recreated"
	}
	return cmp.Or(why, w.fix(have))
}

// fixed are the fields that cannot be changed: such an object is recreated.
var fixed = []string{"roleRef", "type"}

// mustRecreate reports whether an object of macfleet's must be recreated.
func (w desired) mustRecreate(have metav1.Object) bool {
	whole, _ := have.(*unstructured.Unstructured)
	return w.broken != nil && w.broken(have) || whole != nil && slices.ContainsFunc(fixed, func(name string) bool {
		return w.want.Object[name] != nil && !equality.Semantic.DeepEqual(whole.Object[name], w.want.Object[name])
	})
}

// fix brings the object to the desired state and names the first change.
func (w desired) fix(have metav1.Object) (changed string) {
	if w.asFound {
		return ""
	}
	if owners := have.GetOwnerReferences(); w.unowned && len(owners) > 0 {
		changed = "owner"
		have.SetOwnerReferences(nil)
	}
	if whole, ok := have.(*unstructured.Unstructured); ok {
		for name, value := range w.want.Object {
			if slices.Contains([]string{"apiVersion", "kind", "metadata"}, name) || equality.Semantic.DeepEqual(whole.Object[name], value) {
				continue
			}
			changed, whole.Object[name] = cmp.Or(changed, name), value
		}
	}
	labels, label := completed(have.GetLabels(), w.want.GetLabels(), "label ")
	have.SetLabels(labels)
	notes, note := completed(have.GetAnnotations(), w.want.GetAnnotations(), "annotation ")
	have.SetAnnotations(notes)
	return cmp.Or(changed, label, note)
}

// completed returns labels or annotations with the desired ones, and the first that
// was not right.
func completed(have, want map[string]string, what string) (all map[string]string, changed string) {
	all = make(map[string]string)
	maps.Copy(all, have)
	maps.Copy(all, want)
	for _, name := range sortedKeys(want) {
		if has, there := have[name]; !there || has != want[name] {
			return all, what + name
		}
	}
	return all, ""
}

// ensure brings the object to the desired state and returns it. It makes nothing
// twice: after a lost race for a name or a conflict it reads again.
func (w desired) ensure(ctx context.Context) (have *unstructured.Unstructured, err error) {
	if w.later != nil {
		if w, err = w.later(ctx, true); err != nil {
			return nil, err
		}
	}
	again := func(err error) bool {
		return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) && !namespaceMissing(err)
	}
	if err := retry.OnError(atOnce, again, func() (err error) { have, err = w.once(ctx); return }); err != nil {
		return nil, fmt.Errorf("write %s: %w", w.object(), explain(err))
	}
	return have, nil
}

// namespaceMissing reports a create that failed because its namespace is missing, which no
// retry fixes.
func namespaceMissing(err error) bool {
	status, ok := err.(apierrors.APIStatus)
	return ok && apierrors.IsNotFound(err) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}

func (w desired) once(ctx context.Context) (*unstructured.Unstructured, error) {
	have, err := w.api.Get(ctx, w.want.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return w.api.Create(ctx, w.want, metav1.CreateOptions{FieldManager: manager})
	case err != nil:
		return nil, err
	}
	if err := w.foreign(have); err != nil {
		return nil, err
	}
	if w.mustRecreate(have) {
		if err := w.remove(ctx, have); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		return w.api.Create(ctx, w.want, metav1.CreateOptions{FieldManager: manager})
	}
	changed := ""
	if w.put != nil {
		changed, err = w.put(have)
	} else {
		changed = w.fix(have)
	}
	if err != nil || changed == "" {
		return have, err
	}
	return w.api.Update(ctx, have, metav1.UpdateOptions{FieldManager: manager})
}

// remove deletes the very object that was read.
func (w desired) remove(ctx context.Context, have metav1.Object) error {
	uid := have.GetUID()
	return w.api.Delete(ctx, have.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
}

// revokeOwn deletes the object if it is macfleet's, and skips others.
func (w desired) revokeOwn(ctx context.Context) error {
	if err := w.revoke(ctx); !errors.Is(err, ErrForeign) {
		return err
	}
	return nil
}

// revoke deletes the object if it is macfleet's. Already deleted: nothing to do.
func (w desired) revoke(ctx context.Context) error {
	have, err := w.get(ctx, listing{})
	if err != nil || have == nil {
		return err
	}
	if others := w.others(have); others != "" {
		return fmt.Errorf("delete %s: it %w: %s; fix: if it is unused, delete it yourself", w.object(), ErrForeign, others)
	}
	if err := w.remove(ctx, have); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s: %w", w.object(), explain(err))
	}
	return nil
}
