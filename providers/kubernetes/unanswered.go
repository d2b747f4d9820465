package kubernetes

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Unanswered reports whether an error of the cluster says nothing about what was
// asked: there was no way to it, or it could not answer. That something is not there
// or not allowed is an answer.
func Unanswered(err error) bool {
	var status apierrors.APIStatus
	if err == nil || !errors.As(err, &status) {
		var missing *missingKeyError
		return err != nil && !errors.As(err, &missing)
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
}

// missingKeyError says that a Secret is there and has not the key.
type missingKeyError struct{ text string }

// Error names the keys that it has.
func (e *missingKeyError) Error() string { return e.text }
