package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	klabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/metadata"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
)

// component is what the identities of hosts are labelled with.
const component = "tart-kubelet"

// identity is what a host's kubelet needs to authenticate to the cluster. All
// three have the host's name, so a run that was killed half-way finds what it
// made.
type identity struct {
	account, secret, binding desired
	// former is the binding as earlier versions named it. Others may have one of that name.
	former desired
}

func (c *Client) identity(host string) identity {
	marks, name := c.agentMarks(), component+"-"+host
	marks[c.label(labelHost)] = host
	i := c.identityOf(c.options.AgentNamespace, name, inventory.BindingOf(host), agentRole, marks)
	i.former = c.binding(metav1.ObjectMeta{Name: inventory.FormerBindingOf(host), Labels: marks}, "ClusterRole", agentRole,
		account(c.options.AgentNamespace, name))
	i.former.judge = func(have metav1.Object) string {
		if have.GetLabels()[c.label(labelHost)] != host {
			return "its label " + c.label(labelHost) + " names another host"
		}
		return ""
	}
	return i
}

// identityOf is a ServiceAccount, the Secret with its token and its binding to a
// role. The token never expires: the kubelet cannot renew one, and a fleet must
// keep working when macfleet does not run for a week. Revoking deletes the binding.
func (c *Client) identityOf(ns, name, binding, role string, marks map[string]string) identity {
	return identity{
		account: c.desired(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: marks}}),
		secret: c.desired(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name + "-token", Labels: marks,
			Annotations: map[string]string{corev1.ServiceAccountNameKey: name}}, Type: corev1.SecretTypeServiceAccountToken}),
		binding: c.binding(metav1.ObjectMeta{Name: binding, Labels: marks}, "ClusterRole", role, account(ns, name)),
	}
}

// secretOf is the Secret with a token of this very account. One that was filled for an
// account that is gone holds a dead token: the cluster takes such a one away by
// itself, but only after a while.
func (i identity) secretOf(account *unstructured.Unstructured) desired {
	w, uid := i.secret, ""
	if account != nil {
		uid = string(account.GetUID())
	}
	w.broken = func(have metav1.Object) bool {
		filled := have.GetAnnotations()[corev1.ServiceAccountUIDKey]
		return filled != "" && filled != uid || have.GetAnnotations()[corev1.ServiceAccountNameKey] != i.account.want.GetName()
	}
	w.judge = func(have metav1.Object) string {
		if uid != "" && have.GetAnnotations()[corev1.ServiceAccountUIDKey] == uid {
			return ""
		}
		return "it has no token of the account"
	}
	return w
}

// Identify completes a host's identity: ServiceAccount, token Secret, binding.
// It makes nothing twice, takes back nothing that is right, and resumes where
// another run was killed. It waits until the cluster has issued the token.
func (c *Client) Identify(ctx context.Context, host string) (out inventory.Identity, err error) {
	defer wrap(&err, "identity of host %s", host)
	i := c.identity(host)
	out.Host = host
	account, err := i.account.ensure(ctx)
	if err != nil {
		return out, err
	}
	out.ServiceAccount = string(account.GetUID())
	i, all, err := c.newest(ctx, host, account)
	if err != nil {
		return out, err
	}
	if _, err := i.secretOf(account).ensure(ctx); err != nil {
		return out, err
	}
	if _, err := i.binding.ensure(ctx); err != nil {
		return out, err
	}
	out.Bound = true
	// The host has its rights by the new one: it is never without any.
	if err := i.former.revokeOwn(ctx); err != nil {
		return out, err
	}
	filled, err := c.awaitToken(ctx, i.secret.object())
	if err != nil {
		return out, err
	}
	out.Secret, out.Issued, out.Token, out.Since = string(filled.UID), true, filled.Name, utc(filled.CreationTimestamp.Time)
	for _, t := range all {
		if t.filled != "" && t.Name != out.Token {
			out.Spent = append(out.Spent, t.Name)
		}
	}
	return out, nil
}

// The pause between two reads of a Secret that the cluster has to fill: most of
// the time it has done so at the second.
const (
	firstTokenPause = 50 * time.Millisecond
	tokenPause      = 500 * time.Millisecond
)

