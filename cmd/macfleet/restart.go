package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

func (a *app) restartCmd() *cobra.Command {
	approve := false
	var lock lockingOptions
	c := &cobra.Command{Use: "restart HOST JOB", Short: "Start a job of a host anew, and prove it", Args: cobra.ExactArgs(2),
		Long: "restart starts a job anew on a host that has no difference in it, and waits for a new process that is\n" +
			"the same some seconds later, and then for the host's Node. The jobs are: " + strings.Join(jobNames(), ", ") + ".\n" +
			"Virtual machines go on. Where something differs, macfleet apply --on name=HOST repairs that, and\n" +
			"restarts what has to be.\n\n" + exitCodes,
		RunE: func(c *cobra.Command, args []string) error {
			return a.restart(c.Context(), args[0], args[1], approve, lock)
		}}
	lock.flags(c)
	c.Flags().BoolVar(&approve, "auto-approve", false, "do not ask")
	return c
}

func jobNames() []string {
	var out []string
	for _, id := range steps.Jobs() {
		out = append(out, string(id))
	}
	return out
}

func completeJobs([]string, string) []string { return jobNames() }

func (a *app) restart(ctx context.Context, host, job string, approve bool, lock lockingOptions) error {
	if err := a.oneHost("restart"); err != nil {
		return err
	}
	if !slices.Contains(jobNames(), job) {
		hint := ""
		if near := fleet.Nearest(job, jobNames()); near != "" {
			hint = fmt.Sprintf(" did you mean %q?", near)
		}
		return fmt.Errorf("there is no job %q;%s the jobs are %s", job, hint, strings.Join(jobNames(), ", "))
	}
	if !approve && !a.interactive() {
		return errors.New("restart must be approved and nobody can be asked here; pass --auto-approve")
	}
	a.on, a.steps = []string{"name=" + host}, []string{job}
	looking, done := a.untilStopped(ctx)
	defer done()
	s, err := a.open(looking, ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.lock(looking, ctx, lock); err != nil {
		return err
	}
	defer s.unlock()
	p, err := s.restartPlan(looking, host, plan.StepID(job))
	if err != nil {
		return err
	}
	a.outText().Plan(p)
	if err := a.unwritten(); err != nil {
		return unseen(err)
	}
	if len(p.Runnable()) == 0 {
		return exit(exitIncomplete)
	}
	if !approve {
		if err := a.ask(view.Question(p, s.config.Fleets)); err != nil {
			return err
		}
	}
	return s.applyText(ctx, p)
}

// restartPlan is the plan of a host with one action: the job's restart. A host that
// must not be changed or cannot be asked keeps what its plan says of that. A host
// that was rolled back is taken as it is.
func (s *session) restartPlan(ctx context.Context, host string, job plan.StepID) (*plan.Plan, error) {
	snap, err := s.observe(ctx)
	if err != nil {
		return nil, err
	}
	p := s.engine.Compute(ctx, snap)
	if len(p.Runnable()) > 0 {
		s.engine.Selection.Rollback = true
		if back := s.engine.Compute(ctx, snap); len(back.Actions) == 0 {
			p = back
		} else {
			s.engine.Selection.Rollback = false
		}
	}
	if len(p.Hosts) != 1 || !p.Hosts[0].Member {
		return nil, fmt.Errorf("no member is called %s; macfleet hosts lists them", host)
	}
	h := p.Hosts[0]
	switch {
	case h.Unknown != nil, h.Refused != nil, len(h.Unread) > 0, slices.ContainsFunc(p.Actions, isRefused):
		p.Actions = slices.DeleteFunc(p.Actions, func(a plan.Action) bool { return !isRefused(a) })
		return p, nil
	case len(p.Runnable()) > 0:
		return nil, fmt.Errorf("%s differs from its configuration in what the restart is about (%s); macfleet apply --on name=%s repairs that first",
			h.Name, p.Runnable()[0][0].Reason.Code, h.Name)
	}
	c, ok := steps.Restart(job, h.View(job))
	if !ok {
		return nil, fmt.Errorf("%s has no job %s: its configuration has no such block", h.Name, job)
	}
	p.Actions = append(p.Actions, plan.Restarting(h, job, c))
	return p, nil
}

func isRefused(a plan.Action) bool { return a.Refusal != nil }
