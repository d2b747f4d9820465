package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// notes are what init cluster noted of the objects that it made, by their names: the digest
// of what gives them their meaning, or "" where they have none that a plan may read. They
// are an annotation on macfleet's namespace, which every plan reads anyway.
type notes map[string]string

// preparedNote and clusterNote are the annotations' names.
func (c *Client) preparedNote() string { return c.ownNote("prepared") }
func (c *Client) clusterNote() string  { return c.ownNote("cluster") }

// ownNote names an annotation of this configuration: several may share a namespace.
func (c *Client) ownNote(what string) string {
	sum := sha256.Sum256([]byte(c.options.Owner))
	return c.label(what + "-" + hex.EncodeToString(sum[:4]))
}

// noting lets macfleet's namespace say which cluster it is in. A backup that is restored into
// another cluster brings the annotation along, and not the uid of that cluster.
func (c *Client) noting(namespace desired, in inventory.ClusterID) desired {
	if text, err := json.Marshal(in); in.UID != "" && err == nil {
		namespace.want.SetAnnotations(map[string]string{c.clusterNote(): string(text)})
	}
	return namespace
}

// clusterNoted reads what a namespace says of its cluster. An unreadable note counts as none.
func (c *Client) clusterNoted(ns metav1.Object) inventory.Seen[inventory.ClusterID] {
	var out inventory.ClusterID
	if err := json.Unmarshal([]byte(ns.GetAnnotations()[c.clusterNote()]), &out); err != nil || out.UID == "" {
		return inventory.Absent[inventory.ClusterID]()
	}
	return inventory.Present(out)
}

// clusterNotedIn is clusterNoted of the namespace in a listing.
func (c *Client) clusterNotedIn(there listing) inventory.Seen[inventory.ClusterID] {
	for _, ns := range there.all["Namespace"] {
		return c.clusterNoted(ns)
	}
	if there.missing {
		return inventory.Absent[inventory.ClusterID]()
	}
	return inventory.Unread[inventory.ClusterID]("the namespace " + c.options.Namespace + " cannot be read")
}

// noted reads only macfleet's namespace for what it says of its cluster.
func (c *Client) noted(ctx context.Context) inventory.Seen[inventory.ClusterID] {
	ns, err := c.api.CoreV1().Namespaces().Get(ctx, c.options.Namespace, metav1.GetOptions{})
	switch {
	case err == nil:
		return c.clusterNoted(ns)
	case apierrors.IsNotFound(err):
		return inventory.Absent[inventory.ClusterID]()
	}
	return inventory.Unread[inventory.ClusterID](explain(err).Error())
}

// Which says which cluster it is, and which one macfleet's namespace was prepared in. The error
// is of the first only.
func (c *Client) Which(ctx context.Context) (here inventory.ClusterID, noted inventory.Seen[inventory.ClusterID], err error) {
	var wg sync.WaitGroup
	wg.Go(func() { noted = c.noted(ctx) })
	here, err = c.ID(ctx)
	wg.Wait()
	return here, noted, err
}

// notesOf reads the notes on a namespace; nil: there are none that can be read.
func (c *Client) notesOf(ns metav1.Object) *notes {
	var out notes
	if err := json.Unmarshal([]byte(ns.GetAnnotations()[c.preparedNote()]), &out); err != nil || out == nil {
		return nil
	}
	return &out
}

// has reports whether an object is noted.
func (n notes) has(o inventory.Object) bool {
	_, noted := n[o.String()]
	return noted
}

// othersNotes are the notes of other configurations on macfleet's namespace.
func (c *Client) othersNotes(ns metav1.Object) (out []notes) {
	for key, text := range ns.GetAnnotations() {
		var of notes
		if strings.Contains(key, "/prepared-") && key != c.preparedNote() && json.Unmarshal([]byte(text), &of) == nil {
			out = append(out, of)
		}
	}
	return out
}

// notesIn reads the notes on macfleet's namespace in a listing.
func (c *Client) notesIn(there listing) *notes {
	for _, ns := range there.all["Namespace"] {
		return c.notesOf(ns)
	}
	return nil // it is missing, or who asks for it again learns why it cannot be read
}

// noteMade records what was made.
func (c *Client) noteMade(ctx context.Context, all []desired) error {
	out := make(notes)
	for _, w := range all {
		out[w.object().String()] = digestOf(w.want, w.want)
	}
	text, err := json.Marshal(out)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{c.preparedNote(): string(text)}}})
	if err != nil {
		return err
	}
	_, err = c.api.CoreV1().Namespaces().Patch(ctx, c.options.Namespace, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
	if err != nil {
		return fmt.Errorf("annotate namespace %s: %w", c.options.Namespace, explain(err))
	}
	return nil
}

// made says how an object relates to the notes.
func (n *notes) made(w desired, o inventory.Object, now string) inventory.Made {
	if n == nil {
		return inventory.MadeUnknown
	}
	was, noted := (*n)[o.String()]
	switch {
	case !noted:
		return inventory.MadeNever
	case was == digestOf(w.want, w.want):
		return inventory.MadeAsWanted
	case o.State == inventory.ObjectMissing || now == was:
		return inventory.MadeOtherwise
	}
	return inventory.MadeMoved
}

// meaning are the fields that say what an object does.
var meaning = []string{"rules", "subjects", "roleRef", "spec"}

// digestOf names what the fields of an object hold that the desired one has; "": it has none.
func digestOf(want *unstructured.Unstructured, have metav1.Object) string {
	whole, ok := have.(*unstructured.Unstructured)
	fields := make(map[string]any)
	for _, name := range meaning {
		if _, wanted := want.Object[name]; wanted && ok {
			fields[name] = whole.Object[name]
		}
	}
	if len(fields) == 0 || slices.Contains([]string{"Namespace", "Secret"}, want.GetKind()) {
		return ""
	}
	text, err := json.Marshal(fields) // of plain values, which cannot fail
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:4])
}