// awaitToken waits until the cluster has filled a token Secret.
func (c *Client) awaitToken(ctx context.Context, of inventory.Object) (*corev1.Secret, error) {
	waiting, cancel := context.WithTimeout(ctx, c.options.TokenWait)
	defer cancel()
	for pause := firstTokenPause; ; pause = min(2*pause, tokenPause) {
		s, err := c.api.CoreV1().Secrets(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", of, explain(err))
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
		return nil, fmt.Errorf("%s has no token after %s: the cluster's token controller did not issue one; fix: check kube-controller-manager, then run macfleet apply again",
			of, c.options.TokenWait)
	}
}

// Token returns the newest token of a host's identity, which must be complete.
func (c *Client) Token(ctx context.Context, host string) (token secret.Value, err error) {
	want := c.identity(host).secret
	defer func() { wrap(&err, "token of host %s in %s", host, want.object()) }()
	account, err := c.identity(host).account.api.Get(ctx, component+"-"+host, metav1.GetOptions{})
	if err != nil {
		return token, explain(err)
	}
	i, _, err := c.newest(ctx, host, account)
	if err != nil {
		return token, err
	}
	want = i.secret
	have, err := c.api.CoreV1().Secrets(c.options.AgentNamespace).Get(ctx, want.want.GetName(), metav1.GetOptions{})
	if err != nil {
		return token, explain(err)
	}
	if err := want.foreign(have); err != nil {
		return token, err
	}
	return secret.New(string(have.Data[corev1.ServiceAccountTokenKey]))
}

// Revoke takes a host's identity away: the binding first, with which its rights
// on Nodes end at once, then the token, with which all others do as soon as the
// cluster forgets that it has just seen it, then the account. Already
// deleted: nothing to do.
func (c *Client) Revoke(ctx context.Context, host string) (err error) {
	defer wrap(&err, "revoke the identity of host %s", host)
	i := c.identity(host)
	if err := i.former.revokeOwn(ctx); err != nil {
		return err
	}
	all := []desired{i.binding, i.secret}
	others, err := c.tokens(ctx, host)
	if err != nil {
		return err
	}
	for _, t := range others {
		all = append(all, i.withToken(host, t.number).secret)
	}
	for _, w := range append(all, i.account) {
		if err := w.revoke(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Identities lists the identities of this configuration's hosts, by host. Of the
// Secrets only the metadata is read, so that no plan ever reads a token:
// the cluster notes there for which account it filled one. foreign are bindings of others under
// the names of earlier versions: whatever their labels, so all bindings are listed.
func (c *Client) Identities(ctx context.Context) (all []inventory.Identity, foreign []inventory.Object, err error) {
	byHost := make(map[string]*found)
	of := func(o metav1.Object) *found {
		host := o.GetLabels()[c.label(labelHost)]
		if byHost[host] == nil {
			byHost[host] = &found{Identity: inventory.Identity{Host: host}}
		}
		return byHost[host]
	}
	var accounts []*corev1.ServiceAccount
	var secrets []*metav1.PartialObjectMetadata
	var bindings []*rbacv1.ClusterRoleBinding
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		list := c.api.CoreV1().ServiceAccounts(c.options.AgentNamespace).List
		accounts, err = listed[*corev1.ServiceAccount](ctx, "service accounts of hosts", list, c.ofAgents())
		return err
	})
	g.Go(func() (err error) {
		secrets, err = listed[*metav1.PartialObjectMetadata](ctx, "secrets of hosts", c.secrets(c.options.AgentNamespace).List, c.ofAgents())
		return err
	})
	g.Go(func() (err error) {
		list := c.api.RbacV1().ClusterRoleBindings().List
		bindings, err = listed[*rbacv1.ClusterRoleBinding](ctx, "role bindings of hosts", list, metav1.ListOptions{})
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	for _, a := range accounts {
		if i := of(a); a.Name == component+"-"+i.Host {
			i.ServiceAccount = string(a.UID)
		}
	}
	tokens := make(map[string][]*metav1.PartialObjectMetadata)
	for _, s := range secrets {
		host := of(s).Host
		tokens[host] = append(tokens[host], s)
	}
	for host, some := range tokens {
		enterTokens(&byHost[host].Identity, tokensIn(host, some))
	}
	ours, foreign := c.ofHosts(bindings)
	for _, b := range ours {
		of(b).bind(b, account(c.options.AgentNamespace, component+"-"+b.Labels[c.label(labelHost)]))
	}
	for _, host := range sortedKeys(byHost) {
		all = append(all, byHost[host].Identity)
	}
	return all, foreign, nil
}

// found is what was found of an identity.
type found struct {
	inventory.Identity
	more bool // it is bound by something else, too
}

// bind enters a binding of macfleet's. One of the two right ones gives the host its rights.
func (f *found) bind(b *rbacv1.ClusterRoleBinding, to rbacv1.Subject) {
	former := b.Name == inventory.FormerBindingOf(f.Host)
	f.Former = f.Former || former
	f.more = f.more || !former && b.Name != inventory.BindingOf(f.Host)
	right := b.RoleRef.Kind == "ClusterRole" && b.RoleRef.Name == agentRole && slices.Equal(b.Subjects, []rbacv1.Subject{to})
	f.Bound = (f.Bound || right) && !f.more
}

// ofHosts returns the bindings of this configuration's hosts, and those of others under a name that
// earlier versions gave.
func (c *Client) ofHosts(bindings []*rbacv1.ClusterRoleBinding) (ours []*rbacv1.ClusterRoleBinding, foreign []inventory.Object) {
	marks, host := c.agentMarks(), c.label(labelHost)
	for _, b := range bindings {
		why := c.foreignLabel(marks, b)
		if why == "" && b.Labels[host] == "" {
			why = fmt.Sprintf("its label %s is missing", host)
		}
		switch {
		case why == "":
			ours = append(ours, b)
		case strings.HasPrefix(b.Name, inventory.FormerBindingOf("")):
			foreign = append(foreign, inventory.Object{Kind: "ClusterRoleBinding", Name: b.Name, State: inventory.ObjectForeign, Why: why})
		}
	}
	return ours, foreign
}

// ofAgents chooses what this configuration's hosts are to the cluster.
func (c *Client) ofAgents() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: klabels.Set(c.agentMarks()).String()}
}

// secrets are the Secrets of a namespace without what is secret in them.
func (c *Client) secrets(ns string) metadata.ResourceInterface {
	return c.meta.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(ns)
}
