package steps

import (
	"fmt"

	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/steps/kit"
)

// InputFor is what an input is for, beside the secret in it.
type InputFor = kit.InputFor

// Input renders what a change's script reads on its standard input: from the login
// user's password, or from the token of the host's identity. Its errors hold no
// part of the secret.
func Input(in InputFor, value secret.Value) (secret.Value, error) {
	for _, s := range For(in.Host) {
		if r, has := s.(kit.SecretReader); has && r.Reads() == in.Kind {
			text, err := r.Render(in, value.Reveal())
			if err != nil {
				return secret.Value{}, err
			}
			return secret.New(text)
		}
	}
	return secret.Value{}, fmt.Errorf("no script reads the input %q", in.Kind)
}
