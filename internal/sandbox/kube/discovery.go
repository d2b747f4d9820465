package kube

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiversion "k8s.io/apimachinery/pkg/version"
)

func version(*http.Request) (answer, error) {
	return answer{http.StatusOK, apiversion.Info{
		Major:      "1",
		Minor:      "36",
		GitVersion: "v1.36.3-sandbox",
		Compiler:   "gc",
		Platform:   "linux/amd64",
	}}, nil
}

func discovery(document func() any) func(*http.Request) (answer, error) {
	return func(*http.Request) (answer, error) {
		return answer{http.StatusOK, document()}, nil
	}
}

func apiVersions() any {
	return metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions"},
		Versions: []string{"v1"},
	}
}

func apiGroups() any {
	return metav1.APIGroupList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
		Groups:   []metav1.APIGroup{},
	}
}

func apiResources() any {
	return metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList"},
		GroupVersion: "v1",
		APIResources: []metav1.APIResource{
			{Name: namespaces, SingularName: "namespace", Kind: "Namespace", Verbs: metav1.Verbs{"get", "list"}},
			{Name: nodes, SingularName: "node", Kind: "Node", Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch"}},
			{Name: secrets, SingularName: "secret", Kind: "Secret", Namespaced: true, Verbs: metav1.Verbs{"get", "list"}},
		},
	}
}
