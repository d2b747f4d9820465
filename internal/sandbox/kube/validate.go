package kube

import (
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkNode refuses what the real server would not store: another kind, a faulty name, fields of
// the wrong type. It also gives the object its kind, which typed clients leave out.
func checkNode(node *unstructured.Unstructured) error {
	if kind := node.GetKind(); kind != "" && kind != "Node" {
		return apierrors.NewBadRequest(fmt.Sprintf("Node in version \"v1\" cannot be handled as a %s", kind))
	}
	node.SetAPIVersion("v1")
	node.SetKind("Node")
	if name := node.GetName(); !validName(name) {
		return invalid(name, field.Invalid(field.NewPath("metadata", "name"), name,
			"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "+
				"and must start and end with an alphanumeric character"))
	}
	data, err := json.Marshal(node.Object)
	if err == nil {
		err = json.Unmarshal(data, &corev1.Node{})
	}
	if err != nil {
		return apierrors.NewBadRequest("Node in version \"v1\" cannot be handled as a Node: " + err.Error())
	}
	return nil
}

// checkPatch refuses a patch that was made for another state or another object of that name.
func checkPatch(present, wanted *unstructured.Unstructured) error {
	if version := wanted.GetResourceVersion(); version != "" && version != present.GetResourceVersion() {
		return apierrors.NewConflict(groupResource(nodes), present.GetName(),
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	if uid := wanted.GetUID(); uid != "" && uid != present.GetUID() {
		return apierrors.NewConflict(groupResource(nodes), present.GetName(),
			//lint:ignore ST1005 the real server's wording
			fmt.Errorf("Precondition failed: UID in precondition: %s, UID in object meta: %s", uid, present.GetUID()))
	}
	return nil
}

// checkUpdate refuses changes of what is fixed once it is set.
func checkUpdate(before, after *unstructured.Unstructured) error {
	if after.GetName() != before.GetName() {
		return apierrors.NewBadRequest("the name of the object does not match the name on the URL")
	}
	was, _, _ := unstructured.NestedString(before.Object, "spec", "providerID")
	is, _, _ := unstructured.NestedString(after.Object, "spec", "providerID")
	if was != "" && is != was {
		return invalid(before.GetName(), field.Forbidden(field.NewPath("spec", "providerID"),
			`node updates may not change providerID except from "" to valid`))
	}
	return nil
}

func invalid(name string, cause *field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Node"}, name, field.ErrorList{cause})
}
