package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	klabels "k8s.io/apimachinery/pkg/labels"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
)

// component is what the identities of hosts are labelled with.
const component = "tart-kubelet"

// identity is what a host's kubelet needs to be somebody to the cluster. All
// three bear the host's name, so a run that was killed half-way finds what it
// made.
type identity struct {
	account wish[*corev1.ServiceAccount]
	secret  tokenSecret
	binding wish[*rbacv1.ClusterRoleBinding]
}

func (c *Client) identity(host string) identity {
	marks := c.agentMarks()
	marks[c.label(labelHost)] = host
	return c.identityOf(c.options.AgentNamespace, component+"-"+host, agentRole, marks)
}

// identityOf is a ServiceAccount, the Secret with its token and its binding to a
// role. The token never expires: the kubelet cannot renew one, and a fleet must
// outlive a week in which nobody runs macfleet. Revoking takes the binding away.
func (c *Client) identityOf(ns, name, role string, marks map[string]string) identity {
	owner, subjects := c.label(labelOwner), []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: name}}
	return identity{
		account: wish[*corev1.ServiceAccount]{kind: "ServiceAccount", api: c.api.CoreV1().ServiceAccounts(ns), owner: owner,
			want: &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: marks}}},
		secret: c.tokenSecret(ns, name, marks),
		binding: wish[*rbacv1.ClusterRoleBinding]{kind: "ClusterRoleBinding", api: c.api.RbacV1().ClusterRoleBindings(), owner: owner,
			want: &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: marks},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects: subjects},
			spoilt: func(have *rbacv1.ClusterRoleBinding) bool {
				return have.RoleRef.Name != role || have.RoleRef.Kind != "ClusterRole"
			},
			mend: func(have *rbacv1.ClusterRoleBinding) string { return replace(&have.Subjects, subjects, "subjects") }},
	}
}

// tokenSecret is a Secret that the cluster fills with an account's token.
type tokenSecret struct{ wish[*corev1.Secret] }

// of is the Secret with a token of this very account. One that was filled for an
// account that is gone holds a dead token: the cluster takes such a one away by
// itself, but only after a while.
func (s tokenSecret) of(account *corev1.ServiceAccount) wish[*corev1.Secret] {
	w, spoilt := s.wish, s.spoilt
	w.spoilt = func(have *corev1.Secret) bool {
		filled := have.Annotations[corev1.ServiceAccountUIDKey]
		return spoilt(have) || filled != "" && filled != string(account.UID)
	}
	return w
}

func (c *Client) tokenSecret(ns, account string, marks map[string]string) tokenSecret {
	name := account + "-token"
	return tokenSecret{wish[*corev1.Secret]{kind: "Secret", api: c.api.CoreV1().Secrets(ns), owner: c.label(labelOwner),
		want: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: marks,
			Annotations: map[string]string{corev1.ServiceAccountNameKey: account}}, Type: corev1.SecretTypeServiceAccountToken},
		spoilt: func(have *corev1.Secret) bool {
			return have.Type != corev1.SecretTypeServiceAccountToken || have.Annotations[corev1.ServiceAccountNameKey] != account
		}}}
}

// only reports whether a binding has this account as its one subject.
func only(subjects []rbacv1.Subject, ns, name string) bool {
	return len(subjects) == 1 && subjects[0].Kind == rbacv1.ServiceAccountKind && subjects[0].Namespace == ns && subjects[0].Name == name
}

// Identify completes a host's identity: ServiceAccount, token Secret, binding.
// It makes nothing twice, takes back nothing that is right, and goes on where
// another run was killed. It waits until the cluster has issued the token.
func (c *Client) Identify(ctx context.Context, host string) (inventory.Identity, error) {
	out, err := c.complete(ctx, c.identity(host))
	out.Host = host
	if err != nil {
		return out, fmt.Errorf("identity of host %s: %w", host, err)
	}
	return out, nil
}

func (c *Client) complete(ctx context.Context, i identity) (out inventory.Identity, err error) {
	account, err := i.account.ensure(ctx)
	if err != nil {
		return out, err
	}
	out.ServiceAccount = string(account.UID)
	if _, err := i.secret.of(account).ensure(ctx); err != nil {
		return out, err
	}
	if _, err := i.binding.ensure(ctx); err != nil {
		return out, err
	}
	out.Bound = true
	filled, err := c.awaitToken(ctx, i.secret.want.Namespace, i.secret.want.Name)
	if err != nil {
		return out, err
	}
	out.Secret, out.Issued = string(filled.UID), true
	return out, nil
}

// The pause between two looks at a Secret that the cluster has to fill: most of
// the time it has done so at the second.
const (
	firstTokenPause = 50 * time.Millisecond
	tokenPause      = 500 * time.Millisecond
)

