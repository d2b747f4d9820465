package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	klabels "k8s.io/apimachinery/pkg/labels"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// A host's tokens are in Secrets that are numbered: …-token, …-token-2, and so on. The newest that the cluster has
// filled counts. Each is valid while its Secret exists, so that one can be written to the host, and be
// verified, before the one before it ends.

// tokenNumber is the number of a Secret among those with a host's tokens; 0: it is none of them.
func tokenNumber(host, secret string) int {
	rest, is := strings.CutPrefix(secret, inventory.FirstToken(host))
	if is && rest == "" {
		return 1
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(rest, "-")); is && err == nil && n > 1 && rest == "-"+strconv.Itoa(n) {
		return n
	}
	return 0
}

// token is a Secret for a host's token.
type token struct {
	number int
	filled string // uid of the ServiceAccount that it was filled for; empty: it was not yet
	*metav1.PartialObjectMetadata
}

// tokensIn sorts out the Secrets with a host's tokens, the newest first.
func tokensIn(host string, all []*metav1.PartialObjectMetadata) []token {
	var out []token
	for _, s := range all {
		if n := tokenNumber(host, s.Name); n > 0 {
			out = append(out, token{n, s.Annotations[corev1.ServiceAccountUIDKey], s})
		}
	}
	slices.SortFunc(out, func(a, b token) int { return cmp.Compare(b.number, a.number) })
	return out
}

// enterTokens says which of a host's tokens counts, and which others are good. account is the uid of the
// ServiceAccount: what was filled for another is dead.
func enterTokens(i *inventory.Identity, all []token) {
	for _, t := range all {
		switch {
		case i.ServiceAccount != "" && t.filled == i.ServiceAccount && !i.Issued:
			i.Secret, i.Issued, i.Token, i.Since = string(t.UID), true, t.Name, utc(t.CreationTimestamp.Time)
		case t.filled != "" && i.Issued:
			i.Spent = append(i.Spent, t.Name)
		case t.filled == "" && t.number > 1:
			// The next rotation continues with it.
		case !i.Issued:
			i.Secret = cmp.Or(i.Secret, string(t.UID))
		}
	}
}

// tokens lists the Secrets with a host's tokens, the newest first.
func (c *Client) tokens(ctx context.Context, host string) ([]token, error) {
	marks := c.agentMarks()
	marks[c.label(labelHost)] = host
	list, err := listed[*metav1.PartialObjectMetadata](ctx, "secrets of "+host, c.secrets(c.options.AgentNamespace).List,
		metav1.ListOptions{LabelSelector: klabels.Set(marks).String()})
	return tokensIn(host, list), err
}

// withToken is the identity with the Secret of that number.
func (i identity) withToken(host string, number int) identity {
	if number > 1 {
		i.secret.want = i.secret.want.DeepCopy()
		i.secret.want.SetName(inventory.FirstToken(host) + "-" + strconv.Itoa(number))
	}
	return i
}

// newest is the identity with the Secret that counts: the newest that was filled for the account, else the first.
func (c *Client) newest(ctx context.Context, host string, account *unstructured.Unstructured) (identity, []token, error) {
	i := c.identity(host)
	all, err := c.tokens(ctx, host)
	for _, t := range all {
		if account != nil && t.filled == string(account.GetUID()) {
			return i.withToken(host, t.number), all, err
		}
	}
	return i, all, err
}

// RenewToken makes another token for a host's kubelet, in addition to its current one. A Secret that an earlier
// run made and that was empty then is used.
func (c *Client) RenewToken(ctx context.Context, host string) (out inventory.Identity, err error) {
	defer wrap(&err, "renew the token of host %s", host)
	account, err := c.identity(host).account.ensure(ctx)
	if err != nil {
		return out, err
	}
	_, all, err := c.newest(ctx, host, account)
	if err != nil {
		return out, err
	}
	next := 1
	for _, t := range all {
		if t.filled != "" {
			next = max(next, t.number+1)
		}
	}
	i := c.identity(host).withToken(host, next)
	if _, err := i.secretOf(account).ensure(ctx); err != nil {
		return out, err
	}
	if _, err := c.awaitToken(ctx, i.secret.object()); err != nil {
		return out, err
	}
	if all, err = c.tokens(ctx, host); err != nil {
		return out, err
	}
	out = inventory.Identity{Host: host, ServiceAccount: string(account.GetUID()), Bound: true}
	enterTokens(&out, all)
	if !out.Issued {
		return out, fmt.Errorf("%s was deleted after its token was issued; fix: run macfleet apply again", i.secret.object())
	}
	return out, nil
}

// RetireTokens ends all tokens of a host's kubelet but the one of the Secret keep: the cluster takes a token no longer
// once its Secret is gone. If that one is missing or empty, nothing is deleted.
func (c *Client) RetireTokens(ctx context.Context, host, keep string) (err error) {
	defer wrap(&err, "revoke the older tokens of host %s", host)
	all, err := c.tokens(ctx, host)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(t token) bool { return t.Name == keep && t.filled != "" }) {
		return fmt.Errorf("the Secret %s with the newest token does not exist; fix: run macfleet apply again", keep)
	}
	kept := tokenNumber(host, keep)
	for _, t := range all {
		if t.filled == "" || t.number >= kept {
			continue
		}
		if err := c.identity(host).withToken(host, t.number).secret.revoke(ctx); err != nil {
			return err
		}
	}
	return nil
}
