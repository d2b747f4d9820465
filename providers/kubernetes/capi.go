package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

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
type CAPI struct{ Cluster, Namespace string }

func (a CAPI) secret() string { return a.Cluster + kubeconfigSuffix }

// capiIdentity is the Cluster API's account. Another namespace may hold another configuration's.
func (c *Client) capiIdentity() identity {
	ns := c.options.Namespace
	return c.identityOf(ns, capiAccount, capiRole+"-"+ns, capiRole, c.marks(true))
}

// capi is what connects the Cluster API, where the configuration asks for it: an account
// with the rights of its core, and a kubeconfig of it under the name, type and label that
// the core looks for.
func (c *Client) capi() []desired {
	if c.options.CAPI == nil {
		return nil
	}
	i := c.capiIdentity()
	plain := i.binding
	// Earlier versions wrote no note, so a binding without one counts as equal.
	i.binding.later = func(_ context.Context, making bool) (desired, error) {
		if !making {
			return plain, nil
		}
		key, place := c.placeNote(c.options.CAPI.Namespace, c.options.CAPI.secret())
		noting := c.capiIdentity().binding
		noting.want.SetAnnotations(map[string]string{key: place})
		return noting, nil
	}
	token, kubeconfig := i.secret, c.kubeconfigSecret("", nil)
	token.later = func(ctx context.Context, making bool) (desired, error) {
		if making {
			account, err := i.account.ensure(ctx)
			return i.secretOf(account), err
		}
		account, err := i.account.api.Get(ctx, capiAccount, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return token, fmt.Errorf("read %s: %w", i.account.object(), explain(err))
		}
		return i.secretOf(account), nil
	}
	kubeconfig.later = func(ctx context.Context, making bool) (desired, error) {
		if making {
			if _, err := i.binding.ensure(ctx); err != nil {
				return kubeconfig, err
			}
		}
		return c.kubeconfigOf(ctx, token.object(), making)
	}
	role := c.role("", capiRole, rules().CAPI)
	role.prepared = true
	return []desired{i.account, role, i.binding, token, kubeconfig}
}

// kubeconfigOf is the desired Secret for a kubeconfig with the token of a Secret, whose content is
// read only where the kubeconfig is made.
func (c *Client) kubeconfigOf(ctx context.Context, token inventory.Object, making bool) (desired, error) {
	ca, err := c.rootCA(ctx)
	if err != nil {
		return desired{}, err
	}
	if !making {
		of, err := c.secrets(token.Namespace).Get(ctx, token.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			of = &metav1.PartialObjectMetadata{} // and what is made of it is wrong by that
		case err != nil:
			return desired{}, fmt.Errorf("read %s: %w", token, explain(err))
		}
		return c.kubeconfigSecret(madeOf(inCluster, ca, of.UID), nil), nil
	}
	filled, err := c.awaitToken(ctx, token)
	if err != nil {
		return desired{}, err
	}
	value, err := secret.New(string(filled.Data[corev1.ServiceAccountTokenKey]))
	if err != nil {
		return desired{}, err
	}
	text := kubeconfig(c.options.CAPI.Cluster, capiAccount, clientcmdapi.Cluster{Server: inCluster, CertificateAuthorityData: []byte(ca)}, value)
	return c.kubeconfigSecret(madeOf(inCluster, ca, filled.UID), map[string][]byte{"value": []byte(text)}), nil
}

// kubeconfigSecret is the Secret that the Cluster API's core reads. Its content
// holds a token, so plan compares what it was made of, which is in an
// annotation, and who wrote it last, which the cluster enters itself. It has no owner:
// the Cluster API would lose the cluster with that, in the middle of a roll-out.
func (c *Client) kubeconfigSecret(content string, data map[string][]byte) desired {
	marks := c.marks(true)
	marks[capiGroup+"/cluster-name"] = c.options.CAPI.Cluster
	w := c.desired(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.options.CAPI.Namespace, Name: c.options.CAPI.secret(), Labels: marks,
		Annotations: map[string]string{c.label(contentOf): content}}, Type: capiGroup + "/secret", Data: data})
	w.unowned = true
	w.judge = func(have metav1.Object) string {
		if owners := have.GetOwnerReferences(); len(owners) > 0 {
			return fmt.Sprintf("it is owned by %s %s and would be deleted with it", owners[0].Kind, owners[0].Name)
		}
		if have.GetAnnotations()[c.label(contentOf)] != content {
			return "it was made for a different address, CA or token"
		}
		return changedByOthers(have)
	}
	return w
}

// madeOf names the content of a kubeconfig by what it was made of, none of it secret.
func madeOf(server, ca string, token types.UID) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%d:%s%d:%s", len(server), server, len(ca), ca, len(token), token))
	return hex.EncodeToString(sum[:8])
}

// changedByOthers says who wrote an object's data last, if it was not macfleet:
// so content that must not be read is still compared. A server that
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
