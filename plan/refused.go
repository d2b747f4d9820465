package plan

import "errors"

// What a host answers to a write of its marker or to a password, other than by taking it.
var (
	ErrMarkerMoved     = errors.New("the host's marker is another one since it was read")
	ErrPasswordRefused = errors.New("the host refused the password")
	ErrAccountLocked   = errors.New("the account is locked after too many wrong passwords")
	ErrPasswordRace    = errors.New("another run has tried a password on this host meanwhile")
	ErrPasswordBusy    = errors.New("another run tries a password on this host, or broke off while it did")
)
