package kube

import (
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"
)

// document answers a path without an object: the server's version and kinds.
func (a *API) document(r *request) (answer, error) {
	if r.verb != "get" {
		return answer{}, notModelled(r)
	}
	switch r.URL.Path {
	case "/version", "/version/":
		return answer{code: http.StatusOK, body: version()}, nil
	case "/healthz", "/livez", "/readyz":
		return answer{code: http.StatusOK, text: "ok"}, nil
	case "/api", "/api/":
		return answer{code: http.StatusOK, body: metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
		}}, nil
	case "/apis", "/apis/":
		return answer{code: http.StatusOK, body: metav1.APIGroupList{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: a.groups(),
		}}, nil
	}
	if r.version != "" {
		if list := a.resources(schema.GroupVersion{Group: r.group, Version: r.version}); len(list.APIResources) > 0 {
			return answer{code: http.StatusOK, body: list}, nil
		}
	}
	for _, group := range a.groups() {
		if r.URL.Path == "/apis/"+group.Name {
			group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			return answer{code: http.StatusOK, body: group}, nil
		}
	}
	return answer{}, notModelled(r)
}

func version() apiversion.Info {
	return apiversion.Info{Major: "1", Minor: "36", GitVersion: "v1.36.3-sandbox", Compiler: "gc", Platform: "linux/amd64"}
}

// groups returns the named groups with at least one kind.
func (a *API) groups() []metav1.APIGroup {
	groups := []metav1.APIGroup{}
	for _, k := range a.kinds {
		if k.group == "" || !k.served(a.state.dir) || slices.ContainsFunc(groups, func(g metav1.APIGroup) bool { return g.Name == k.group }) {
			continue
		}
		version := metav1.GroupVersionForDiscovery{GroupVersion: k.group + "/" + k.apiVersion(), Version: k.apiVersion()}
		groups = append(groups, metav1.APIGroup{Name: k.group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
	}
	return groups
}

// resources returns the kinds of a group with their subresources.
func (a *API) resources(gv schema.GroupVersion) metav1.APIResourceList {
	list := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: gv.String(),
		APIResources: []metav1.APIResource{},
	}
	for _, k := range a.kinds {
		if k.group != gv.Group || k.apiVersion() != gv.Version || !k.served(a.state.dir) {
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: k.resource, SingularName: k.singular, Kind: k.name, Namespaced: k.namespaced, ShortNames: k.short, Verbs: k.verbs(),
		})
		for _, sub := range k.subresources {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: k.resource + "/" + sub.name, Kind: sub.kind, Group: sub.group, Version: sub.version,
				Namespaced: k.namespaced, Verbs: metav1.Verbs{"create"},
			})
		}
		if k.status {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: k.resource + "/status", Kind: k.name, Namespaced: k.namespaced, Verbs: metav1.Verbs{"get", "patch", "update"},
			})
		}
	}
	return list
}
