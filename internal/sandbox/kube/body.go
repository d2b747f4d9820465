package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const (
	// maxBody is the real server's limit of a request.
	maxBody = 3 << 20

	mergePatch = string(types.MergePatchType)
)

// message is an object that knows its form in protobuf, in which the typed clients send their
// bodies unless they are told otherwise.
type message interface{ Unmarshal(data []byte) error }

// nodeBody reads a Node in either of the two forms.
func nodeBody(r *http.Request) (map[string]any, error) {
	data, kind, err := readBody(r)
	if err != nil {
		return nil, err
	}
	switch kind {
	case runtime.ContentTypeJSON:
		return object(data)
	case runtime.ContentTypeProtobuf:
		var node corev1.Node
		if err := fromProtobuf(data, &node); err != nil {
			return nil, err
		}
		if data, err = json.Marshal(&node); err != nil {
			return nil, fmt.Errorf("encode the Node: %w", err)
		}
		return object(data)
	default:
		return nil, unsupported(kind, runtime.ContentTypeJSON)
	}
}

// patchBody reads a merge patch.
func patchBody(r *http.Request) (map[string]any, error) {
	data, kind, err := readBody(r)
	if err != nil {
		return nil, err
	}
	if kind != mergePatch {
		return nil, unsupported(kind, mergePatch)
	}
	return object(data)
}

// deleteBody reads the options of a deletion, which may be left out.
func deleteBody(r *http.Request) (metav1.DeleteOptions, error) {
	var options metav1.DeleteOptions
	data, kind, err := readBody(r)
	if err != nil || len(data) == 0 {
		return options, err
	}
	if kind == runtime.ContentTypeProtobuf {
		return options, fromProtobuf(data, &options)
	}
	if err := json.Unmarshal(data, &options); err != nil {
		return options, apierrors.NewBadRequest("delete options: " + err.Error())
	}
	return options, nil
}

func readBody(r *http.Request) (data []byte, contentType string, err error) {
	data, err = io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, "", apierrors.NewBadRequest("read the body: " + err.Error())
	}
	if len(data) > maxBody {
		return nil, "", apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	given := r.Header.Get("Content-Type")
	if kind, _, err := mime.ParseMediaType(given); err == nil {
		given = kind
	}
	return data, given, nil
}

// fromProtobuf takes a message out of its envelope: four bytes of magic and the raw object.
func fromProtobuf(data []byte, into message) error {
	raw, ok := bytes.CutPrefix(data, []byte("k8s\x00"))
	if !ok {
		return apierrors.NewBadRequest("the body does not begin as a Kubernetes protobuf does")
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

func object(data []byte) (map[string]any, error) {
	var body map[string]any
	if err := utiljson.Unmarshal(data, &body); err != nil || body == nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body is not a JSON object: %v", err))
	}
	return body, nil
}

func unsupported(kind, wanted string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusUnsupportedMediaType,
		Reason:  metav1.StatusReasonUnsupportedMediaType,
		Message: fmt.Sprintf("a body of type %q is NOT MODELLED by the sandbox's Kubernetes; send %s", kind, wanted),
	}}
}
