package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// cordonedBy is the annotation that says who cordoned a Node with macfleet.
const cordonedBy = "cordoned-by"

// manager is the name under which the cluster enters what macfleet wrote.
const manager = "macfleet"

// ReplacedError says that an object is another one than the one that was seen:
// it was deleted and made anew under the same name. It was left alone.
type ReplacedError struct{ Kind, Name string }

// Error names the object.
func (e *ReplacedError) Error() string {
	return fmt.Sprintf("%s %s was made anew since it was seen; it was left alone: look again", e.Kind, e.Name)
}

// ProviderIDError says that a Node has another provider id than it should. Once
// set it never changes: the Node has to be deleted, so that its kubelet
// registers another.
type ProviderIDError struct{ Node, Has, Want string }

// Error names both ids.
func (e *ProviderIDError) Error() string {
	return fmt.Sprintf("node %s has the provider id %q, not %q, and a provider id never changes; the node has to be replaced", e.Node, e.Has, e.Want)
}

// node reads a Node that must be the one that was seen.
func (c *Client) node(ctx context.Context, n inventory.Node) (*corev1.Node, error) {
	have, err := c.api.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return nil, explain(err)
	}
	if n.UID != "" && string(have.UID) != n.UID {
		return nil, &ReplacedError{"node", n.Name}
	}
	return have, nil
}

// changeNode patches a Node with what change makes of its present state; nil: it
// is right as it is. A change that met another one looks again. The error says what
// was being done.
func (c *Client) changeNode(ctx context.Context, what string, n inventory.Node, change func(*corev1.Node) (map[string]any, error)) error {
	if err := c.patchNode(ctx, n, change); err != nil {
		return fmt.Errorf("%s node %s: %w", what, n.Name, err)
	}
	return nil
}

func (c *Client) patchNode(ctx context.Context, n inventory.Node, change func(*corev1.Node) (map[string]any, error)) error {
	var last error
	for range tries {
		have, err := c.node(ctx, n)
		if err != nil {
			return err
		}
		patch, err := change(have)
		if err != nil || patch == nil {
			return err
		}
		meta, _ := patch["metadata"].(map[string]any)
		if meta == nil {
			meta = make(map[string]any)
			patch["metadata"] = meta
		}
		meta["resourceVersion"] = have.ResourceVersion
		text, err := json.Marshal(patch)
		if err != nil {
			return err
		}
		_, last = c.api.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, text, metav1.PatchOptions{FieldManager: manager})
		if !apierrors.IsConflict(last) {
			return explain(last)
		}
	}
	return fmt.Errorf("%w; it changed %d times meanwhile: try again", last, tries)
}

// SetProviderID sets the provider id of a Node that has none. A Node that has
// this one is right; one that has another gives a ProviderIDError.
func (c *Client) SetProviderID(ctx context.Context, n inventory.Node, id string) error {
	return c.changeNode(ctx, "set the provider id of", n, func(have *corev1.Node) (map[string]any, error) {
		switch have.Spec.ProviderID {
		case "":
			return map[string]any{"spec": map[string]any{"providerID": id}}, nil
		case id:
			return nil, nil
		}
		return nil, &ProviderIDError{Node: n.Name, Has: have.Spec.ProviderID, Want: id}
	})
}

// DeleteNode deletes a Node, so that its kubelet registers another. One that is
// gone is no error; one that was made anew gives a ReplacedError.
func (c *Client) DeleteNode(ctx context.Context, n inventory.Node) error {
	o := metav1.DeleteOptions{}
	if n.UID != "" {
		uid := types.UID(n.UID)
		o.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	err := c.api.CoreV1().Nodes().Delete(ctx, n.Name, o)
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		err = &ReplacedError{"node", n.Name}
	}
	return fmt.Errorf("delete node %s: %w", n.Name, explain(err))
}

// Cordon lets no new Pod onto a Node, and notes by whom. A Node that somebody
// else cordoned stays theirs; one that a run closed is the caller's from then on, and
// the run leaves it closed.
func (c *Client) Cordon(ctx context.Context, n inventory.Node, by string) error {
	return c.changeNode(ctx, "cordon", n, func(have *corev1.Node) (map[string]any, error) {
		if _, ofRun := have.Annotations[c.label(cordonRun)]; have.Spec.Unschedulable && !ofRun {
			return nil, nil
		}
		return c.closing(true, by, nil), nil
	})
}

// Uncordon takes back a cordon of macfleet's. A Node that somebody else cordoned
// stays cordoned; done says whether Pods may come again.
func (c *Client) Uncordon(ctx context.Context, n inventory.Node) (done bool, err error) {
	err = c.changeNode(ctx, "uncordon", n, func(have *corev1.Node) (map[string]any, error) {
		_, ours := have.Annotations[c.label(cordonedBy)]
		done = ours || !have.Spec.Unschedulable
		if !ours {
			return nil, nil
		}
		return c.closing(nil, nil, nil), nil
	})
	return done && err == nil, err
}
