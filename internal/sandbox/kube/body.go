package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// message is an object that can be decoded from protobuf, which the typed clients send by default.
type message interface{ Unmarshal(data []byte) error }

// typed returns an empty object of a built-in kind, or nil for a kind from a definition.
func (k *kind) typed() runtime.Object {
	empty, err := scheme.Scheme.New(k.gvk())
	if err != nil {
		return nil
	}
	return empty
}

// read returns the object in a request's body.
func (k *kind) read(r *request) (*object, error) {
	switch r.contentType {
	case runtime.ContentTypeJSON, "":
		content, err := jsonObject(r.data)
		if err != nil {
			return nil, err
		}
		return k.normal(content)
	case runtime.ContentTypeProtobuf:
		body, ok := k.typed().(message)
		if !ok {
			return nil, unsupported(r.contentType, runtime.ContentTypeJSON)
		}
		if err := fromProtobuf(r.data, body); err != nil {
			return nil, err
		}
		data, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode the %s: %w", k.name, err)
		}
		content, err := jsonObject(data)
		if err != nil {
			return nil, err
		}
		return k.normal(content)
	default:
		return nil, unsupported(r.contentType, runtime.ContentTypeJSON)
	}
}

// normal returns an object in the form in which it is stored: of its kind, without unknown fields. It
// refuses another kind and values of the wrong type.
func (k *kind) normal(content map[string]any) (*object, error) {
	o := &object{Object: content}
	gvk := k.gvk()
	if given := o.GetKind(); given != "" && given != k.name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s", given, gvk.Version, k.name))
	}
	if given := o.GetAPIVersion(); given != "" && given != gvk.GroupVersion().String() {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", given, gvk.GroupVersion()))
	}
	if empty := k.typed(); empty != nil {
		data, err := json.Marshal(content)
		if err == nil {
			err = json.Unmarshal(data, empty)
		}
		if err == nil {
			o.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(empty)
		}
		if err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", k.name, gvk.Version, k.name, err))
		}
	}
	if _, ok := o.Object["metadata"].(map[string]any); !ok {
		o.Object["metadata"] = map[string]any{}
	}
	if created := o.GetCreationTimestamp(); created.IsZero() {
		unstructured.RemoveNestedField(o.Object, "metadata", "creationTimestamp")
	}
	o.SetGroupVersionKind(gvk)
	return o, nil
}

// bodyInto reads a body that is not a stored object, such as an eviction, in either format.
func bodyInto(r *request, into message) error {
	if len(r.data) == 0 {
		return nil
	}
	switch r.contentType {
	case runtime.ContentTypeProtobuf:
		return fromProtobuf(r.data, into)
	case runtime.ContentTypeJSON, "":
		if err := json.Unmarshal(r.data, into); err != nil {
			return apierrors.NewBadRequest("the body: " + err.Error())
		}
		return nil
	default:
		return unsupported(r.contentType, runtime.ContentTypeJSON)
	}
}

// fromProtobuf removes the envelope of a message: four magic bytes and the raw object.
func fromProtobuf(data []byte, into message) error {
	raw, ok := bytes.CutPrefix(data, []byte("k8s\x00"))
	if !ok {
		return apierrors.NewBadRequest("the body does not start like a Kubernetes protobuf")
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(raw); err != nil {
		return apierrors.NewBadRequest("the body's envelope: " + err.Error())
	}
	if err := into.Unmarshal(envelope.Raw); err != nil {
		return apierrors.NewBadRequest("the body's object: " + err.Error())
	}
	return nil
}

func unsupported(kind, wanted string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusUnsupportedMediaType,
		Reason:  metav1.StatusReasonUnsupportedMediaType,
		Message: fmt.Sprintf("a body of type %q is NOT MODELLED by the sandbox's Kubernetes; send %s", kind, wanted),
	}}
}
