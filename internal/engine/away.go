package engine

import "github.com/macfleet/macfleet/plan"

// The providers that may not answer.
const (
	Scaleway   = "scaleway"
	Kubernetes = "kubernetes"
)

// AwayError reports that a provider did not answer, or refused to: what it holds is unknown, not missing.
type AwayError struct {
	Provider string
	Err      error
}

// Error returns the cause's code, if it has one, and its text.
func (e *AwayError) Error() string {
	if code := plan.ProviderCode(e.Err); code != (plan.Code{}) {
		return code.String() + ": " + e.Err.Error()
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *AwayError) Unwrap() error { return e.Err }
