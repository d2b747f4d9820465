package kube

import (
	"encoding/base64"

	rbacv1 "k8s.io/api/rbac/v1"
)

// fill sets the defaults of the real server in an object.
func (k *kind) fill(o *object) {
	switch k.resource {
	case secrets:
		mergeStringData(o)
		fillIn(o, "Opaque", "type")
	case namespaces:
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["kubernetes.io/metadata.name"] = o.GetName()
		o.SetLabels(labels)
		fillIn(o, []any{"kubernetes"}, "spec", "finalizers")
		fillIn(o, "Active", "status", "phase")
	case pods:
		fillIn(o, "Always", "spec", "restartPolicy")
		fillIn(o, int64(30), "spec", "terminationGracePeriodSeconds")
		fillIn(o, "ClusterFirst", "spec", "dnsPolicy")
		fillIn(o, "default-scheduler", "spec", "schedulerName")
		fillIn(o, "default", "spec", "serviceAccountName")
		fillIn(o, "Pending", "status", "phase")
		fillIn(o, "BestEffort", "status", "qosClass")
	case "services":
		fillIn(o, "ClusterIP", "spec", "type")
		fillIn(o, "None", "spec", "clusterIP")
	case clusterRoleBindings, roleBindings:
		fillIn(o, rbacGroup, "roleRef", "apiGroup")
		for _, one := range itemsAt(o, "subjects") {
			if one["kind"] != rbacv1.ServiceAccountKind && (one["apiGroup"] == nil || one["apiGroup"] == "") {
				one["apiGroup"] = rbacGroup
			}
		}
	}
}

// fillIn sets a value if it is missing.
func fillIn(o *object, value any, path ...string) {
	if present := at(o, path...); present == nil || present == "" {
		set(o, value, path...)
	}
}

// secretValue returns the decoded value under a key of a Secret.
func secretValue(secret *object, key string) (string, bool) {
	encoded, ok := at(secret, "data", key).(string)
	if !ok {
		return "", false
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	return string(data), err == nil
}
