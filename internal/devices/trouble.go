package devices

import (
	"cmp"
	"errors"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// The codes of what keeps macfleet from using the tailnet.
var (
	codeTailnetUnread = plan.NewCode("tailnet-credentials-unread", plan.NotDrift, "the credentials for the tailnet could not be read, or are not valid",
		"correct the references in the tailnet block, or what they refer to")
	codeTailnetRefused = plan.NewCode("tailnet-credentials-refused", plan.NotDrift, "the control server refuses the credentials: they are unknown or were revoked",
		"create an OAuth client with the scopes devices:core and auth_keys, and give its secret in the tailnet block")
	codeTailnetRight = plan.NewCode("tailnet-right-missing", plan.NotDrift, "the credentials lack a scope that macfleet needs in the tailnet",
		"give the OAuth client the scopes devices:core and auth_keys")
	codeTagsDenied = plan.NewCode("tags-not-permitted", plan.NotDrift, "the credentials may not give hosts the configured tags",
		"give the OAuth client exactly these tags, or let its tag own them in tagOwners of the policy")
	codeTailnetDown = plan.NewCode("tailnet-down", plan.NotDrift, "the tailnet's control server does not answer, so devices are not compared",
		"check the control server's status page and the network of this machine, then run the command again")
)

// Trouble returns why the control server could not be read or used. The text and the fix of the error count.
func Trouble(err error) *plan.Trouble {
	var unread *credentialsError
	code := codeTailnetDown
	switch class := inventory.ClassOf(err); {
	case errors.As(err, &unread):
		code = codeTailnetUnread
	case class == inventory.Unauthenticated:
		code = codeTailnetRefused
	case class == inventory.Denied:
		code = codeTailnetRight
	case class == inventory.TagsDenied:
		code = codeTagsDenied
	case class == inventory.RateLimited:
		code = plan.CodeRateLimited
	}
	text, fix := plan.SplitFix(err)
	return code.Trouble(text, cmp.Or(fix, code.Remedy()))
}

// coded is an error of the control server with its code; others stay as they are.
func coded(err error) error {
	if inventory.ClassOf(err) == "" {
		return err
	}
	return Trouble(err)
}
