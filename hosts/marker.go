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

// Claim creates /etc/macfleet/claim.json, which only one of several runs can
// do, and returns the claim that stands there afterwards: the given one, or
// whose claim came first.
func (c *Conn) Claim(ctx context.Context, claim plan.Claim) (plan.Claim, error) {
	text, _ := json.Marshal(claim) // strings can always be encoded
	a, err := c.own(ctx, "claim-create", string(text)+"\n")
	if err != nil {
		return plan.Claim{}, err
	}
	return parseClaim(a.Stdout)
}

// DropClaim takes back a claim that Claim returned, nonce and all, as long as no marker
// stands beside it. With it goes the file that gives root, where one is named; the run
// leaves the host in the same exec, as it has no root afterwards.
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

// moved is the exit code by which marker-write says that it found another marker than
// the writer knows.
const moved = 5

// WriteMarker replaces the host's marker in one step, where it is still the one that
// this connection saw last; else the error wraps plan.ErrMarkerMoved. With the proof of
// a step (empty: none) nothing of that step is pending any more.
func (c *Conn) WriteMarker(ctx context.Context, m plan.Marker, proven plan.StepID) error {
	text, err := m.Encode()
	if err != nil {
		return err
	}
	a, err := c.own(ctx, "marker-write", text, string(proven), c.marker)
	switch {
	case err == nil:
		c.marker = asCompared(text)
	case a.Exit == moved:
		return fmt.Errorf("%s: %w", c.target.name(), plan.ErrMarkerMoved)
	}
	return err
}

// asCompared is a marker's text as the host compares it: a shell takes the last line ends
// off. Nothing is known of text that no argument can hold.
func asCompared(text string) string {
	if strings.ContainsRune(text, 0) {
		return ""
	}
	return strings.TrimRight(text, "\n")
}

// passwordEnds are the exit codes of password-check.sh.
var passwordEnds = map[int]error{3: plan.ErrPasswordRefused, 5: plan.ErrAccountLocked, 6: plan.ErrPasswordUntold, 7: plan.ErrPasswordRace,
	8: plan.ErrPasswordBusy}

// CheckPassword tries the login user's password once and leaves a note on the
// host when it is refused, under the given seal. It tries nothing when the host
// remembers other tries than the given ones: somebody else tried a password
// meanwhile, perhaps the same. The error is or wraps plan.ErrPasswordRefused,
// plan.ErrAccountLocked, plan.ErrPasswordUntold, plan.ErrPasswordRace or plan.ErrPasswordBusy, a *ScriptError when sudo
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
