package plan

import (
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// The codes of what keeps macfleet from using the provider's account.
var (
	CodeKeyRejected = NewCode("api-key-rejected", NotDrift, "the provider rejects the API key: it is unknown, revoked or expired",
		"create an API key in the provider's console, then: scw init, or set SCW_ACCESS_KEY and SCW_SECRET_KEY")
	CodeRightMissing = NewCode("right-missing", NotDrift, "the API key lacks a right that macfleet needs",
		"give the API key the permission sets AppleSiliconFullAccess and SSHKeysFullAccess in the project")
	CodeWrongProject = NewCode("wrong-project", NotDrift, "the project has none of the servers that macfleet knows, or no server while others have some",
		"correct project_id and zones in the configuration, or use an API key of that project")
	CodeRateLimited = NewCode("rate-limited", NotDrift, "the provider refused requests because there were too many, for longer than macfleet waits",
		"run fewer macfleet commands at once, then run the command again")
	codeProviderAway = NewCode("provider-away", NotDrift, "the provider did not answer, or failed, for longer than macfleet waits",
		"check the network and the provider's status page, then run the command again")
)

// ProviderCode returns the code of a provider's error; the zero Code: it needs none, because its cause is one request.
func ProviderCode(err error) Code {
	switch inventory.ClassOf(err) {
	case inventory.Unauthenticated:
		return CodeKeyRejected
	case inventory.Denied:
		return CodeRightMissing
	case inventory.RateLimited:
		return CodeRateLimited
	case inventory.ServerFault, inventory.NetworkFault, inventory.UnexpectedAnswer:
		return codeProviderAway
	}
	return Code{}
}

// ProviderTrouble returns a provider's error as a trouble; nil: it has no code.
func ProviderTrouble(err error) *Trouble {
	code := ProviderCode(err)
	if code == (Code{}) {
		return nil
	}
	text, fix := SplitFix(err)
	return code.Trouble(text, fix)
}

// SplitFix returns an error's text without the fix that it names, and the fix; empty: it names none.
func SplitFix(err error) (text, fix string) {
	text, fix, _ = strings.Cut(err.Error(), "; fix: ")
	if before, id, has := strings.Cut(fix, " (request id "); has {
		text, fix = text+" (request id "+id, before
	}
	return text, fix
}
