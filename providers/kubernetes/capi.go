package kubernetes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
)

const (
	capiGroup   = "cluster.x-k8s.io"
	capiAccount = "capi-remote"
	capiRole    = "macfleet-" + capiAccount
	// inCluster is how a controller that runs in the cluster reaches it.
	inCluster = "https://kubernetes.default.svc"
	// contentOf is the annotation that says what a kubeconfig was made of.
	contentOf = "content"
)

// CAPI is a Cluster of the Cluster API whose Machines are Nodes of the cluster it
// runs in itself. Its core looks for a kubeconfig in a Secret even then, and binds
// no Machine to its Node without.
type CAPI struct {
	Cluster, Namespace string
	Server             string // https URL as the Cluster API's core reaches the cluster; empty = from within
}

func (a CAPI) secret() string { return a.Cluster + "-kubeconfig" }

// capi is what connects the Cluster API: an account with the rights of its core,
// and a kubeconfig of it under the name, type and label that the core looks for.
func (c *Client) capi() []kept {
	marks := c.marks(true)
	i := c.identityOf(c.options.Namespace, capiAccount, capiRole, marks)
	i.binding.want.Name = capiRole + "-" + c.options.Namespace // another namespace may hold another configuration's
	return []kept{i.account, c.clusterRole(capiRole, capiRules()), i.binding, capiToken{c, i}, kubeconfigSecret{c}}
}

// capiToken is the Secret with the account's token, told by its metadata.
type capiToken struct {
	c *Client
	i identity
}

func (k capiToken) object() inventory.Object { return k.i.secret.object() }

func (k capiToken) look(ctx context.Context) (inventory.Object, error) {
	account, err := k.i.account.api.Get(ctx, capiAccount, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return k.object(), fmt.Errorf("read service account %s/%s: %w", k.c.options.Namespace, capiAccount, explain(err))
	}
	w := k.i.secret.wish
	w.metadata = k.c.secretMetadata(k.c.options.Namespace, w.want.Name)
	w.judge = func(have metav1.Object) string {
		if err != nil || have.GetAnnotations()[corev1.ServiceAccountUIDKey] != string(account.UID) {
			return "it holds no token of the account"
		}
		return ""
	}
	return w.look(ctx)
}

func (k capiToken) keep(ctx context.Context) error {
	account, err := k.i.account.ensure(ctx)
	if err != nil {
		return err
	}
	return k.i.secret.of(account).keep(ctx)
}

// kubeconfigSecret is the Secret that the Cluster API's core reads. Its content
// holds a token, so plan compares what it was made of, which stands in an
// annotation, and who wrote it last, which the cluster enters itself.
type kubeconfigSecret struct{ c *Client }

func (k kubeconfigSecret) object() inventory.Object {
	return inventory.Object{Kind: "Secret", Namespace: k.c.options.CAPI.Namespace, Name: k.c.options.CAPI.secret()}
}

func (k kubeconfigSecret) look(ctx context.Context) (inventory.Object, error) {
	token, err := k.c.secretMetadata(k.c.options.Namespace, capiAccount+"-token")(ctx)
	switch {
	case apierrors.IsNotFound(err):
		token = &metav1.PartialObjectMetadata{} // and what is made of it is wrong by that
	case err != nil:
		return k.object(), fmt.Errorf("read secret %s/%s: %w", k.c.options.Namespace, capiAccount+"-token", explain(err))
	}
	ca, err := k.c.rootCA(ctx)
	if err != nil {
		return k.object(), err
	}
	return k.wish(token.UID, ca, secret.Value{}).look(ctx)
}

func (k kubeconfigSecret) keep(ctx context.Context) error {
	token, err := k.c.awaitToken(ctx, k.c.options.Namespace, capiAccount+"-token")
	if err != nil {
		return err
	}
	ca, err := k.c.rootCA(ctx)
	if err != nil {
		return err
	}
	value, err := secret.New(string(token.Data[corev1.ServiceAccountTokenKey]))
	if err != nil {
		return err
	}
	return k.wish(token.UID, ca, value).keep(ctx)
}

// wish is the Secret. It has no owner: what has one goes with it, and the Cluster
// API then loses the cluster in the middle of a roll-out.
func (k kubeconfigSecret) wish(token types.UID, ca string, value secret.Value) wish[*corev1.Secret] {
	capi := *k.c.options.CAPI
	server := cmp.Or(capi.Server, inCluster)
	marks := k.c.marks(true)
	marks[capiGroup+"/cluster-name"] = capi.Cluster
	content := digest(server, ca, string(token))
	data := map[string][]byte{}
	if !value.IsZero() {
		data["value"] = []byte(kubeconfig(capi.Cluster, capiAccount, server, ca, value))
	}
	kind := corev1.SecretType(capiGroup + "/secret")
	return wish[*corev1.Secret]{kind: "Secret", api: k.c.api.CoreV1().Secrets(capi.Namespace), owner: k.c.label(labelOwner),
		metadata: k.c.secretMetadata(capi.Namespace, capi.secret()),
		want: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: capi.Namespace, Name: capi.secret(), Labels: marks,
			Annotations: map[string]string{k.c.label(contentOf): content}}, Type: kind, Data: data},
		spoilt: func(have *corev1.Secret) bool { return have.Type != kind },
		mend: func(have *corev1.Secret) string {
			why := differs(have, k.c.label(contentOf), content)
			if string(have.Data["value"]) != string(data["value"]) {
				why = "value"
			}
			if have.Annotations == nil {
				have.Annotations = make(map[string]string)
			}
			have.Annotations[k.c.label(contentOf)], have.Data, have.OwnerReferences = content, data, nil
			return why
		},
		judge: func(have metav1.Object) string {
			return cmp.Or(differs(have, k.c.label(contentOf), content), changedByOthers(have))
		}}
}

// differs says what is not as wanted by an object's metadata.
func differs(have metav1.Object, annotation, content string) string {
	switch {
	case len(have.GetOwnerReferences()) > 0:
		o := have.GetOwnerReferences()[0]
		return fmt.Sprintf("%s %s owns it, and would take it along", o.Kind, o.Name)
	case have.GetAnnotations()[annotation] != content:
		return "it was made for another address, authority or token"
	}
	return ""
}

// digest names a content by what it was made of, none of it secret.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// changedByOthers says who wrote an object's data last, if it was not macfleet:
// so a content that must not be read is compared all the same. A server that
// keeps no record of managers says nothing.
func changedByOthers(have metav1.Object) string {
	for _, entry := range have.GetManagedFields() {
		if entry.Manager == manager || entry.FieldsV1 == nil {
			continue
		}
		var owned map[string]json.RawMessage
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned); err != nil {
			continue
		}
		if _, data := owned["f:data"]; data {
			return "its content was changed by " + entry.Manager
		}
	}
	return ""
}
