package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// longestReason is how long the reason of a hold is at most, in characters: it
// stands in every plan.
const longestReason = 200

func (a *app) holdCmd() *cobra.Command {
	var reason, until string
	c := &cobra.Command{Use: "hold SELECTOR|HOST...", Short: "Keep everybody off hosts until a time", Args: cobra.MinimumNArgs(1),
		Long: "hold lets no macfleet change the hosts until a time, whoever runs it and wherever: plans show who holds\n" +
			"them, why and until when. It stands in the host's marker and on its Node; one of the two is enough, so\n" +
			"that it works while the other cannot be reached.\n\n" +
			"  macfleet hold acme-production-runners-m2-0bccd --reason \"its fan is loud\" --until 3d\n" +
			"  macfleet hold fleet=builders --reason \"release week\" --until 2026-11-28\n\n" +
			"Exit codes: 0 done, 1 error, 3 some hosts are not held.",
		RunE: func(c *cobra.Command, args []string) error {
			h, err := newHold(reason, until, time.Now())
			if err != nil {
				return err
			}
			return a.hold(c.Context(), args, h)
		}}
	c.Flags().StringVar(&reason, "reason", "", "why, as a `TEXT` that every plan shows")
	c.Flags().StringVar(&until, "until", "", "until `WHEN`: 90m, 12h, 3d, 2w, or a time in UTC such as 2026-11-28; at most 30 days")
	return c
}

func (a *app) unholdCmd() *cobra.Command {
	return &cobra.Command{Use: "unhold SELECTOR|HOST...", Short: "Take a hold away", Args: cobra.MinimumNArgs(1),
		Long: "unhold takes away the holds of hosts, whoever set them, from their markers and their Nodes. A place that\n" +
			"cannot be reached keeps its hold, and the host stays held.\n\n" +
			"Exit codes: 0 done, 1 error, 3 some hosts are still held.",
		RunE: func(c *cobra.Command, args []string) error { return a.hold(c.Context(), args, nil) }}
}

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
func (a *app) hold(ctx context.Context, args []string, h *inventory.Hold) error {
	if len(a.on) > 0 {
		return errors.New("name the hosts as arguments: leave out --on")
	}
	for _, arg := range args {
		if !strings.Contains(arg, "=") {
			arg = "name=" + arg
		}
		a.on = append(a.on, arg)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.stop, cancel)()
	s, err := a.openToLook(ctx) // a hold needs no key that only the cluster knows
	if err != nil {
		return err
	}
	defer s.close()
	hosts, left, err := s.toHold(ctx, h)
	if err != nil {
		return err
	}
	var node engine.SetNodeHold
	if s.kubernetes != nil {
		node = s.kubernetes.SetHold
	}
	held := s.engine.Hold(ctx, hosts, h, node)
	a.outText().Holding(held, h)
	return result(false, left == 0 && !slices.ContainsFunc(held, func(x engine.Holding) bool { return !x.Done(h) }))
}

// toHold returns the selected members, but for those that somebody else holds, whose
// hold another one must not shorten, and those that nobody holds and that are to be
// free. It tells of both; left is how many are not as the caller wants them.
func (s *session) toHold(ctx context.Context, h *inventory.Hold) (hosts []plan.Host, left int, err error) {
	p, err := s.observeWith(ctx, s.engine.ObserveToHold)
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
			s.app.outText().Say(x.Name + ": was not held")
		case h != nil && other != nil && other.Who != h.Who:
			left++
			s.app.errText().Warn(fmt.Sprintf("%s is held %s; that stays. macfleet unhold %s takes it away.", x.Name, other, x.Name))
		default:
			hosts = append(hosts, x)
		}
	}
	if len(hosts)+left == 0 && !seen {
		return nil, 0, errors.New("the selection matches no member; macfleet hosts lists them")
	}
	return hosts, left, nil
}

// observeWith looks with a function of the engine, and shows how that goes on.
func (s *session) observeWith(ctx context.Context, look func(context.Context) (*plan.Plan, error)) (*plan.Plan, error) {
	show, done := s.app.progress(s.app.err)
	defer done()
	s.engine.Emit = s.timed(show)
	defer func() { s.engine.Emit = s.timed(func(engine.Event) {}) }()
	return look(ctx)
}
