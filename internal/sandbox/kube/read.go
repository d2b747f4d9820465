package kube

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

func (a *API) get(resource string) func(*http.Request) (answer, error) {
	return func(r *http.Request) (answer, error) {
		object, err := a.state.get(resource, r.PathValue("ns"), r.PathValue("n"))
		if err != nil {
			return answer{}, err
		}
		if object == nil {
			return answer{}, apierrors.NewNotFound(groupResource(resource), r.PathValue("n"))
		}
		return answer{http.StatusOK, object.Object}, nil
	}
}

type listMeta struct {
	ResourceVersion    string `json:"resourceVersion"`
	Continue           string `json:"continue,omitempty"`
	RemainingItemCount *int   `json:"remainingItemCount,omitempty"`
}

type objectList struct {
	Kind       string           `json:"kind"`
	APIVersion string           `json:"apiVersion"`
	Metadata   listMeta         `json:"metadata"`
	Items      []map[string]any `json:"items"`
}

func (a *API) list(resource string) func(*http.Request) (answer, error) {
	return func(r *http.Request) (answer, error) {
		query := r.URL.Query()
		// What would silently change the answer's meaning is refused.
		if query.Get("fieldSelector") != "" || query.Get("watch") != "" && query.Get("watch") != "false" {
			return answer{}, apierrors.NewBadRequest("fieldSelector and watch are NOT MODELLED by the sandbox's Kubernetes")
		}
		selector, err := labels.Parse(query.Get("labelSelector"))
		if err != nil {
			return answer{}, apierrors.NewBadRequest("unable to parse labelSelector: " + err.Error())
		}
		objects, err := a.state.list(resource, r.PathValue("ns"))
		if err != nil {
			return answer{}, err
		}
		objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
			return !selector.Matches(labels.Set(o.GetLabels()))
		})
		version, err := a.state.version()
		if err != nil {
			return answer{}, err
		}
		list := objectList{
			Kind:       kinds()[resource].name + "List",
			APIVersion: "v1",
			Metadata:   listMeta{ResourceVersion: strconv.FormatUint(version, 10)},
			Items:      []map[string]any{},
		}
		objects, err = list.cut(objects, query)
		for _, object := range objects {
			list.Items = append(list.Items, object.Object)
		}
		return answer{http.StatusOK, list}, err
	}
}

// position is what a continue token holds: the key of the last object given.
type position struct {
	After string `json:"after"`
}

func key(object *unstructured.Unstructured) string {
	return object.GetNamespace() + "/" + object.GetName()
}

// cut gives the page that limit and continue ask for, and enters in the list where the next begins.
// A position by name survives objects that come and go between two pages.
func (l *objectList) cut(objects []*unstructured.Unstructured, query url.Values) ([]*unstructured.Unstructured, error) {
	if token := query.Get("continue"); token != "" {
		var from position
		data, err := base64.RawURLEncoding.DecodeString(token)
		if err == nil {
			err = json.Unmarshal(data, &from)
		}
		if err != nil {
			return nil, apierrors.NewBadRequest("continue key is not valid: " + err.Error())
		}
		objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
			return strings.Compare(key(o), from.After) <= 0
		})
	}
	limit, err := strconv.Atoi(query.Get("limit"))
	if query.Get("limit") != "" && (err != nil || limit < 0) {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("limit %q is not a whole number", query.Get("limit")))
	}
	if limit == 0 || len(objects) <= limit {
		return objects, nil
	}
	data, err := json.Marshal(position{After: key(objects[limit-1])})
	if err != nil {
		return nil, fmt.Errorf("make the continue key: %w", err)
	}
	remaining := len(objects) - limit
	l.Metadata.Continue, l.Metadata.RemainingItemCount = base64.RawURLEncoding.EncodeToString(data), &remaining
	return objects[:limit], nil
}
