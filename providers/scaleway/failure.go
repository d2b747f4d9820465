package scaleway

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/scaleway/scaleway-sdk-go/scw"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/transport"
)

// explain turns an error of the SDK into a ProviderError. The SDK's typed errors have no status and do not wrap the one
// that has, so each type has its case; the type and the status in the answer decide about the others.
func (c *Client) explain(of subject, err error, t *transport.Trail) error {
	e := &inventory.ProviderError{RequestID: t.ID, Status: t.Status, Cause: err}
	var known bool
	if e.Class, e.Text, known = c.typed(of, err); !known {
		e.Class, e.Text = c.untyped(of, err, t)
	}
	var passing *scw.TransientStateError
	if errors.As(err, &passing) {
		e.State = passing.CurrentState
	}
	e.Wait = waitFor(t, e.Class)
	if e.Class == inventory.RateLimited && e.Wait > 0 {
		e.Text += fmt.Sprintf("; Scaleway allows the next request in %s", e.Wait.Round(100*time.Millisecond))
	}
	switch e.Class {
	case inventory.ServerFault, inventory.NetworkFault, inventory.UnexpectedAnswer:
		e.Unsure = t.Sent && t.Method != http.MethodGet
	}
	if e.Unsure {
		e.Text += "; the request may have been carried out"
	}
	return e
}

// waitFor is how long to wait before a request that failed so is tried again.
func waitFor(t *transport.Trail, class inventory.Class) time.Duration {
	least := map[inventory.Class]time.Duration{inventory.Transient: settleEvery, inventory.RateLimited: time.Second,
		inventory.ServerFault: 10 * time.Second, inventory.NetworkFault: 10 * time.Second}[class]
	if least == 0 || t.Status == http.StatusNotImplemented {
		return 0
	}
	return max(least, t.Wait)
}

// typed explains the SDK's typed errors.
func (c *Client) typed(of subject, err error) (inventory.Class, string, bool) {
	var (
		denied       *scw.PermissionsDeniedError
		auth         *scw.DeniedAuthenticationError
		missing      *scw.ResourceNotFoundError
		quota        *scw.QuotasExceededError
		passing      *scw.TransientStateError
		locked       *scw.ResourceLockedError
		stock        *scw.OutOfStockError
		precondition *scw.PreconditionFailedError
		invalid      *scw.InvalidArgumentsError
		expired      *scw.ResourceExpiredError
	)
	switch {
	case errors.As(err, &denied):
		return inventory.Denied, c.deniedText(of, deniedOf(denied)), true
	case errors.As(err, &auth):
		return inventory.Unauthenticated, keyText(strings.Trim(auth.Method+": "+auth.Reason, ": ")), true
	case errors.As(err, &missing):
		return inventory.NotFound, missingText(thing(missing.Resource, missing.ResourceID)), true
	case errors.As(err, &quota):
		return inventory.QuotaExceeded, quotaText(quota), true
	case errors.As(err, &passing):
		return inventory.Transient, transientText(thing(passing.Resource, passing.ResourceID), passing.CurrentState), true
	case errors.As(err, &locked):
		return inventory.Locked, lockedText(thing(locked.Resource, locked.ResourceID)), true
	case errors.As(err, &stock):
		return inventory.OutOfStock, stockText(stock.Resource), true
	case errors.As(err, &precondition):
		return inventory.Precondition, preconditionText(strings.Trim(transport.Plain(precondition.Precondition)+": "+transport.Plain(precondition.HelpMessage), ": ")), true
	case errors.As(err, &invalid):
		return inventory.InvalidRequest, invalidText(invalid), true
	case errors.As(err, &expired):
		return inventory.Expired, fmt.Sprintf("Scaleway reports that %s expired at %s; fix: run macfleet plan again",
			thing(expired.Resource, expired.ResourceID), expired.ExpiredSince.UTC().Format(time.RFC3339)), true
	}
	return "", "", false
}

