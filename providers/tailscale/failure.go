package tailscale

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/transport"
)

// explain turns an error into a ProviderError in macfleet's words.
func (c *Client) explain(err error, t *transport.Trail) error {
	e := &inventory.ProviderError{RequestID: t.ID, Status: t.Status, Cause: err}
	e.Class, e.Text = c.classify(err, t)
	switch e.Class {
	case inventory.RateLimited:
		e.Wait = max(time.Minute, t.Wait)
	case inventory.ServerFault, inventory.NetworkFault:
		e.Wait = max(10*time.Second, t.Wait)
	}
	switch e.Class {
	case inventory.ServerFault, inventory.NetworkFault, inventory.UnexpectedAnswer:
		e.Unsure = t.Sent && t.Method != http.MethodGet && !strings.HasPrefix(t.Path, "/api/v2/oauth/")
	}
	if e.Unsure {
		e.Text += "; the request may have been carried out"
	}
	return e
}

func (c *Client) classify(err error, t *transport.Trail) (inventory.Class, string) {
	var odd *transport.StrangeAnswer
	var broken *transport.BrokenAnswer
	said := t.Text
	if t.Said != "" {
		said += ": " + t.Said
	}
	switch {
	case t.Limited:
		return inventory.RateLimited, "Tailscale refuses the request: too many in a short time (" + said + "); fix: wait, and run fewer macfleet commands at once"
	case errors.As(err, &odd):
		return inventory.UnexpectedAnswer, "unexpected answer from Tailscale: " + odd.Text + "; fix: check the proxy between this machine and api.tailscale.com, then run the command again"
	case errors.As(err, &broken):
		return inventory.NetworkFault, fmt.Sprintf("incomplete answer from Tailscale (%s): %s; fix: run the command again", t.Text, transport.Plain(broken.Error()))
	case t.Status == 0 && t.Sent:
		return inventory.NetworkFault, "no answer from Tailscale: " + onTheWay(err) + "; fix: check the network, then run the command again"
	case t.Status == 0 && t.Method != "":
		return inventory.NetworkFault, "no connection to Tailscale: " + onTheWay(err) + "; fix: check the network and the proxy, then run the command again"
	case t.Status == 0:
		return inventory.InvalidRequest, "the request was not sent: " + transport.Plain(err.Error())
	case t.Status < 300:
		return inventory.UnexpectedAnswer, "unexpected answer from Tailscale: " + transport.Plain(err.Error()) + "; fix: run the command again"
	case t.Status < 400:
		return inventory.UnexpectedAnswer, "Tailscale's API redirects the request (" + said + "); fix: check the proxy between this machine and api.tailscale.com"
	case t.Status >= 500:
		return inventory.ServerFault, "Tailscale failed (" + said + "); fix: check status.tailscale.com, then run the command again"
	}
	token := strings.HasPrefix(t.Path, "/api/v2/oauth/")
	switch {
	case token && c.options.Credentials.Secret.IsZero():
		return inventory.Unauthenticated, "Tailscale refuses the federated identity (" + said +
			"); fix: compare issuer, subject and audience of the identity with the job's token: GitHub may write ids instead of names into the subject"
	case token, t.Status == http.StatusUnauthorized:
		return inventory.Unauthenticated, "Tailscale refuses the OAuth client (" + said + "): it is unknown or was revoked; fix: create one (Settings, OAuth clients) with the scopes " + scopes + ", and give its secret in auth"
	case t.Status == http.StatusForbidden:
		return inventory.Denied, "the credentials lack a right in the tailnet (" + said + "); fix: give the OAuth client the scopes " + scopes
	case t.Status == http.StatusNotFound:
		return inventory.NotFound, "the tailnet has no such device or key (" + said + "); fix: run macfleet plan again"
	case strings.Contains(t.Said, "tags") && strings.Contains(t.Said, "not permitted"):
		return inventory.TagsDenied, "the credentials may not give hosts the tags " + strings.Join(c.options.Tags, ", ") + " (" + said + "); fix: " + c.owners()
	}
	return inventory.InvalidRequest, "Tailscale does not accept the request (" + said + "); fix: check the tailnet block"
}

// scopes are those that macfleet needs.
const scopes = "devices:core and auth_keys"

// owners are the lines of the tailnet's policy that let the credentials give the tags.
func (c *Client) owners() string {
	var lines []string
	for _, tag := range c.options.Tags {
		lines = append(lines, fmt.Sprintf("%q: [\"tag:macfleet\"]", tag))
	}
	return "give the OAuth client exactly these tags; or give it tag:macfleet, and add to tagOwners of the policy: " + strings.Join(lines, ", ")
}

// onTheWay is what went wrong between this machine and Tailscale, without the address.
func onTheWay(err error) string {
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return transport.Plain(err.Error())
}
