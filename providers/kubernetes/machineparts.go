package kubernetes

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// part is the provider's part of a Machine: what its controller works on, which
// claims servers and sets them up.
type part struct {
	kind      schema.GroupVersionKind // the version is "" in newer Machines
	namespace string
	name      string
}

func partOf(m unstructured.Unstructured) part {
	ref, _, _ := unstructured.NestedStringMap(m.Object, "spec", "infrastructureRef")
	group, version, _ := strings.Cut(ref["apiVersion"], "/")
	if version == "" {
		group = ref["apiGroup"]
	}
	return part{schema.GroupVersionKind{Group: group, Version: version, Kind: ref["kind"]}, m.GetNamespace(), ref["name"]}
}

// parts are all of them that were looked for.
type parts struct {
	seen   map[part]*metav1.PartialObjectMetadata
	unread map[schema.GroupVersionKind]string // why a kind could not be listed
}

// parts lists the provider's parts of Machines, each kind once. Of what may not be
// read the reason is kept: nobody knows then whether its controller works.
func (c *Client) parts(ctx context.Context, machines []unstructured.Unstructured) (parts, error) {
	out := parts{make(map[part]*metav1.PartialObjectMetadata), make(map[schema.GroupVersionKind]string)}
	done := make(map[schema.GroupVersionKind]bool)
	for _, m := range machines {
		kind := partOf(m).kind
		if kind.Group == "" || kind.Kind == "" || done[kind] {
			continue
		}
		done[kind] = true
		err := c.listParts(ctx, kind, out.seen)
		switch {
		case ctx.Err() != nil:
			return parts{}, context.Cause(ctx)
		case err != nil && !apierrors.IsNotFound(err): // the cluster may lack the kind
			out.unread[kind] = err.Error()
		}
	}
	return out, nil
}

// listParts reads the metadata of a kind. Its plural is as the Cluster API asks of
// its providers.
func (c *Client) listParts(ctx context.Context, kind schema.GroupVersionKind, into map[part]*metav1.PartialObjectMetadata) (err error) {
	at := schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: strings.ToLower(kind.Kind) + "s"}
	if at.Version == "" {
		if at.Version, err = c.versionOf(ctx, kind.Group); err != nil {
			return fmt.Errorf("list the %s: %w", at.Resource, explain(err))
		}
	}
	return each(ctx, at.Resource, c.meta.Resource(at).List, metav1.ListOptions{}, func(l *metav1.PartialObjectMetadataList) error {
		for i := range l.Items {
			into[part{kind, l.Items[i].Namespace, l.Items[i].Name}] = &l.Items[i]
		}
		return nil
	})
}

// enter tells a Machine of its part. The provider's controller goes by the
// annotation of what it works on, not of the Machine, and by the pause of the whole
// Cluster; what is being deleted it gives back to the pool and reinstalls, paused or
// not. Where there is nothing that it could work on, the Machine's pause counts.
func (p parts) enter(m *inventory.Machine, of part, all bool) {
	if of.kind.Kind != "" && of.name != "" {
		m.Infrastructure = strings.ToLower(of.kind.Kind) + "/" + of.name
	}
	have := p.seen[of]
	switch m.InfrastructureUnread = p.unread[of.kind]; {
	case have != nil:
		m.InfrastructurePaused = have.DeletionTimestamp == nil && (all || annotated(have))
	case m.InfrastructureUnread != "":
		m.InfrastructurePaused = all
	default:
		m.InfrastructurePaused = m.Paused
	}
}

// annotated reports whether an object of the Cluster API is paused by itself.
func annotated(o metav1.Object) bool {
	_, ok := o.GetAnnotations()[capiGroup+"/paused"]
	return ok
}