// kinds are the classes of the types that an error answer names. The SDK has no Go type for some of them, and returns
// none for an answer of which it cannot decode another field.
var kinds = map[string]inventory.Class{"permissions_denied": inventory.Denied, "denied_authentication": inventory.Unauthenticated,
	"not_found": inventory.NotFound, "unknown_resource": inventory.NotFound, "quotas_exceeded": inventory.QuotaExceeded,
	"transient_state": inventory.Transient, "locked": inventory.Locked, "out_of_stock": inventory.OutOfStock,
	"precondition_failed": inventory.Precondition, "invalid_arguments": inventory.InvalidRequest, "invalid_request_error": inventory.InvalidRequest,
	"resource_expired": inventory.Expired, "too_many_requests": inventory.RateLimited, "internal": inventory.ServerFault}

// statuses are the classes of HTTP statuses, for answers in JSON whose type says nothing.
var statuses = map[int]inventory.Class{http.StatusBadRequest: inventory.InvalidRequest, http.StatusUnauthorized: inventory.Unauthenticated,
	http.StatusForbidden: inventory.Denied, http.StatusNotFound: inventory.NotFound, http.StatusConflict: inventory.Transient, http.StatusGone: inventory.Expired,
	http.StatusPreconditionFailed: inventory.Precondition, http.StatusUnprocessableEntity: inventory.InvalidRequest,
	http.StatusLocked: inventory.Locked, http.StatusTooManyRequests: inventory.RateLimited}

// untyped explains all other errors.
func (c *Client) untyped(of subject, err error, t *transport.Trail) (inventory.Class, string) {
	var strange *transport.StrangeAnswer
	switch {
	case t.Status == http.StatusTooManyRequests:
		return inventory.RateLimited, "Scaleway refuses the request: too many in a short time; fix: run fewer macfleet commands at once"
	case errors.As(err, &strange):
		return inventory.UnexpectedAnswer, "unexpected answer from Scaleway: " + strange.Text +
			"; fix: check the proxy between this machine and Scaleway and SCW_API_URL, then run the command again"
	case t.Status == 0 && t.Sent:
		return inventory.NetworkFault, "no answer from Scaleway: " + onTheWay(err) + "; fix: check the network, then run the command again"
	case t.Status == 0 && t.Method != "":
		return inventory.NetworkFault, "no connection to Scaleway: " + onTheWay(err) + "; fix: check the network and the proxy, then run the command again"
	case t.Status == 0:
		return inventory.InvalidRequest, "the request was not sent: " + transport.Plain(err.Error())
	}
	var broken *transport.BrokenAnswer
	if errors.As(err, &broken) {
		return inventory.NetworkFault, fmt.Sprintf("incomplete answer from Scaleway (%s): %s; fix: run the command again", t.Text, transport.Plain(broken.Error()))
	}
	return c.unknownType(of, err, t)
}

// unknownType explains an answer by its type or its status.
func (c *Client) unknownType(of subject, err error, t *transport.Trail) (inventory.Class, string) {
	class, ok := kinds[t.Kind]
	if !ok {
		class, ok = statuses[t.Status]
	}
	if !ok && t.Status >= 500 {
		class, ok = inventory.ServerFault, true
	}
	said := t.Text
	var other *scw.ResponseError
	switch {
	case t.Status < 300:
		said += ": " + transport.Plain(err.Error())
	case errors.As(err, &other) && other.Message != "" && other.Message != other.Status:
		said += ": " + transport.Plain(other.Message)
	}
	switch {
	case !ok:
		return inventory.UnexpectedAnswer, "unexpected answer from Scaleway: " + said + "; fix: run the command again, then ask Scaleway's support"
	case class == inventory.Denied:
		return class, c.deniedText(of, "the request (the missing permission is not named)")
	case class == inventory.Unauthenticated:
		return class, keyText("")
	case class == inventory.NotFound:
		return class, missingText("what was requested")
	case class == inventory.Transient:
		return class, transientText("server ("+said+")", "")
	case class == inventory.Locked:
		return class, lockedText("server")
	case class == inventory.OutOfStock:
		return class, stockText("")
	case class == inventory.Precondition:
		return class, preconditionText(said)
	case class == inventory.ServerFault:
		return class, "Scaleway failed (" + said + "); fix: check status.scaleway.com, then run the command again"
	}
	return class, "Scaleway does not accept the request (" + said + "); fix: check zones and project_id in the configuration"
}

