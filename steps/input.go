package steps

import (
	"fmt"

	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// Input renders what a change's script reads on its standard input, of the
// host's login password. The error is about a kind that no step names.
func Input(kind plan.InputKind, password secret.Value) (secret.Value, error) {
	if kind == plan.LoginPassword {
		return secret.New(password.Reveal() + "\n")
	}
	return secret.Value{}, fmt.Errorf("no script reads %q", kind)
}
