package kube

import (
	"encoding/base64"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func uid(text string) types.UID { return types.UID(text) }

// withType gives the object's JSON with the kind that its folder implies.
func withType(content map[string]any, resource string) []byte {
	if content == nil {
		content = map[string]any{}
	}
	content["apiVersion"], content["kind"] = "v1", kinds()[resource].name
	data, _ := json.Marshal(content) // it has just been decoded from JSON
	return data
}

// mergeStringData does to a hand-written Secret what the real server does on a write: plain values
// become base64 ones.
func mergeStringData(object *unstructured.Unstructured) {
	plain, _, _ := unstructured.NestedStringMap(object.Object, "stringData")
	for key, value := range plain {
		_ = unstructured.SetNestedField(object.Object, base64.StdEncoding.EncodeToString([]byte(value)), "data", key)
	}
	unstructured.RemoveNestedField(object.Object, "stringData")
}
