package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// cordonedBy is the annotation that says who cordoned a Node with macfleet.
const cordonedBy = "cordoned-by"

// manager is the name under which the cluster enters what macfleet wrote.
const manager = "macfleet"

// Why an object was not touched. Each ends a sentence that names the object.
var (
	// ErrReplaced says that an object is not the one that was read: it was deleted and
	// recreated under the same name.
	ErrReplaced = errors.New("was recreated since macfleet read it and was not touched; run the command again")
	// ErrProviderID says that a Node has another provider id than it should: its kubelet
	// must register another Node.
	ErrProviderID = errors.New("a provider ID cannot be changed; the Node has to be replaced")
	// ErrForeign says that an object that macfleet would make exists and belongs to someone else.
	ErrForeign = errors.New("does not belong to this configuration")
	// ErrNotStuck says that a Pod does not have to be, or must not be, released.
	ErrNotStuck = errors.New("was not released")
)

// node reads a Node that must be the one that was seen.
func (c *Client) node(ctx context.Context, n inventory.Node) (*corev1.Node, error) {
	have, err := c.api.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if n.UID != "" && string(have.UID) != n.UID {
		return nil, fmt.Errorf("node %s %w", n.Name, ErrReplaced)
	}
	return have, nil
}

// changeNode patches a Node with the result of change, if that differs. A change
// that met another one looks again. The error says what was being done.
func (c *Client) changeNode(ctx context.Context, what string, n inventory.Node, change func(*corev1.Node) error) (err error) {
	defer wrap(&err, "%s node %s", what, n.Name)
	err = retry.RetryOnConflict(atOnce, func() error {
		have, err := c.node(ctx, n)
		if err != nil {
			return err
		}
		next := have.DeepCopy()
		if err := change(next); err != nil || equality.Semantic.DeepEqual(have, next) {
			return err
		}
		have.ResourceVersion = "" // so that the patch names the one version that it may change
		before, berr := json.Marshal(have)
		after, aerr := json.Marshal(next)
		patch, err := jsonpatch.CreateMergePatch(before, after)
		if err := errors.Join(berr, aerr, err); err != nil {
			return err
		}
		_, err = c.api.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
		return err
	})
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w; it changed %d times in the meantime; fix: run the command again", err, atOnce.Steps)
	}
	return explain(err)
}

// SetProviderID sets the provider id of a Node that has none. A Node that has
// this one is right; one that has another gives ErrProviderID.
func (c *Client) SetProviderID(ctx context.Context, n inventory.Node, id string) error {
	return c.changeNode(ctx, "set the provider ID of", n, func(have *corev1.Node) error {
		if have.Spec.ProviderID == "" || have.Spec.ProviderID == id {
			have.Spec.ProviderID = id
			return nil
		}
		return fmt.Errorf("node %s has the provider ID %q, not %q, and %w", n.Name, have.Spec.ProviderID, id, ErrProviderID)
	})
}

// Taint gives a Node a taint, in place of those of its key.
func (c *Client) Taint(ctx context.Context, n inventory.Node, t inventory.Taint) error {
	return c.changeNode(ctx, "taint", n, func(have *corev1.Node) error {
		have.Spec.Taints = slices.DeleteFunc(have.Spec.Taints, func(o corev1.Taint) bool { return o.Key == t.Key })
		have.Spec.Taints = append(have.Spec.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
		return nil
	})
}

// DeleteNode deletes a Node, so that its kubelet registers another. Already
// deleted: nothing to do; one that was recreated gives ErrReplaced.
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
		err = fmt.Errorf("node %s %w", n.Name, ErrReplaced)
	}
	return fmt.Errorf("delete node %s: %w", n.Name, explain(err))
}

// cordonRun is the annotation that names the run that cordoned a Node, and will
// uncordon it. A person's cordon has none.
const cordonRun = "cordon-run"

// CordonNode cordons a Node in the name of a run, or of a person, who has no run id. The result
// says whether the cordon is theirs now: a cordon that an earlier run left is taken over; a
// cordon of a person or another tool is not.
func (c *Client) CordonNode(ctx context.Context, n inventory.Node, run plan.Run) (ours bool, err error) {
	err = c.changeNode(ctx, "cordon", n, func(have *corev1.Node) error {
		_, left := have.Annotations[c.label(cordonRun)]
		if ours = left || !have.Spec.Unschedulable; ours {
			have.Spec.Unschedulable = true
			c.note(have, cordonedBy, run.Who)
			c.note(have, cordonRun, run.ID)
		}
		return nil
	})
	return ours && err == nil, err
}

