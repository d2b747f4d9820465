package kube

import (
	"encoding/json"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

func (a *API) patch(r *request) (answer, error) {
	present, err := a.target(r)
	if err != nil {
		return answer{}, err
	}
	patched, err := r.kind.patched(types.PatchType(r.contentType), encoded(present.Object), r.data)
	if err != nil {
		return answer{}, err
	}
	content, err := jsonObject(patched)
	if err != nil {
		return answer{}, err
	}
	wanted, err := r.kind.normal(content)
	if err != nil {
		return answer{}, err
	}
	return a.replace(r, present, wanted)
}

// patched returns the object after a patch. Server-side apply is not modelled.
func (k *kind) patched(form types.PatchType, original, patch []byte) ([]byte, error) {
	switch form {
	case types.MergePatchType:
		return mergePatched(original, patch)
	case types.JSONPatchType:
		return jsonPatched(original, patch)
	case types.StrategicMergePatchType:
		if typed := k.typed(); typed != nil {
			patched, err := strategicpatch.StrategicMergePatch(original, patch, typed)
			if err != nil {
				return nil, apierrors.NewBadRequest("strategic merge patch: " + err.Error())
			}
			return patched, nil
		}
	}
	return nil, unsupported(string(form), string(types.MergePatchType)+" or "+string(types.JSONPatchType))
}

func mergePatched(original, patch []byte) ([]byte, error) {
	changes, err := jsonObject(patch)
	if err != nil {
		return nil, err
	}
	target, err := jsonObject(original)
	if err != nil {
		return nil, err
	}
	return json.Marshal(merge(target, changes))
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

// jsonPatched applies an RFC 6902 patch; a failed test is a 422, as on the real server.
func jsonPatched(original, patch []byte) ([]byte, error) {
	steps, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	patched, err := steps.Apply(original)
	if err != nil {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return patched, nil
}
