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
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

func (a *API) get(r *request) (answer, error) {
	found, err := a.state.peek(r.resource, r.objectNamespace(), r.name)
	if err != nil {
		return answer{}, err
	}
	if found == nil {
		return answer{}, apierrors.NewNotFound(r.kind.groupResource(), r.name)
	}
	found, err = a.shown(r.resource, found, r.now)
	return answer{code: http.StatusOK, body: found}, err
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

	objects []*object
}

func (a *API) list(r *request) (answer, error) {
	objects, err := a.selected(r)
	if err != nil {
		return answer{}, err
	}
	return a.listed(r, objects)
}

// selected returns the objects of a list or a watch.
func (a *API) selected(r *request) ([]*object, error) {
	matches, err := r.kind.selector(r.query)
	if err != nil {
		return nil, err
	}
	objects, err := a.state.list(r.resource, r.objectNamespace())
	if err != nil {
		return nil, err
	}
	var found []*object
	for _, o := range objects {
		if matches(o) {
			if o, err = a.shown(r.resource, o, r.now); err != nil {
				return nil, err
			}
			found = append(found, o)
		}
	}
	return found, nil
}

func (a *API) listed(r *request, objects []*object) (answer, error) {
	list := &objectList{
		Kind:       r.kind.name + "List",
		APIVersion: r.kind.gvk().GroupVersion().String(),
		Metadata:   listMeta{ResourceVersion: strconv.FormatUint(a.state.version, 10)},
		Items:      []map[string]any{},
	}
	var err error
	if list.objects, err = list.cut(objects, r.query); err != nil {
		return answer{}, err
	}
	for _, o := range list.objects {
		list.Items = append(list.Items, o.Object)
	}
	return answer{code: http.StatusOK, body: list}, nil
}

// selector returns the filter of a labelSelector and a fieldSelector.
func (k *kind) selector(query url.Values) (func(*object) bool, error) {
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest("unable to parse labelSelector: " + err.Error())
	}
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest("unable to parse fieldSelector: " + err.Error())
	}
	known := append([]string{"metadata.name", "metadata.namespace"}, k.selectable...)
	for _, wanted := range byField.Requirements() {
		if !slices.Contains(known, wanted.Field) {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", wanted.Field))
		}
	}
	return func(o *object) bool {
		return byLabel.Matches(labels.Set(o.GetLabels())) && (byField.Empty() || byField.Matches(fieldsOf{o}))
	}, nil
}

// fieldsOf gives a field selector access to an object.
type fieldsOf struct{ *object }

// Has reports whether the object has the field, possibly empty.
func (f fieldsOf) Has(string) bool { return true }

// Get returns the field as text.
func (f fieldsOf) Get(name string) string {
	value := at(f.object, strings.Split(name, ".")...)
	if name == "source" {
		value = at(f.object, "source", "component")
	}
	switch value := value.(type) {
	case string:
		return value
	case nil:
		if name == "spec.unschedulable" {
			return "false"
		}
		return ""
	default:
		return fmt.Sprint(value)
	}
}

// position is the content of a continue token: the key of the last object returned.
type position struct {
	After string `json:"after"`
}

func key(o *object) string { return o.GetNamespace() + "/" + o.GetName() }

// cut returns the page that limit and continue select, and sets the list's continue token. A position
// by name is stable when objects are created or deleted between two pages.
func (l *objectList) cut(objects []*object, query url.Values) ([]*object, error) {
	if token := query.Get("continue"); token != "" {
		var from position
		data, err := base64.RawURLEncoding.DecodeString(token)
		if err == nil {
			err = json.Unmarshal(data, &from)
		}
		if err != nil {
			return nil, apierrors.NewBadRequest("continue key is not valid: " + err.Error())
		}
		objects = slices.DeleteFunc(objects, func(o *object) bool { return strings.Compare(key(o), from.After) <= 0 })
	}
	limit, err := strconv.Atoi(query.Get("limit"))
	if query.Get("limit") != "" && (err != nil || limit < 0) {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("limit %q is not a whole number", query.Get("limit")))
	}
	if limit == 0 || len(objects) <= limit {
		return objects, nil
	}
	remaining := len(objects) - limit
	l.Metadata.Continue, l.Metadata.RemainingItemCount = base64.RawURLEncoding.EncodeToString(encoded(position{After: key(objects[limit-1])})), &remaining
	return objects[:limit], nil
}
