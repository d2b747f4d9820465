package steps

import (
	"encoding/base64"
	"fmt"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kcpassword"
)

// InputFor is what an input is for, beside the secret in it.
type InputFor struct {
	Kind plan.InputKind
	Host fleet.Host
	Join inventory.Join // of a Kubeconfig
}

// Input renders what a change's script reads on its standard input: from the login
// user's password, or from the token of the host's identity. Its errors hold no
// part of the secret.
func Input(in InputFor, value secret.Value) (secret.Value, error) {
	switch in.Kind {
	case plan.LoginPassword, plan.AutoLogin:
		return passwordInput(in.Kind, value)
	case plan.Kubeconfig:
		text, err := kubeconfigText(in.Host.Name, in.Join, value.Reveal())
		if err != nil {
			return secret.Value{}, err
		}
		return secret.New(text)
	}
	return secret.Value{}, fmt.Errorf("no script reads the input %q", in.Kind)
}

func passwordInput(kind plan.InputKind, password secret.Value) (secret.Value, error) {
	// The encoder refuses what is no password, or could not stand in one line.
	file, err := kcpassword.Encode([]byte(password.Reveal()))
	if err != nil {
		return secret.Value{}, fmt.Errorf("the login password is of no use: %w", err)
	}
	text := password.Reveal() + "\n"
	if kind == plan.AutoLogin {
		text += base64.StdEncoding.EncodeToString(file) + "\n"
	}
	return secret.New(text)
}
