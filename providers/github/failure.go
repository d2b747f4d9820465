package github

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

// subject is what a request is about.
type subject int

const (
	runnersOf subject = iota
	oneRunner
	groups
	lookUp  // the App's installation
	minting // the installation's token
	moving  // a runner into a group
)

// suspended completes a sentence about an installation.
const suspended = " is suspended; fix: an owner unsuspends it on the organization's page of installed Apps"

// skew is the difference of two clocks that GitHub does not tolerate.
const skew = 2 * time.Minute

// explain turns an error into a ProviderError in macfleet's words.
func (c *Client) explain(of subject, err error, t *transport.Trail) error {
	e := &inventory.ProviderError{RequestID: t.ID, Status: t.Status, Cause: err}
	e.Class, e.Text = c.classify(of, err, t)
	e.Wait = waitFor(e.Class, t)
	if e.Class == inventory.RateLimited && e.Wait > 0 {
		e.Text += fmt.Sprintf("; GitHub allows the next request in %s", e.Wait.Round(time.Second))
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

// waitFor is how long to wait before a request that failed so is tried again. GitHub asks for a minute where its
// secondary limit does not say.
func waitFor(class inventory.Class, t *transport.Trail) time.Duration {
	switch class {
	case inventory.RateLimited:
		if t.Wait > 0 {
			return t.Wait
		}
		return time.Minute
	case inventory.ServerFault, inventory.NetworkFault:
		return max(10*time.Second, t.Wait)
	}
	return 0
}

func (c *Client) classify(of subject, err error, t *transport.Trail) (inventory.Class, string) {
	var strange *transport.StrangeAnswer
	var broken *transport.BrokenAnswer
	said := t.Text
	if t.Said != "" {
		said += ": " + t.Said
	}
	switch {
	case t.Limited:
		return inventory.RateLimited, "GitHub refuses the request: too many in a short time (" + said + "); fix: wait, and run fewer macfleet commands at once"
	case errors.As(err, &strange):
		return inventory.UnexpectedAnswer, "unexpected answer from GitHub: " + strange.Text + "; fix: check the host in the configuration (" + c.scope.host() +
			") and the proxy between this machine and it, then run the command again"
	case errors.As(err, &broken):
		return inventory.NetworkFault, fmt.Sprintf("incomplete answer from GitHub (%s): %s; fix: run the command again", t.Text, transport.Plain(broken.Error()))
	case t.Status == 0 && t.Sent:
		return inventory.NetworkFault, "no answer from GitHub: " + onTheWay(err) + "; fix: check the network, then run the command again"
	case t.Status == 0 && t.Method != "":
		return inventory.NetworkFault, "no connection to GitHub: " + onTheWay(err) + "; fix: check the network and the proxy, then run the command again"
	case t.Status == 0:
		return inventory.InvalidRequest, "the request was not sent: " + transport.Plain(err.Error())
	case t.Status < 300:
		return inventory.UnexpectedAnswer, "unexpected answer from GitHub: " + transport.Plain(err.Error()) + "; fix: run the command again"
	case t.Status < 400:
		return inventory.NotFound, "GitHub moved the " + c.scope.thing() + ": it was renamed; fix: write its new name into the configuration"
	case t.Status >= 500:
		return inventory.ServerFault, "GitHub failed (" + said + "); fix: check githubstatus.com, then run the command again"
	}
	switch t.Status {
	case http.StatusUnauthorized:
		return inventory.Unauthenticated, c.rejected(of, t, said)
	case http.StatusForbidden:
		return inventory.Denied, c.denied(t, said)
	case http.StatusNotFound, http.StatusGone:
		return inventory.NotFound, c.missing(of)
	case http.StatusUnprocessableEntity:
		return c.invalid(of, t, said)
	}
	return inventory.InvalidRequest, "GitHub does not accept the request (" + said + "); fix: check the github_runner block of the fleet"
}

// rejected explains why GitHub does not accept who asks.
func (c *Client) rejected(of subject, t *transport.Trail, said string) string {
	if of != lookUp && of != minting {
		if c.app != nil {
			return "GitHub rejects the token that it made for the App " + c.app.issuer + " (" + said + "); fix: check that the App is still installed on the " + c.scope.thing()
		}
		return "GitHub rejects the token (" + said + "): it is unknown, revoked or expired; fix: make another one, or use a GitHub App"
	}
	if now := c.pauses.Now(); !t.At.IsZero() {
		if ahead := now.Sub(t.At).Round(time.Second); ahead.Abs() > skew {
			side := "ahead of"
			if ahead < 0 {
				side = "behind"
			}
			return fmt.Sprintf("GitHub rejects the App's signature (%s): this machine's clock is %s %s GitHub's; fix: set the clock (macOS: sudo sntp -sS time.apple.com; Linux: timedatectl set-ntp true)",
				said, ahead.Abs(), side)
		}
	}
	if strings.Contains(t.Said, "Integration not found") {
		return "GitHub has no App " + c.app.issuer + " (" + said + "); fix: check app_id, and the host of the configuration"
	}
	keys := "the private key is not the App's, or was revoked"
	if len(c.app.keys) > 1 {
		keys = "neither private key is the App's, or both were revoked"
	}
	return "GitHub rejects the signature of the App " + c.app.issuer + " (" + said + "): " + keys + "; fix: generate a key on the App's page, and give it in private_key"
}

// denied explains a missing permission.
func (c *Client) denied(t *transport.Trail, said string) string {
	_, name := c.scope.permission()
	about := "GitHub denies the request about the " + c.scope.thing() + " (" + said + ")"
	switch {
	case strings.Contains(t.Said, "suspended"):
		return about + ": the App's installation" + suspended
	case strings.Contains(t.Said, "personal access token"):
		return about + ": a fine-grained token needs the permission " + name + " and an owner as its user; fix: use a GitHub App, or a token of an owner"
	case strings.Contains(t.Said, "SAML"):
		return about + "; fix: authorize the token for single sign-on, or use a GitHub App"
	case strings.Contains(t.Said, "IP a"):
		return about + "; fix: add this machine's address to the organization's list of allowed addresses"
	case c.app != nil && !c.minted.write.Load():
		return about + ": the App " + c.app.issuer + " has the permission " + name + " for reading only; fix: grant write on the App's page, and let an owner accept it"
	case c.app != nil:
		return about + ": the App " + c.app.issuer + " lacks the permission " + name + "; fix: grant it on the App's page, and let an owner of the organization accept the change"
	}
	scope := "admin:org"
	if c.scope.Repository != "" {
		scope = "repo"
	}
	return about + "; fix: give the token the scope " + scope + ", or use a GitHub App with the permission " + name
}

// missing explains what GitHub does not have, or does not show.
func (c *Client) missing(of subject) string {
	switch of {
	case lookUp:
		return "the App " + c.app.issuer + " is not installed on the " + c.scope.thing() + "; fix: install it there, or check the names in the configuration"
	case minting:
		return fmt.Sprintf("the App %s has no installation %d; fix: correct installation_id, or leave it out so that it is looked up", c.app.issuer, c.app.installation)
	case oneRunner:
		return "GitHub has no such runner any more in the " + c.scope.thing() + "; fix: run macfleet plan again"
	case moving:
		return "GitHub no longer has the runner or the group in the " + c.scope.thing() + "; fix: run macfleet plan again"
	case groups:
		return "GitHub has no such runner group in the " + c.scope.thing() + ", or its plan has none; fix: check runner_group and fence_group"
	}
	return "GitHub has no " + c.scope.thing() + ", or does not show it to these credentials; fix: check its name in the configuration, and the permissions"
}

// notGranted reports whether a token with more permissions was requested than the installation has.
func notGranted(err error) bool {
	var e *inventory.ProviderError
	return errors.As(err, &e) && e.Status == http.StatusUnprocessableEntity
}

// invalid explains a refusal of what was sent.
func (c *Client) invalid(of subject, t *transport.Trail, said string) (inventory.Class, string) {
	_, name := c.scope.permission()
	switch {
	case of == minting:
		return inventory.Denied, "GitHub makes no token for the App " + c.app.issuer + " (" + said + "): it lacks the permission " + name +
			"; fix: grant it on the App's page, and let an owner of the organization accept the change"
	case strings.Contains(t.Said, "running a job"):
		return inventory.Precondition, "GitHub keeps the runner: it says that a job runs (" + said + "); fix: wait for the job"
	}
	return inventory.InvalidRequest, "GitHub does not accept the request (" + said + "); fix: check labels and groups of the github_runner block"
}

// onTheWay is what went wrong between this machine and GitHub, without the address.
func onTheWay(err error) string {
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return transport.Plain(err.Error())
}
