package kubernetes

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// changedByOthers says who wrote an object's data last, if it was not macfleet:
// so a content that must not be read is compared all the same. A server that
// keeps no record of managers says nothing.
func changedByOthers(have metav1.Object) string {
	for _, entry := range have.GetManagedFields() {
		if entry.Manager == manager || entry.FieldsV1 == nil {
			continue
		}
		var owned map[string]json.RawMessage
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned); err != nil {
			continue
		}
		if _, data := owned["f:data"]; data {
			return "its content was changed by " + entry.Manager
		}
	}
	return ""
}
