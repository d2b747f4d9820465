package app

import (
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

// longestReason is how long the reason of a hold is at most, in characters: it
// stands in every plan.
const longestReason = 200

// HoldOptions are the arguments and flags of hold.
type HoldOptions struct {
	Hosts         []string // names or selectors
	Reason, Until string
}

// Hold keeps everybody off hosts until a time.
func Hold(ctx context.Context, env *Env, o HoldOptions) error {
	h, err := newHold(o.Reason, o.Until, time.Now())
	if err != nil {
		return err
	}
	return hold(ctx, env, o.Hosts, h)
}

// Unhold takes the holds of hosts away. They are names or selectors.
func Unhold(ctx context.Context, env *Env, hosts []string) error { return hold(ctx, env, hosts, nil) }

// newHold returns a hold of the caller's.
func newHold(reason, until string, now time.Time) (*inventory.Hold, error) {
	reason = strings.TrimSpace(reason)
	switch {
	case reason == "" || until == "":
		return nil, errors.New("a hold needs to say why and until when: --reason TEXT --until 3d")
	case utf8.RuneCountInString(reason) > longestReason:
		return nil, fmt.Errorf("--reason has more than %d characters", longestReason)
	}
	end, err := plan.ParseUntil(until, now)
	if err != nil {
		return nil, fmt.Errorf("--until: %w", err)
	}
	return &inventory.Hold{Who: caller(), Reason: reason, Since: now.UTC().Truncate(time.Second), Until: end}, nil
}

// hold writes a hold, or takes away what is there.
func hold(ctx context.Context, env *Env, names []string, h *inventory.Hold) error {
	if len(env.On) > 0 {
		return errors.New("name the hosts as arguments: leave out --on")
	}
	// A hold needs no key that only the cluster knows.
	return env.with(ctx, need{Selection: env.and(names...), readOnly: true}, func(ctx context.Context, s *session) error {
		hosts, left, err := s.toHold(ctx, h)
		if err != nil {
			return err
		}
		var node engine.SetNodeHold
		if s.kubernetes != nil {
			node = s.kubernetes.SetHold
		}
		held := s.engine.Hold(ctx, hosts, h, node)
		env.outText().Holding(held, h)
		return result(false, left == 0 && !slices.ContainsFunc(held, func(x engine.Holding) bool { return !x.Done(h) }))
	})
}

// toHold returns the selected members, but for those that somebody else holds, whose
// hold another one must not shorten, and those that nobody holds and that are to be
// free. It tells of both; left is how many are not as the caller wants them.
func (s *session) toHold(ctx context.Context, h *inventory.Hold) (hosts []plan.Host, left int, err error) {
	var p *plan.Plan
	err = s.showing(s.env.Err, func() (err error) {
		p, err = s.engine.ObserveToHold(ctx)
		return err
	})
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
