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
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

// HoldOptions are the flags of hold.
type HoldOptions struct{ Reason, Until string }

// Hold blocks changes to hosts until a given time.
func Hold(ctx context.Context, env *Env, o HoldOptions) error {
	reason := strings.TrimSpace(o.Reason)
	if err := cmp.Or(refuse(reason == "" || o.Until == "", "a hold needs a reason and an end: --reason TEXT --until 3d"),
		refuse(utf8.RuneCountInString(reason) > longestReason, "--reason is longer than %d characters", longestReason)); err != nil {
		return err
	}
	now := time.Now()
	end, err := plan.ParseUntil(o.Until, now)
	if err != nil {
		return fmt.Errorf("--until: %w", err)
	}
	return hold(ctx, env, &inventory.Hold{Who: caller(), Reason: reason, Since: now.UTC().Truncate(time.Second), Until: end})
}

// Unhold removes the holds of hosts.
func Unhold(ctx context.Context, env *Env) error { return hold(ctx, env, nil) }

// hold writes a hold, or removes the present one, on the hosts that the arguments name.
func hold(ctx context.Context, env *Env, h *inventory.Hold) error {
	if len(env.On) > 0 {
		return errors.New("name the hosts as arguments instead of --on")
	}
	// A hold needs no key that only the cluster knows.
	return env.with(ctx, need{Selection: env.and(env.Args...), readOnly: true}, func(ctx context.Context, s *session) error {
		hosts, others, free, err := s.toHold(ctx, h)
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
		right, wrong := "held", "not held"
		if h == nil {
			right, wrong = "no longer held", "still held"
		}
		failed := len(slices.DeleteFunc(slices.Clone(held), func(x engine.Holding) bool { return x.Done(h) }))
		var done view.Counts
		done.Add(right, len(held)-failed)
		done.Add("not held before", free)
		done.Add(wrong, failed)
		done.Add("held by someone else", others)
		return env.summed("host", done, result(false, others+failed == 0))
	})
}

// toHold returns the selected members to change. others counts those that another person holds, whose hold must not be
// replaced; free counts those that have no hold to remove.
func (s *session) toHold(ctx context.Context, h *inventory.Hold) (hosts []plan.Host, others, free int, err error) {
	p, err := showing(s, s.env.Err, nil, func() (*plan.Plan, error) { return s.engine.ObserveToHold(ctx) })
	if err != nil {
		return nil, 0, 0, err
	}
	for _, x := range p.Hosts {
		other := x.ActiveHold()
		switch {
		case !x.Member:
		case h == nil && x.Held == nil && x.Unknown == nil && !x.Node.IsUnread():
			free++
			s.env.outText().Say(x.Name + ": not held")
		case h != nil && other != nil && other.Who != h.Who:
			others++
			s.env.errText().Warn(fmt.Sprintf("%s is already held %s; remove that hold first: macfleet unhold %s", x.Name, other, x.Name))
		default:
			hosts = append(hosts, x)
		}
	}
	if len(hosts)+others+free == 0 {
		return nil, 0, 0, errors.New("no host matches the selection; macfleet hosts lists them")
	}
	return hosts, others, free, nil
}
