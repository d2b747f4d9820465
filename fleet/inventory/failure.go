package inventory

import (
	"errors"
	"time"
)

// Class is the kind of a provider's error. It decides what a caller does; the text is for people.
type Class string

// The classes of a provider's errors.
const (
	Denied           Class = "denied"             // the credentials lack a permission, or the object was deleted
	Unauthenticated  Class = "unauthenticated"    // the credentials are unknown, revoked or expired
	NotFound         Class = "not-found"          // the provider has no such object
	QuotaExceeded    Class = "quota-exceeded"     // the account may have no more
	Transient        Class = "transient"          // the object is in a state that passes by itself
	Locked           Class = "locked"             // the provider locked the object
	OutOfStock       Class = "out-of-stock"       // the provider has none left
	Precondition     Class = "precondition"       // the object's state forbids it, for example its lease
	InvalidRequest   Class = "invalid-request"    // the provider does not accept the arguments
	Expired          Class = "expired"            // the object's time is over
	TagsDenied       Class = "tags-not-permitted" // the credentials may not give these tags
	RateLimited      Class = "rate-limited"       // too many requests
	ServerFault      Class = "server-fault"       // the provider failed
	NetworkFault     Class = "network-fault"      // no answer, or only a part of it
	UnexpectedAnswer Class = "unexpected-answer"  // an answer that is not the provider's, or of an unknown form
)

// ProviderError is an error of a provider's API, in macfleet's words. A Denied one is ErrDenied.
type ProviderError struct {
	Class     Class
	Wait      time.Duration // how long to wait before another try; 0: another try does not help
	RequestID string        // what the provider calls the request; empty: unknown
	Status    int           // HTTP status; 0: there was no answer
	State     string        // of a Transient error: the object's state; empty: unknown
	// Unsure says that the request may have been carried out nevertheless: look before it is sent again.
	Unsure bool
	Text   string // what failed, why, and what to do
	Cause  error  // the SDK's error; its text may hold anything
}

// Error returns the text and the request id.
func (e *ProviderError) Error() string {
	text := e.Text
	if e.Class == Denied {
		text = ErrDenied.Error() + ": " + text
	}
	if e.RequestID != "" {
		text += " (request id " + e.RequestID + ")"
	}
	return text
}

// Unwrap returns the SDK's error.
func (e *ProviderError) Unwrap() error { return e.Cause }

// Is reports whether it is ErrDenied.
func (e *ProviderError) Is(target error) bool { return target == ErrDenied && e.Class == Denied }

// ClassOf returns the class of a provider's error, empty for other errors.
func ClassOf(err error) Class {
	if e := providerError(err); e != nil {
		return e.Class
	}
	return ""
}

// Unsure reports whether a request that failed may have been carried out nevertheless. Errors that are not a
// provider's are unsure too.
func Unsure(err error) bool {
	e := providerError(err)
	return err != nil && (e == nil || e.Unsure)
}

func providerError(err error) *ProviderError {
	var e *ProviderError
	if errors.As(err, &e) {
		return e
	}
	return nil
}