// Uncordon takes back a cordon of macfleet's. A Node that someone else cordoned
// stays cordoned; done says whether Pods may come again.
func (c *Client) Uncordon(ctx context.Context, n inventory.Node) (done bool, err error) {
	return c.open(ctx, n, cordonedBy)
}

// UncordonNode takes back the cordon of a run. Any other cordon stays. A Node that is gone, or
// was recreated, has none.
func (c *Client) UncordonNode(ctx context.Context, n inventory.Node) error {
	_, err := c.open(ctx, n, cordonRun)
	if apierrors.IsNotFound(err) || errors.Is(err, ErrReplaced) {
		return nil
	}
	return err
}

// open uncordons a Node that has an annotation of macfleet's.
func (c *Client) open(ctx context.Context, n inventory.Node, mark string) (done bool, err error) {
	err = c.changeNode(ctx, "uncordon", n, func(have *corev1.Node) error {
		if _, ours := have.Annotations[c.label(mark)]; ours {
			have.Spec.Unschedulable = false
			c.note(have, cordonedBy, "")
			c.note(have, cordonRun, "")
		}
		done = !have.Spec.Unschedulable
		return nil
	})
	return done && err == nil, err
}

// note writes one of macfleet's annotations; "" removes it.
func (c *Client) note(have *corev1.Node, name, text string) {
	if text == "" {
		delete(have.Annotations, c.label(name))
		return
	}
	if have.Annotations == nil {
		have.Annotations = make(map[string]string)
	}
	have.Annotations[c.label(name)] = text
}

// PodsOn lists the Pods of one Node.
func (c *Client) PodsOn(ctx context.Context, n inventory.Node) ([]inventory.Pod, error) {
	var out []inventory.Pod
	of := metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.Name}
	err := each(ctx, "pods of node "+n.Name, c.api.CoreV1().Pods(metav1.NamespaceAll).List, of, func() func(*corev1.Pod) error {
		out = nil
		return func(p *corev1.Pod) error {
			out = append(out, c.toPod(p))
			return nil
		}
	})
	return out, err
}

// holdNote is the annotation by which a person keeps macfleet off a host: a hold as
// JSON.
const holdNote = "hold"

// SetHold writes a hold onto a Node, replacing any other; nil removes
// it. A Node that was recreated since it was read is not touched.
func (c *Client) SetHold(ctx context.Context, n inventory.Node, h *inventory.Hold) error {
	var text []byte
	if h != nil {
		var err error
		if text, err = json.Marshal(h); err != nil {
			return fmt.Errorf("encode the hold of node %s: %w", n.Name, err)
		}
	}
	return c.changeNode(ctx, "write the hold to", n, func(have *corev1.Node) error {
		c.note(have, holdNote, string(text))
		return nil
	})
}

// hostKeyNote is the annotation that says which SSH host key the Node's host has: its type
// and fingerprint. It backs up the pins.
const hostKeyNote = "host-key"

// NoteHostKey writes a host's key onto its Node, replacing any other; "" removes
// it. A Node that was recreated since it was read is not touched.
func (c *Client) NoteHostKey(ctx context.Context, n inventory.Node, key string) error {
	return c.changeNode(ctx, "write the host key to", n, func(have *corev1.Node) error {
		c.note(have, hostKeyNote, key)
		return nil
	})
}

// holdOf reads the hold on a Node. One that cannot be read still counts:
// someone set it on purpose.
func holdOf(note string) (hold *inventory.Hold, unread string) {
	if note == "" {
		return nil, ""
	}
	var h inventory.Hold
	if err := json.Unmarshal([]byte(note), &h); err != nil {
		return nil, "invalid JSON: " + err.Error()
	}
	h.Who = cmp.Or(h.Who, "someone")
	return &h, ""
}

// AddNodeEvent says on a Node what a run does to it, as an event that kubectl describe shows. The
// cluster forgets it after an hour or so. Events of what is in no namespace stand in the
// default one.
func (c *Client) AddNodeEvent(ctx context.Context, n inventory.Node, run plan.Run, text string) error {
	at := metav1.NewTime(c.clock.now())
	event := corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", n.Name, at.UnixNano()), Namespace: metav1.NamespaceDefault},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: types.UID(n.UID)},
		Reason:         "Macfleet",
		Message:        fmt.Sprintf("%s (macfleet run %s of %s)", text, run.ID, run.Who),
		Source:         corev1.EventSource{Component: manager},
		FirstTimestamp: at, LastTimestamp: at, Count: 1, Type: corev1.EventTypeNormal,
	}
	if _, err := c.api.CoreV1().Events(event.Namespace).Create(ctx, &event, metav1.CreateOptions{FieldManager: manager}); err != nil {
		return fmt.Errorf("write an event for node %s: %w", n.Name, explain(err))
	}
	return nil
}
