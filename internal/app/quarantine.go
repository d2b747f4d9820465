package app

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

// QuarantineOptions are the flags of quarantine.
type QuarantineOptions struct {
	Reason  string
	Approve bool
}

// Quarantine takes a host out of service until a person ends that.
func Quarantine(ctx context.Context, env *Env, o QuarantineOptions) error {
	reason := strings.TrimSpace(o.Reason)
	if err := cmp.Or(refuse(reason == "", "a quarantine needs a reason: --reason TEXT"),
		refuse(utf8.RuneCountInString(reason) > longestReason, "--reason is longer than %d characters", longestReason),
		env.approvable("quarantine", o.Approve, true, "pass --auto-approve")); err != nil {
		return err
	}
	now := time.Now().UTC().Truncate(time.Second)
	return quarantine(ctx, env, &inventory.Repairs{Reason: reason, Who: caller(), Since: now}, o.Approve)
}

// Unquarantine ends the quarantine of hosts.
func Unquarantine(ctx context.Context, env *Env) error { return quarantine(ctx, env, nil, true) }

// quarantine stores a quarantine on the hosts that the arguments name, or removes the present one if r is nil.
func quarantine(ctx context.Context, env *Env, r *inventory.Repairs, approved bool) error {
	if len(env.On) > 0 {
		return errors.New("name the hosts as arguments instead of --on")
	}
	return env.with(ctx, need{Selection: env.and(env.Args...), readOnly: true}, func(ctx context.Context, s *session) error {
		p, err := showing(s, env.Err, nil, func() (*plan.Plan, error) { return s.engine.ObserveToHold(ctx) })
		if err != nil {
			return err
		}
		hosts, free := toQuarantine(p, r)
		if len(hosts)+len(free) == 0 {
			return errors.New("no host matches the selection; macfleet hosts lists them")
		}
		s.sayMeant()
		for _, name := range free {
			env.outText().Say(name + ": not quarantined")
		}
		names := mapped(hosts, func(h plan.Host) string { return h.Name })
		if err := env.ask(approved, "Quarantine "+strings.Join(names, ", ")+"? Their Nodes are cordoned, and other servers may be claimed in their place."); err != nil {
			return err
		}
		var nodes engine.NodeRepairs
		if k := s.kubernetes; k != nil {
			nodes = engine.NodeRepairs{Set: k.SetRepairs, Cordon: k.CordonNode, Uncordon: k.Uncordon}
		}
		all := s.engine.Quarantine(ctx, hosts, r, nodes)
		env.outText().Quarantining(all, r)
		right, wrong := "quarantined", "not quarantined"
		if r == nil {
			right, wrong = "no longer quarantined", "still quarantined"
		}
		failed := len(slices.DeleteFunc(slices.Clone(all), func(q engine.Quarantining) bool { return q.Done(r != nil) }))
		var done view.Counts
		done.Add(right, len(all)-failed)
		done.Add("not quarantined before", len(free))
		done.Add(wrong, failed)
		return env.summed("host", done, result(false, failed == 0))
	})
}

// toQuarantine returns the members to change, and the names of those that have no quarantine to end.
func toQuarantine(p *plan.Plan, r *inventory.Repairs) (hosts []plan.Host, free []string) {
	for _, h := range p.Hosts {
		switch {
		case !h.Member:
		case r == nil && h.FailedRepairs == nil && h.Unknown == nil && !h.Node.IsUnread():
			free = append(free, h.Name)
		default:
			hosts = append(hosts, h)
		}
	}
	return hosts, free
}
