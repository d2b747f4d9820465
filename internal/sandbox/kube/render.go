package kube

import (
	"maps"
	"mime"
	"net/http"
	"strings"
)

// render converts an answer to the format that the client prefers: the objects, only their metadata,
// or a table.
func render(r *request, answered answer) (answer, error) {
	form := accepted(r.Header.Get("Accept"))
	if r.kind == nil || form == "" || answered.code >= http.StatusBadRequest {
		return answered, nil
	}
	switch body := answered.body.(type) {
	case *object:
		answered.body = renderObject(r, form, body)
	case *objectList:
		if form == formTable {
			t := newTable(r, body.objects)
			t.Metadata = &body.Metadata
			answered.body = t
			break
		}
		items := []map[string]any{}
		for _, o := range body.objects {
			items = append(items, partial(o))
		}
		answered.body = objectList{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1", Metadata: body.Metadata, Items: items}
	}
	return answered, nil
}

func renderObject(r *request, form string, o *object) any {
	switch form {
	case formTable:
		return newTable(r, []*object{o})
	case formPartial, formPartialList:
		return partial(o)
	}
	return o
}

const (
	formTable       = "Table"
	formPartial     = "PartialObjectMetadata"
	formPartialList = "PartialObjectMetadataList"
)

// accepted returns the format that an Accept header prefers, or "" for objects.
func accepted(header string) string {
	for part := range strings.SplitSeq(header, ",") {
		kind, options, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err != nil || kind != "application/json" && kind != "application/*" && kind != "*/*" {
			continue
		}
		if options["as"] == "" {
			return ""
		}
		known := options["as"] == formTable || options["as"] == formPartial || options["as"] == formPartialList
		if known && options["g"] == "meta.k8s.io" && options["v"] == "v1" {
			return options["as"]
		}
	}
	return ""
}

// partial returns an object's metadata, which is all that a user without the right to a Secret may
// read.
func partial(o *object) map[string]any {
	return map[string]any{"kind": formPartial, "apiVersion": "meta.k8s.io/v1", "metadata": maps.Clone(o.Object["metadata"].(map[string]any))}
}
