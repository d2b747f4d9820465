package kit

import (
	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// Restarter is a step with a job of its own, which a person may want to start anew.
type Restarter interface {
	plan.Step
	// Restart returns the change that does it. The view is of a host that has no
	// difference in this step.
	Restart(v plan.View) plan.Change
}

// SecretReader is a step with a script that reads a secret on its standard input.
type SecretReader interface {
	plan.Step
	// Reads returns which input that is.
	Reads() plan.InputKind
	// Render returns what the script reads. Its errors hold no part of the secret.
	Render(in InputFor, secret string) (string, error)
}

// InputFor is what an input is for, beside the secret in it.
type InputFor struct {
	Kind plan.InputKind
	Host fleet.Host
	Join inventory.Join // of a Kubeconfig
}
