package hosts

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// Claim creates /etc/macfleet/claim.json atomically, and returns the claim on the host
// afterwards: the given one, or an earlier one.
func (c *Conn) Claim(ctx context.Context, claim plan.Claim) (plan.Claim, error) {
	text, _ := json.Marshal(claim) // strings can always be encoded
	a, err := c.own(ctx, "claim-create", string(text)+"\n")
	if err != nil {
		return plan.Claim{}, err
	}
	return parseClaim(a.Stdout)
}

// DropClaim removes exactly the given claim, unless the host has a marker, and the sudoers file
// root, if named. The run leaves the host in the same exec, because it has no root afterwards.
func (c *Conn) DropClaim(ctx context.Context, claim plan.Claim, root string) error {
	text, _ := json.Marshal(claim) // strings can always be encoded
	drop := own("claim-drop", plan.Root, string(text), root)
	if root != "" && c.target.Run != nil {
		leave := own("leave", plan.Root, oneWord(c.target.Run.ID))
		drop.Script, drop.Args = drop.Script+leave.Script, append(drop.Args, leave.Args...)
	}
	_, err := c.Run(ctx, drop, secret.Value{})
	return err
}

// moved is marker-write's exit code for a marker that was changed by someone else.
const moved = 5

// WriteMarker replaces the host's marker atomically if it is still the one that this connection
// read last; otherwise the error wraps plan.ErrMarkerMoved. The step verified (empty: none) is no
// longer pending.
func (c *Conn) WriteMarker(ctx context.Context, m plan.Marker, verified plan.StepID) error {
	text, err := m.Encode()
	if err != nil {
		return err
	}
	a, err := c.own(ctx, "marker-write", text, string(verified), c.marker)
	switch {
	case err == nil:
		c.marker = asCompared(text)
	case a.Exit == moved:
		return fmt.Errorf("%s: %w", c.target.name(), plan.ErrMarkerMoved)
	}
	return err
}

// asCompared returns a marker's text as the host compares it: a shell strips trailing line
// ends. Text that cannot be an argument gives "".
func asCompared(text string) string {
	if strings.ContainsRune(text, 0) {
		return ""
	}
	return strings.TrimRight(text, "\n")
}

// passwordEnds are the exit codes of password-check.sh.
var passwordEnds = map[int]error{3: plan.ErrPasswordRefused, 5: plan.ErrAccountLocked, 6: plan.ErrPasswordUnchecked, 7: plan.ErrPasswordRace,
	8: plan.ErrPasswordBusy}

// CheckPassword tries the login user's password once, and notes a refusal on the host under
// the given seal. It tries nothing if the host has other notes than the given ones: another
// run tried a password in the meantime. The error is or wraps plan.ErrPasswordRefused,
// plan.ErrAccountLocked, plan.ErrPasswordUnchecked, plan.ErrPasswordRace or plan.ErrPasswordBusy, a *ScriptError when sudo
// failed for another reason, or an *Error when the connection broke.
func (c *Conn) CheckPassword(ctx context.Context, password secret.Value, seal secret.Seal, remembered []plan.Refusal, now time.Time) error {
	command := own("password-check", plan.Login, strconv.FormatInt(now.Unix(), 10), tries(remembered))
	input, err := secret.New(password.Reveal() + "\n" + string(seal) + "\n")
	if err != nil {
		return fmt.Errorf("verify the password of %s: %w", c.target.name(), err)
	}
	a, err := c.Run(ctx, command, input)
	if why := passwordEnds[a.Exit]; why != nil {
		return fmt.Errorf("%s: %w", c.target.name(), why)
	}
	return err
}

// tries formats the notes of a host as password-check.sh does.
func tries(remembered []plan.Refusal) string {
	var b strings.Builder
	for _, r := range remembered {
		switch {
		case r.Seal == "": // a malformed line
			b.WriteString("?;")
		case r.Refused:
			fmt.Fprintf(&b, "refused%d;", r.Tries)
		default:
			fmt.Fprintf(&b, "trying%d;", r.Tries)
		}
	}
	return b.String()
}
