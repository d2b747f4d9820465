package agents

import (
	"context"
	"fmt"
	"slices"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/github"
)

// Fence assigns an agent no new jobs: it moves to the group without repositories, or loses the labels that can be changed.
func (a *Agents) Fence(ctx context.Context, spec plan.AgentSpec, agent inventory.Agent) error {
	in, c, err := a.in(ctx, spec.Scope)
	if err != nil {
		return err
	}
	if spec.FenceGroup == "" {
		return c.Label(ctx, agent.ID, nil)
	}
	service, err := in.listed(ctx, c)
	if err != nil {
		return err
	}
	group, ok := service.GroupNamed(spec.FenceGroup)
	if !ok {
		return fmt.Errorf("fence runner %s: %s has no runner group %q; fix: create it there without repositories, or remove fence_group", agent.Name, spec.Scope, spec.FenceGroup)
	}
	return c.Move(ctx, agent.ID, group.ID)
}

// Unfence gives an agent the labels and the group of its specification. It compares with the entry as it is now: the given
// one may be from before the fence.
func (a *Agents) Unfence(ctx context.Context, spec plan.AgentSpec, agent inventory.Agent) error {
	in, c, err := a.in(ctx, spec.Scope)
	if err != nil {
		return err
	}
	seen, err := c.Runner(ctx, agent.ID)
	if err != nil {
		return err
	}
	now, ok := seen.Get()
	if !ok {
		return fmt.Errorf("give runner %s (%s) its labels and group: GitHub has no such runner any more; fix: run macfleet plan again", agent.Name, agent.ID)
	}
	if !slices.Equal(now.Labels, spec.Labels) {
		if err := c.Label(ctx, agent.ID, spec.Labels); err != nil {
			return err
		}
	}
	return in.regroup(ctx, c, spec, now)
}

// regroup moves an agent to the group of its specification. Where a scope has no groups, no agent has one.
func (in *scope) regroup(ctx context.Context, c *github.Client, spec plan.AgentSpec, now inventory.Agent) error {
	service, err := in.listed(ctx, c)
	if err != nil {
		return err
	}
	group, ok := service.GroupNamed(spec.Group)
	if spec.GroupID != "" {
		group, ok = inventory.AgentGroup{ID: spec.GroupID}, true
	}
	switch {
	case ok && group.ID != now.Group:
		return c.Move(ctx, now.ID, group.ID)
	case !ok && spec.Group != "":
		return fmt.Errorf("move runner %s to its group: %s has no runner group %q; fix: create it there, or correct runner_group", now.Name, spec.Scope, spec.Group)
	}
	return nil
}
