package hosts

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// The ways in which a host answers to a password other than by taking it.
var (
	ErrPasswordRefused = errors.New("the host refused the password")
	ErrAccountLocked   = errors.New("the account is locked after too many wrong passwords")
	ErrPasswordRace    = errors.New("another run has tried a password on this host meanwhile")
	ErrPasswordBusy    = errors.New("another run tries a password on this host, or broke off while it did")
)

// PasswordBusy is how long a host may say ErrPasswordBusy because of one try: the lock of
// a run that died counts for 70 s, a bit more than a script may take.
const PasswordBusy = 75 * time.Second

// The exit codes of password-check.sh.
const (
	passwordRefused = 3
	accountLocked   = 5
	passwordRace    = 7
	passwordBusy    = 8
)

// CheckPassword tries the login user's password once and leaves a note on the
// host when it is refused, under the given seal. It tries nothing when the host
// remembers other tries than the given ones: somebody else tried a password
// meanwhile, perhaps the same. The error is or wraps ErrPasswordRefused,
// ErrAccountLocked, ErrPasswordRace or ErrPasswordBusy, a *ScriptError when sudo
// failed for another reason, or an *Error when the connection broke.
func (c *Conn) CheckPassword(ctx context.Context, password secret.Value, seal secret.Seal, remembered []plan.Refusal, now time.Time) error {
	command := own("password-check", plan.Login, strconv.FormatInt(now.Unix(), 10), tries(remembered))
	input, err := secret.New(password.Reveal() + "\n" + string(seal) + "\n")
	if err != nil {
		return fmt.Errorf("check the password of %s: %w", c.target.name(), err)
	}
	a, err := c.RunWith(ctx, command, input)
	switch {
	case err != nil:
		return err
	case a.Exit == passwordRefused:
		return fmt.Errorf("%s: %w", c.target.name(), ErrPasswordRefused)
	case a.Exit == accountLocked:
		return fmt.Errorf("%s: %w", c.target.name(), ErrAccountLocked)
	case a.Exit == passwordRace:
		return fmt.Errorf("%s: %w", c.target.name(), ErrPasswordRace)
	case a.Exit == passwordBusy:
		return fmt.Errorf("%s: %w", c.target.name(), ErrPasswordBusy)
	case a.Exit != 0:
		return &ScriptError{Host: c.target.name(), Script: command.Name, Answer: a}
	}
	return nil
}

// tries says what a host remembers, as password-check.sh puts it together.
func tries(remembered []plan.Refusal) string {
	var b strings.Builder
	for _, r := range remembered {
		switch {
		case r.Seal == "": // a line that cannot be read
			b.WriteString("?;")
		case r.Refused:
			fmt.Fprintf(&b, "refused%d;", r.Tries)
		default:
			fmt.Fprintf(&b, "trying%d;", r.Tries)
		}
	}
	return b.String()
}
