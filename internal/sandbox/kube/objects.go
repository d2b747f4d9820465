package kube

import (
	"encoding/base64"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// object is any object of the cluster.
type object = unstructured.Unstructured

// jsonObject decodes an object with whole numbers as int64, as all readers here expect.
func jsonObject(data []byte) (map[string]any, error) {
	var content map[string]any
	if err := utiljson.Unmarshal(data, &content); err != nil || content == nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body is not a JSON object: %v", err))
	}
	return content, nil
}

// at returns the value at a path, or nil.
func at(o *object, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	return value
}

func textAt(o *object, path ...string) string {
	text, _ := at(o, path...).(string)
	return text
}

func numberAt(o *object, path ...string) int64 {
	number, _ := at(o, path...).(int64)
	return number
}

// itemsAt returns the objects of a list.
func itemsAt(o *object, path ...string) []map[string]any {
	list, _ := at(o, path...).([]any)
	return mapsOf(list)
}

func mapsOf(list []any) []map[string]any {
	var found []map[string]any
	for _, item := range list {
		if fields, ok := item.(map[string]any); ok {
			found = append(found, fields)
		}
	}
	return found
}

// set sets the value at a path, and creates missing parents.
func set(o *object, value any, path ...string) {
	_ = unstructured.SetNestedField(o.Object, value, path...)
}

// mergeStringData encodes a Secret's plain values, as the real server does on a write.
func mergeStringData(o *object) {
	plain, _, _ := unstructured.NestedStringMap(o.Object, "stringData")
	for key, value := range plain {
		set(o, base64.StdEncoding.EncodeToString([]byte(value)), "data", key)
	}
	unstructured.RemoveNestedField(o.Object, "stringData")
}

// newObject returns an object of a kind, as the cluster creates it.
func newObject(k *kind, namespace, name string, created time.Time) *object {
	o := &object{Object: map[string]any{}}
	o.SetGroupVersionKind(k.gvk())
	o.SetName(name)
	o.SetNamespace(namespace)
	o.SetUID(newUID())
	set(o, stampText(created), "metadata", "creationTimestamp")
	return o
}

// stampText formats a time as objects do, to the second.
func stampText(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// microText formats a time as Leases do.
func microText(t time.Time) string { return t.UTC().Format(metav1.RFC3339Micro) }

// timeAt returns the time at a path, or the zero time.
func timeAt(o *object, path ...string) time.Time {
	t, _ := time.Parse(time.RFC3339, textAt(o, path...))
	return t
}

// condition returns a condition of an object's status, or nil.
func condition(o *object, kind string) map[string]any {
	for _, c := range itemsAt(o, "status", "conditions") {
		if c["type"] == kind {
			return c
		}
	}
	return nil
}

// setCondition replaces the condition of the same type. Its last transition is now, unless the status
// is unchanged.
func setCondition(o *object, wanted map[string]any, now time.Time) {
	wanted["lastTransitionTime"] = stampText(now)
	list, _ := at(o, "status", "conditions").([]any)
	for i, c := range mapsOf(list) {
		if c["type"] != wanted["type"] {
			continue
		}
		if c["status"] == wanted["status"] && c["lastTransitionTime"] != nil {
			wanted["lastTransitionTime"] = c["lastTransitionTime"]
		}
		list[i] = wanted
		return
	}
	set(o, append(list, any(wanted)), "status", "conditions")
}