// onTheWay is what went wrong between this machine and the provider, without the address.
func onTheWay(err error) string {
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return transport.Plain(err.Error())
}

func (c *Client) deniedText(of subject, what string) string {
	text := fmt.Sprintf("Scaleway denies %s (insufficient permissions) in project %s; the API key needs %s there", what, c.project, of.right())
	if of == oneServer {
		text += ". A deleted server gives the same error: check whether macfleet hosts -o wide still lists it"
	}
	return text
}

// deniedOf says which actions were denied.
func deniedOf(err *scw.PermissionsDeniedError) string {
	var all []string
	for _, d := range err.Details {
		if text := strings.TrimSpace(d.Action + " " + d.Resource); text != "" {
			all = append(all, fmt.Sprintf("%q", transport.Plain(text)))
		}
	}
	if len(all) == 0 {
		return "the request (the missing permission is not named)"
	}
	return strings.Join(all, ", ")
}

func keyText(reason string) string {
	text := "Scaleway rejects the API key"
	if reason != "" {
		text += " (" + transport.Plain(reason) + ")"
	}
	return text + ": it is unknown, revoked or expired; fix: run scw init or set SCW_ACCESS_KEY and SCW_SECRET_KEY"
}

func missingText(what string) string {
	return "Scaleway has no " + what + "; fix: check zones and project_id in the configuration, then run macfleet plan again"
}

func quotaText(err *scw.QuotasExceededError) string {
	var all []string
	for _, d := range err.Details {
		all = append(all, fmt.Sprintf("%s %d of %d", transport.Plain(d.Resource), d.Current, d.Quota))
	}
	text := "the quota at Scaleway is used up"
	if len(all) > 0 {
		text += " (" + strings.Join(all, ", ") + ")"
	}
	return text + "; fix: ask Scaleway's support for a higher quota, or release servers"
}

func transientText(what, state string) string {
	if state != "" {
		what += " has the passing status " + transport.Plain(state)
	} else {
		what += " has a passing status"
	}
	return what + "; fix: wait until it is ready, then run the command again"
}

func lockedText(what string) string {
	return what + " is locked by Scaleway; fix: ask Scaleway's support why, or unlock it in the Scaleway console"
}

func stockText(resource string) string {
	if resource == "" {
		resource = "server"
	}
	return "Scaleway has no " + transport.Plain(resource) + " of this type in stock; fix: choose another type or zone, or try again later"
}

func preconditionText(why string) string {
	if why == "" {
		why = "no reason given"
	}
	return "Scaleway does not allow this yet (" + why + "); fix: check the server's lease and status in the Scaleway console"
}

func invalidText(err *scw.InvalidArgumentsError) string {
	var all []string
	for _, d := range err.Details {
		text := transport.Plain(d.ArgumentName)
		if d.Reason != "" {
			text += " (" + transport.Plain(d.Reason) + ")"
		}
		if d.HelpMessage != "" {
			text += ": " + transport.Plain(d.HelpMessage)
		}
		all = append(all, text)
	}
	text := "Scaleway does not accept the request"
	if len(all) > 0 {
		text += ": " + strings.Join(all, "; ")
	}
	return text + "; fix: check zones, types and project_id in the configuration"
}

// thing names what an error is about.
func thing(resource, id string) string {
	if resource == "" {
		resource = "server"
	}
	return strings.TrimSpace(transport.Plain(resource) + " " + transport.Plain(id))
}
