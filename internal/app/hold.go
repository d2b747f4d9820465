package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// HoldOptions are the flags of hold.
type HoldOptions struct{ Reason, Until string }

// Hold keeps everybody off hosts until a time.
func Hold(ctx context.Context, env *Env, o HoldOptions) error {
	reason := strings.TrimSpace(o.Reason)
	if err := cmp.Or(refuse(reason == "" || o.Until == "", "a hold needs to say why and until when: --reason TEXT --until 3d"),
		refuse(utf8.RuneCountInString(reason) > longestReason, "--reason has more than %d characters", longestReason)); err != nil {
		return err
	}
	now := time.Now()
	end, err := plan.ParseUntil(o.Until, now)
	if err != nil {
		return fmt.Errorf("--until: %w", err)
	}
	return hold(ctx, env, &inventory.Hold{Who: caller(), Reason: reason, Since: now.UTC().Truncate(time.Second), Until: end})
}

// Unhold takes the holds of hosts away.
func Unhold(ctx context.Context, env *Env) error { return hold(ctx, env, nil) }

// hold writes a hold, or takes away what is there, on the hosts that the arguments name.
func hold(ctx context.Context, env *Env, h *inventory.Hold) error {
	if len(env.On) > 0 {
		return errors.New("name the hosts as arguments: leave out --on")
	}
	// A hold needs no key that only the cluster knows.
	return env.with(ctx, need{Selection: env.and(env.Args...), readOnly: true}, func(ctx context.Context, s *session) error {
		hosts, left, err := s.toHold(ctx, h)
		if err != nil {
			return err
		}
		s.sayMeant()
		var node engine.SetNodeHold
		if s.kubernetes != nil {
			node = s.kubernetes.SetHold
		}
		held := s.engine.Hold(ctx, hosts, h, node)
		env.outText().Holding(held, h)
		return result(false, left == 0 && !slices.ContainsFunc(held, func(x engine.Holding) bool { return !x.Done(h) }))
	})
}

// toHold returns the selected members, but for those that somebody else holds, whose hold another
// one must not shorten, and those that are free already. left is how many are not as the caller wants them.
func (s *session) toHold(ctx context.Context, h *inventory.Hold) (hosts []plan.Host, left int, err error) {
	p, err := showing(s, s.env.Err, nil, func() (*plan.Plan, error) { return s.engine.ObserveToHold(ctx) })
	if err != nil {
		return nil, 0, err
	}
	seen := false
	for _, x := range p.Hosts {
		other := x.Standing()
		switch {
		case !x.Member:
		case h == nil && x.Held == nil && x.Unknown == nil && !x.Node.IsUnread():
			seen = true
			s.env.outText().Say(x.Name + ": was not held")
		case h != nil && other != nil && other.Who != h.Who:
			left++
			s.env.errText().Warn(fmt.Sprintf("%s is held %s; that stays. macfleet unhold %s takes it away.", x.Name, other, x.Name))
		default:
			hosts = append(hosts, x)
		}
	}
	if len(hosts)+left == 0 && !seen {
		return nil, 0, errors.New("the selection matches no member; macfleet hosts lists them")
	}
	return hosts, left, nil
}
