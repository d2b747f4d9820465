package kube

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
)

func (a *API) create(r *request) (answer, error) {
	if r.name != "" {
		return answer{}, apierrors.NewMethodNotSupported(r.kind.groupResource(), r.verb)
	}
	o, err := r.kind.read(r)
	if err != nil {
		return answer{}, err
	}
	if err := a.place(r, o); err != nil {
		return answer{}, err
	}
	if o.GetResourceVersion() != "" {
		return answer{}, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	o.SetUID(newUID())
	o.SetCreationTimestamp(metav1.NewTime(r.now.Truncate(1e9)))
	o.SetDeletionTimestamp(nil)
	o.SetDeletionGracePeriodSeconds(nil)
	o.SetManagedFields(nil)
	if r.kind.generation {
		o.SetGeneration(1)
	}
	if r.kind.status && !r.kind.statusOnCreate {
		delete(o.Object, "status")
	}
	r.kind.fill(o)
	if err := r.kind.check(o, nil); err != nil {
		return answer{}, err
	}
	if err := a.checkEscalation(r, nil, o); err != nil {
		return answer{}, err
	}
	present, err := a.state.peek(r.resource, o.GetNamespace(), o.GetName())
	if err != nil {
		return answer{}, err
	}
	if present != nil {
		return answer{}, apierrors.NewAlreadyExists(r.kind.groupResource(), o.GetName())
	}
	if !r.dryRun() {
		err = a.state.put(r.resource, o)
	}
	return answer{code: http.StatusCreated, body: o}, err
}

// place sets a new object's name and namespace, and refuses a missing namespace.
func (a *API) place(r *request, o *object) error {
	if given := o.GetNamespace(); given != "" && given != r.objectNamespace() {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	o.SetNamespace(r.objectNamespace())
	if o.GetName() == "" && o.GetGenerateName() != "" {
		o.SetName(o.GetGenerateName() + randomSuffix())
	}
	if !r.kind.namespaced {
		return nil
	}
	if r.namespace == "" {
		return apierrors.NewMethodNotSupported(r.kind.groupResource(), r.verb)
	}
	namespace, err := a.state.peek(namespaces, "", r.namespace)
	if err != nil {
		return err
	}
	if namespace == nil {
		return apierrors.NewNotFound(a.kinds.named(namespaces).groupResource(), r.namespace)
	}
	if namespace.GetDeletionTimestamp() != nil {
		refused := apierrors.NewForbidden(r.kind.groupResource(), o.GetName(),
			fmt.Errorf("unable to create new content in namespace %s because it is being terminated", r.namespace))
		refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: "NamespaceTerminating", Message: fmt.Sprintf("namespace %s is being terminated", r.namespace), Field: "metadata.namespace",
		})
		return refused
	}
	return nil
}

func (a *API) update(r *request) (answer, error) {
	present, err := a.target(r)
	if err != nil {
		return answer{}, err
	}
	wanted, err := r.kind.read(r)
	if err != nil {
		return answer{}, err
	}
	if wanted.GetResourceVersion() == "" && r.kind.conditional {
		return answer{}, invalid(r.kind, r.name, field.Invalid(field.NewPath("metadata", "resourceVersion"), "", "must be specified for an update"))
	}
	return a.replace(r, present, wanted)
}

// replace writes wanted over present, within the scope of the request.
func (a *API) replace(r *request, present, wanted *object) (answer, error) {
	if wanted.GetName() != present.GetName() {
		return answer{}, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", wanted.GetName(), present.GetName()))
	}
	if given := wanted.GetNamespace(); given != "" && given != present.GetNamespace() {
		return answer{}, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if err := r.kind.checkVersion(present, wanted); err != nil {
		return answer{}, err
	}
	r.kind.restore(wanted, present, r.sub)
	r.kind.fill(wanted)
	// An object that a person wrote lacks the server's defaults: that is not a change.
	before, err := r.kind.normal(present.DeepCopy().Object)
	if err != nil {
		return answer{}, err
	}
	r.kind.fill(before)
	if err := r.kind.check(wanted, before); err != nil {
		return answer{}, err
	}
	if err := a.checkEscalation(r, present, wanted); err != nil {
		return answer{}, err
	}
	// A write without a change keeps the resource version.
	if r.dryRun() || reflect.DeepEqual(wanted.Object, before.Object) {
		return answer{code: http.StatusOK, body: wanted}, nil
	}
	if r.kind.generation && !reflect.DeepEqual(wanted.Object["spec"], before.Object["spec"]) {
		wanted.SetGeneration(present.GetGeneration() + 1)
	}
	grace := present.GetDeletionGracePeriodSeconds()
	if present.GetDeletionTimestamp() != nil && len(wanted.GetFinalizers()) == 0 && (grace == nil || *grace == 0) {
		// The last finalizer was removed from a deleted object.
		return answer{code: http.StatusOK, body: wanted}, a.state.remove(r.resource, present)
	}
	return answer{code: http.StatusOK, body: wanted}, a.state.put(r.resource, wanted)
}

// checkVersion refuses a write based on another version, or on another object of that name.
func (k *kind) checkVersion(present, wanted *object) error {
	if version := wanted.GetResourceVersion(); version != "" && version != present.GetResourceVersion() {
		return apierrors.NewConflict(k.groupResource(), present.GetName(),
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	if uid := wanted.GetUID(); uid != "" && uid != present.GetUID() {
		return apierrors.NewConflict(k.groupResource(), present.GetName(),
			//lint:ignore ST1005 the real server's wording
			fmt.Errorf("Precondition failed: UID in precondition: %s, UID in object meta: %s", uid, present.GetUID()))
	}
	return nil
}

// restore reverts what a write cannot change: the object's identity and lifecycle, and either its
// status or all but that.
func (k *kind) restore(wanted, present *object, sub string) {
	metadata, _ := present.Object["metadata"].(map[string]any)
	for _, name := range []string{"namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName"} {
		unstructured.RemoveNestedField(wanted.Object, "metadata", name)
		if value, ok := metadata[name]; ok {
			set(wanted, value, "metadata", name)
		}
	}
	// The record of who wrote which field is kept, and may be edited. The simulator itself adds nothing to it.
	if len(wanted.GetManagedFields()) == 0 {
		wanted.SetManagedFields(present.GetManagedFields())
	}
	if !k.status {
		return
	}
	if sub == "status" {
		status, had := wanted.Object["status"]
		metadata := wanted.Object["metadata"]
		wanted.Object = present.DeepCopy().Object
		wanted.Object["metadata"] = metadata
		delete(wanted.Object, "status")
		if had {
			wanted.Object["status"] = status
		}
		return
	}
	delete(wanted.Object, "status")
	if status, ok := present.Object["status"]; ok {
		wanted.Object["status"] = status
	}
}

// target returns the object of a request.
func (a *API) target(r *request) (*object, error) {
	present, err := a.state.get(r.resource, r.objectNamespace(), r.name)
	if err == nil && present == nil {
		err = apierrors.NewNotFound(r.kind.groupResource(), r.name)
	}
	return present, err
}

func newUID() types.UID {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return types.UID(cloud.FormatUUID(b))
}

// randomSuffix returns the five characters at the end of a generated name.
func randomSuffix() string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	var suffix strings.Builder
	for range 5 {
		n, _ := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet)))) // never fails
		suffix.WriteByte(alphabet[n.Int64()])
	}
	return suffix.String()
}
