package kube

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is one sort of object and the folder it lies in.
type kind struct {
	resource   string
	name       string
	namespaced bool
}

const (
	nodes      = "nodes"
	namespaces = "namespaces"
	secrets    = "secrets"
)

func kinds() map[string]kind {
	return map[string]kind{
		nodes:      {resource: nodes, name: "Node"},
		namespaces: {resource: namespaces, name: "Namespace"},
		secrets:    {resource: secrets, name: "Secret", namespaced: true},
	}
}

func groupResource(resource string) schema.GroupResource {
	return schema.GroupResource{Resource: resource}
}

// validName tells whether name can be an object's name. It is also what keeps a name from a
// request from naming a file outside of the state folder.
func validName(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	for i, c := range []byte(name) {
		inner := c == '-' || c == '.'
		if inner && (i == 0 || i == len(name)-1) {
			return false
		}
		if !inner && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}
