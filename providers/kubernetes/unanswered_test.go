package kubernetes

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestUnanswered distinguishes answers from silence: what is missing or not allowed was
// answered.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	secrets := schema.GroupResource{Resource: "secrets"}
	for err, want := range map[error]bool{
		nil:                                 false,
		errors.New("connection refused"):    true,
		apierrors.NewNotFound(secrets, "x"): false,
		apierrors.NewForbidden(secrets, "x", nil):   false,
		apierrors.NewUnauthorized("no"):             false,
		apierrors.NewInternalError(errors.New("x")): true,
		apierrors.NewTooManyRequests("later", 1):    true,
		fmt.Errorf("secret %w", errNoKey):           false,
	} {
		if err != nil {
			err = fmt.Errorf("read: %w", err)
		}
		if got := Unanswered(err); got != want {
			t.Errorf("%v: %t", err, got)
		}
	}
}
