package hosts

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// passwordEnds are the exit codes of password-check.sh.
var passwordEnds = map[int]error{3: plan.ErrPasswordRefused, 5: plan.ErrAccountLocked, 7: plan.ErrPasswordRace, 8: plan.ErrPasswordBusy}

// CheckPassword tries the login user's password once and leaves a note on the
// host when it is refused, under the given seal. It tries nothing when the host
// remembers other tries than the given ones: somebody else tried a password
// meanwhile, perhaps the same. The error is or wraps plan.ErrPasswordRefused,
// plan.ErrAccountLocked, plan.ErrPasswordRace or plan.ErrPasswordBusy, a *ScriptError when sudo
// failed for another reason, or an *Error when the connection broke.
func (c *Conn) CheckPassword(ctx context.Context, password secret.Value, seal secret.Seal, remembered []plan.Refusal, now time.Time) error {
	command := own("password-check", plan.Login, strconv.FormatInt(now.Unix(), 10), tries(remembered))
	input, err := secret.New(password.Reveal() + "\n" + string(seal) + "\n")
	if err != nil {
		return fmt.Errorf("check the password of %s: %w", c.target.name(), err)
	}
	a, err := c.Run(ctx, command, input)
	if why := passwordEnds[a.Exit]; why != nil {
		return fmt.Errorf("%s: %w", c.target.name(), why)
	}
	return err
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
