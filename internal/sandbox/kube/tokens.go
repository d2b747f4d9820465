package kube

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	minExpiry     = 600         // seconds
	maxExpiry     = 365 * 86400 // seconds: this cluster's maximum; longer requests are cut
	defaultExpiry = 3600        // seconds
)

// issue answers a TokenRequest.
func (a *API) issue(r *request) (answer, error) {
	var wanted authenticationv1.TokenRequest
	if err := bodyInto(r, &wanted); err != nil {
		return answer{}, err
	}
	account, err := a.target(r)
	if err != nil {
		return answer{}, err
	}
	expiry := int64(defaultExpiry)
	if wanted.Spec.ExpirationSeconds != nil {
		expiry = *wanted.Spec.ExpirationSeconds
	}
	if expiry < minExpiry {
		return answer{}, apierrors.NewInvalid(authenticationv1.SchemeGroupVersion.WithKind("TokenRequest").GroupKind(), "", field.ErrorList{
			field.Invalid(field.NewPath("spec", "expirationSeconds"), expiry, "may not specify a duration less than 10 minutes"),
		})
	}
	expiry = min(expiry, maxExpiry)
	if len(wanted.Spec.Audiences) == 0 {
		wanted.Spec.Audiences = []string{issuer}
	}
	bound, err := a.bind(r, wanted.Spec.BoundObjectRef)
	if err != nil {
		return answer{}, err
	}
	bound.Namespace, bound.Account = r.namespace, namedUID{account.GetName(), string(account.GetUID())}
	token, err := a.keys.sign(claims{
		Issuer: issuer, Subject: accountPrefix + r.namespace + ":" + r.name, Audience: wanted.Spec.Audiences,
		Issued: r.now.Unix(), After: r.now.Unix(), Expires: r.now.Unix() + expiry, ID: string(newUID()), Bound: bound,
	})
	if err != nil {
		return answer{}, err
	}
	wanted.TypeMeta = metav1.TypeMeta{Kind: "TokenRequest", APIVersion: "authentication.k8s.io/v1"}
	wanted.Name, wanted.Namespace, wanted.UID = r.name, r.namespace, account.GetUID()
	wanted.CreationTimestamp = metav1.NewTime(r.now.Truncate(time.Second))
	wanted.Spec.ExpirationSeconds = &expiry
	wanted.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(r.now.Truncate(time.Second).Add(time.Duration(expiry) * time.Second))}
	return answer{code: http.StatusCreated, body: wanted}, nil
}

// bind ties a token to the life of a Secret or a Pod, if the request names one.
func (a *API) bind(r *request, ref *authenticationv1.BoundObjectReference) (*boundClaims, error) {
	bound := &boundClaims{}
	if ref == nil {
		return bound, nil
	}
	resource, into := pods, &bound.Pod
	switch ref.Kind {
	case "Pod":
	case "Secret":
		resource, into = secrets, &bound.Secret
	default:
		return nil, apierrors.NewBadRequest("cannot bind token to object of type " + ref.Kind)
	}
	o, err := a.state.peek(resource, r.namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	if o == nil {
		return nil, apierrors.NewNotFound(a.kinds.named(resource).groupResource(), ref.Name)
	}
	if ref.UID != "" && ref.UID != o.GetUID() {
		return nil, apierrors.NewConflict(r.kind.groupResource(), r.name, fmt.Errorf(
			"the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID))
	}
	*into = &boundName{o.GetName(), string(o.GetUID())}
	return bound, nil
}

// fillTokens does the work of the cluster's token controller: a Secret for the token of a
// ServiceAccount gets it, and is deleted with the ServiceAccount.
func (a *API) fillTokens() error {
	all, err := a.state.list(secrets, "")
	if err != nil {
		return err
	}
	for _, secret := range all {
		if textAt(secret, "type") != string(corev1.SecretTypeServiceAccountToken) {
			continue
		}
		if err := a.fillToken(secret); err != nil {
			return err
		}
	}
	return nil
}

func (a *API) fillToken(secret *object) error {
	name := secret.GetAnnotations()[corev1.ServiceAccountNameKey]
	account, err := a.state.peek(serviceAccounts, secret.GetNamespace(), name)
	if err != nil {
		return err
	}
	given := secret.GetAnnotations()[corev1.ServiceAccountUIDKey]
	if account == nil || given != "" && given != string(account.GetUID()) {
		return a.state.remove(secrets, secret)
	}
	if textAt(secret, "data", "token") != "" {
		return nil
	}
	token, err := a.keys.sign(claims{
		Issuer: legacyIssuer, Subject: accountPrefix + secret.GetNamespace() + ":" + name,
		Namespace: secret.GetNamespace(), Secret: secret.GetName(), Account: name, AccountUID: string(account.GetUID()),
	})
	if err != nil {
		return err
	}
	ca, err := a.authority()
	if err != nil {
		return err
	}
	filled := secret.DeepCopy()
	annotations := filled.GetAnnotations()
	annotations[corev1.ServiceAccountUIDKey] = string(account.GetUID())
	filled.SetAnnotations(annotations)
	for key, value := range map[string]string{"token": token, "ca.crt": ca, "namespace": secret.GetNamespace()} {
		set(filled, base64.StdEncoding.EncodeToString([]byte(value)), "data", key)
	}
	return a.state.put(secrets, filled)
}

// review answers a user's question about the user's own rights.
func (a *API) review(r *request) (answer, error) {
	if r.verb != "create" {
		return answer{}, apierrors.NewMethodNotSupported(r.kind.groupResource(), r.verb)
	}
	if r.resource == selfReviews {
		review := authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{Kind: r.kind.name, APIVersion: r.kind.gvk().GroupVersion().String()}}
		review.CreationTimestamp = metav1.NewTime(r.now.Truncate(time.Second))
		review.Status.UserInfo = authenticationv1.UserInfo{Username: r.user.name, UID: r.user.uid, Groups: r.user.groups}
		return answer{code: http.StatusCreated, body: review}, nil
	}
	var review authorizationv1.SelfSubjectAccessReview
	if err := bodyInto(r, &review); err != nil {
		return answer{}, err
	}
	var d deed
	switch spec := review.Spec; {
	case spec.ResourceAttributes != nil:
		attributes := spec.ResourceAttributes
		d = deed{verb: attributes.Verb, group: attributes.Group, resource: attributes.Resource, name: attributes.Name, namespace: attributes.Namespace}
		if attributes.Subresource != "" {
			d.resource += "/" + attributes.Subresource
		}
	case spec.NonResourceAttributes != nil:
		d = deed{verb: spec.NonResourceAttributes.Verb, path: spec.NonResourceAttributes.Path}
	default:
		return answer{}, invalid(r.kind, "", field.Invalid(field.NewPath("spec", "resourceAttributes"), nil, "exactly one of nonResourceAttributes or resourceAttributes must be specified"))
	}
	allowed, err := a.allowed(r.user, d)
	review.TypeMeta = metav1.TypeMeta{Kind: r.kind.name, APIVersion: r.kind.gvk().GroupVersion().String()}
	review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: allowed}
	return answer{code: http.StatusCreated, body: review}, err
}
