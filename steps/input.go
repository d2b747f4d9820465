package steps

import (
	"encoding/base64"
	"fmt"

	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kcpassword"
)

// Input renders what a change's script reads on its standard input, from the
// login user's password. Its errors hold no part of the password.
func Input(kind plan.InputKind, password secret.Value) (secret.Value, error) {
	// The encoder refuses what is no password, or could not stand in one line.
	file, err := kcpassword.Encode([]byte(password.Reveal()))
	if err != nil {
		return secret.Value{}, fmt.Errorf("the login password is of no use: %w", err)
	}
	text := password.Reveal() + "\n"
	switch kind {
	case plan.LoginPassword:
	case plan.AutoLogin:
		text += base64.StdEncoding.EncodeToString(file) + "\n"
	default:
		return secret.Value{}, fmt.Errorf("no script reads the input %q", kind)
	}
	return secret.New(text)
}
