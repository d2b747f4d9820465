package kube

import (
	"crypto/subtle"
	"encoding/base64"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// user is the authenticated user.
type user struct {
	name, uid string
	groups    []string
}

const (
	masters         = "system:masters" // may do everything
	authenticated   = "system:authenticated"
	unauthenticated = "system:unauthenticated"
	anonymousName   = "system:anonymous"
	accountPrefix   = "system:serviceaccount:"
	accountsGroup   = "system:serviceaccounts"
)

func accountUser(namespace, name, uid string) user {
	return user{
		name: accountPrefix + namespace + ":" + name, uid: uid,
		groups: []string{accountsGroup, accountsGroup + ":" + namespace, authenticated},
	}
}

// authenticate returns the user of a request's Authorization header.
func (a *API) authenticate(header string, now time.Time) (user, error) {
	token, ok := strings.CutPrefix(header, "Bearer ")
	if !ok || token == "" {
		return user{name: anonymousName, groups: []string{unauthenticated}}, nil
	}
	if a.token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(a.token)) == 1 {
		return user{name: "kubernetes-admin", groups: []string{masters, authenticated}}, nil
	}
	who, ok, err := a.account(token, now)
	if err == nil && !ok {
		err = apierrors.NewUnauthorized("Unauthorized")
	}
	return who, err
}

// account returns the ServiceAccount of a token if the cluster accepts the token. The objects that the
// token is bound to must still exist: deleting the Secret or the ServiceAccount revokes it, and a new
// one with the same name has a different uid.
func (a *API) account(token string, now time.Time) (user, bool, error) {
	c, ok, err := a.keys.read(token)
	if err != nil || !ok {
		return user{}, false, err
	}
	namespace, name, uid := c.Namespace, c.Account, c.AccountUID
	if c.Bound != nil {
		namespace, name, uid = c.Bound.Namespace, c.Bound.Account.Name, c.Bound.Account.UID
	}
	account, err := a.state.peek(serviceAccounts, namespace, name)
	if err != nil || account == nil || string(account.GetUID()) != uid || name == "" {
		return user{}, false, err
	}
	who := accountUser(namespace, name, uid)
	if c.Bound == nil {
		secret, err := a.state.peek(secrets, namespace, c.Secret)
		if err != nil || secret == nil || textAt(secret, "data", "token") != base64.StdEncoding.EncodeToString([]byte(token)) {
			return user{}, false, err
		}
		return who, true, nil
	}
	if now.Unix() >= c.Expires || now.Unix() < c.After {
		return user{}, false, nil
	}
	for resource, bound := range map[string]*boundName{secrets: c.Bound.Secret, pods: c.Bound.Pod} {
		if bound == nil {
			continue
		}
		there, err := a.state.peek(resource, namespace, bound.Name)
		if err != nil || there == nil || string(there.GetUID()) != bound.UID {
			return user{}, false, err
		}
	}
	return who, true, nil
}