// awaitToken waits until the cluster has filled a token Secret.
func (c *Client) awaitToken(ctx context.Context, ns, name string) (*corev1.Secret, error) {
	waiting, cancel := context.WithTimeout(ctx, c.options.TokenWait)
	defer cancel()
	for pause := firstTokenPause; ; pause = min(2*pause, tokenPause) {
		s, err := c.api.CoreV1().Secrets(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("read secret %s/%s: %w", ns, name, explain(err))
		}
		if len(s.Data[corev1.ServiceAccountTokenKey]) > 0 && len(s.Data[corev1.ServiceAccountRootCAKey]) > 0 {
			return s, nil
		}
		if sleep(waiting, pause) == nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("secret %s/%s holds no token after %s: the cluster's token controller did not fill it; look at kube-controller-manager, then apply again",
			ns, name, c.options.TokenWait)
	}
}

// Token returns the token of a host's identity, which must be complete.
func (c *Client) Token(ctx context.Context, host string) (secret.Value, error) {
	want := c.identity(host).secret
	have, err := want.api.Get(ctx, want.want.Name, metav1.GetOptions{})
	if err == nil {
		err = want.foreign(have)
	}
	var token secret.Value
	if err == nil {
		token, err = secret.New(string(have.Data[corev1.ServiceAccountTokenKey]))
	}
	if err != nil {
		return secret.Value{}, fmt.Errorf("token of host %s in secret %s/%s: %w", host, c.options.AgentNamespace, want.want.Name, explain(err))
	}
	return token, nil
}

// Revoke takes a host's identity away: the binding first, with which its rights
// on Nodes end at once, then the token, with which all others do as soon as the
// cluster forgets that it has just seen it, then the account. What is gone is no
// error.
func (c *Client) Revoke(ctx context.Context, host string) error {
	i := c.identity(host)
	for _, step := range []func(context.Context) error{i.binding.revoke, i.secret.revoke, i.account.revoke} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("revoke the identity of host %s: %w", host, err)
		}
	}
	return nil
}

// identities lists the identities of this configuration's hosts, by host. Of the
// Secrets only the metadata is asked for, so that no plan ever reads a token:
// the cluster notes there for which account it filled one.
func (c *Client) identities(ctx context.Context) ([]inventory.Identity, error) {
	found := make(map[string]*inventory.Identity)
	of := func(o metav1.Object) *inventory.Identity {
		host := o.GetLabels()[c.label(labelHost)]
		if found[host] == nil {
			found[host] = &inventory.Identity{Host: host}
		}
		return found[host]
	}
	parts, err := c.identityParts(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range parts.accounts {
		if i := of(a); a.Name == component+"-"+i.Host {
			i.ServiceAccount = string(a.UID)
		}
	}
	for _, s := range parts.secrets {
		if i := of(s); s.Name == component+"-"+i.Host+"-token" {
			i.Secret = string(s.UID)
			i.Issued = i.ServiceAccount != "" && s.Annotations[corev1.ServiceAccountUIDKey] == i.ServiceAccount
		}
	}
	bound := make(map[string]int)
	for _, b := range parts.bindings {
		i := of(b)
		bound[i.Host]++
		i.Bound = bound[i.Host] == 1 && b.Name == component+"-"+i.Host && b.RoleRef.Kind == "ClusterRole" && b.RoleRef.Name == agentRole &&
			only(b.Subjects, c.options.AgentNamespace, b.Name)
	}
	out := make([]inventory.Identity, 0, len(found))
	for _, host := range sortedKeys(found) {
		out = append(out, *found[host])
	}
	return slices.Clip(out), nil
}

// identityParts is what identities are made of, as the cluster lists it.
type identityParts struct {
	accounts []*corev1.ServiceAccount
	secrets  []*metav1.PartialObjectMetadata
	bindings []*rbacv1.ClusterRoleBinding
}

func (c *Client) identityParts(ctx context.Context) (parts identityParts, err error) {
	ours := metav1.ListOptions{LabelSelector: klabels.Set(c.agentMarks()).String()}
	ns := c.options.AgentNamespace
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return each(ctx, "service accounts of hosts", c.api.CoreV1().ServiceAccounts(ns).List, ours, func(l *corev1.ServiceAccountList) error {
			parts.accounts = append(parts.accounts, pointers(l.Items)...)
			return nil
		})
	})
	g.Go(func() error {
		secrets := c.meta.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(ns)
		return each(ctx, "secrets of hosts", secrets.List, ours, func(l *metav1.PartialObjectMetadataList) error {
			parts.secrets = append(parts.secrets, pointers(l.Items)...)
			return nil
		})
	})
	g.Go(func() error {
		return each(ctx, "role bindings of hosts", c.api.RbacV1().ClusterRoleBindings().List, ours, func(l *rbacv1.ClusterRoleBindingList) error {
			parts.bindings = append(parts.bindings, pointers(l.Items)...)
			return nil
		})
	})
	return parts, g.Wait()
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}
