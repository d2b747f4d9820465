package kube

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
)

func (a *API) createNode(r *http.Request) (answer, error) {
	body, err := nodeBody(r)
	if err != nil {
		return answer{}, err
	}
	node := &unstructured.Unstructured{Object: body}
	if err := checkNode(node); err != nil {
		return answer{}, err
	}
	present, err := a.state.get(nodes, "", node.GetName())
	if err != nil {
		return answer{}, err
	}
	if present != nil {
		return answer{}, apierrors.NewAlreadyExists(groupResource(nodes), node.GetName())
	}
	node.SetNamespace("")
	node.SetUID(newUID())
	node.SetCreationTimestamp(metav1.NewTime(time.Now().UTC().Truncate(time.Second)))
	if r.URL.Query().Has("dryRun") {
		return answer{http.StatusCreated, node.Object}, nil
	}
	if err := a.state.put(nodes, node); err != nil {
		return answer{}, err
	}
	return answer{http.StatusCreated, node.Object}, nil
}

// patchNode applies a merge patch. As on the real server, the status is out of its reach and the
// identity is not for changing.
func (a *API) patchNode(r *http.Request) (answer, error) {
	present, err := a.node(r)
	if err != nil {
		return answer{}, err
	}
	patch, err := patchBody(r)
	if err != nil {
		return answer{}, err
	}
	wanted, _ := merge(present.DeepCopy().Object, patch).(map[string]any)
	node := &unstructured.Unstructured{Object: wanted}
	if err := checkPatch(present, node); err != nil {
		return answer{}, err
	}
	restore(node, present)
	if err := checkNode(node); err != nil {
		return answer{}, err
	}
	if err := checkUpdate(present, node); err != nil {
		return answer{}, err
	}
	// A patch that changes nothing is no write: the resource version stays.
	if r.URL.Query().Has("dryRun") || reflect.DeepEqual(node.Object, present.Object) {
		return answer{http.StatusOK, node.Object}, nil
	}
	if err := a.state.put(nodes, node); err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, node.Object}, nil
}

// restore takes back what a write through the main resource cannot change.
func restore(node, present *unstructured.Unstructured) {
	node.SetUID(present.GetUID())
	node.SetResourceVersion(present.GetResourceVersion())
	node.SetNamespace("")
	node.SetCreationTimestamp(present.GetCreationTimestamp())
	delete(node.Object, "status")
	if status, ok := present.Object["status"]; ok {
		node.Object["status"] = status
	}
}

func (a *API) deleteNode(r *http.Request) (answer, error) {
	present, err := a.node(r)
	if err != nil {
		return answer{}, err
	}
	options, err := deleteBody(r)
	if err != nil {
		return answer{}, err
	}
	if err := checkPreconditions(present, options.Preconditions); err != nil {
		return answer{}, err
	}
	if len(options.DryRun) == 0 {
		if err := a.state.remove(nodes, present); err != nil {
			return answer{}, err
		}
	}
	return answer{http.StatusOK, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Details:  &metav1.StatusDetails{Name: present.GetName(), Kind: nodes, UID: present.GetUID()},
	}}, nil
}

func checkPreconditions(present *unstructured.Unstructured, wanted *metav1.Preconditions) error {
	if wanted == nil {
		return nil
	}
	if wanted.UID != nil && *wanted.UID != present.GetUID() {
		return apierrors.NewConflict(groupResource(nodes), present.GetName(),
			fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s)", *wanted.UID, present.GetUID()))
	}
	if wanted.ResourceVersion != nil && *wanted.ResourceVersion != present.GetResourceVersion() {
		return apierrors.NewConflict(groupResource(nodes), present.GetName(),
			fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s)",
				*wanted.ResourceVersion, present.GetResourceVersion()))
	}
	return nil
}

// node gives the Node a request names.
func (a *API) node(r *http.Request) (*unstructured.Unstructured, error) {
	present, err := a.state.get(nodes, "", r.PathValue("n"))
	if err == nil && present == nil {
		err = apierrors.NewNotFound(groupResource(nodes), r.PathValue("n"))
	}
	return present, err
}

// merge applies an RFC 7396 patch: null deletes, objects merge, all else replaces.
func merge(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for name, value := range changes {
		if value == nil {
			delete(object, name)
			continue
		}
		object[name] = merge(object[name], value)
	}
	return object
}

func newUID() types.UID {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return uid(cloud.FormatUUID(b))
}
