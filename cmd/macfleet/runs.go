package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

func (a *app) runsCmd() *cobra.Command {
	asJSON := false
	c := &cobra.Command{Use: "runs", Short: "List the runs that were made from here", Args: cobra.NoArgs,
		Long: "runs lists the runs that changed something from this machine, or meant to, the newest first. One that broke\n" +
			"off has no end in its record, and its process is gone. It reads files alone.",
		RunE: func(*cobra.Command, []string) error { return a.runs(asJSON) }}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

func (a *app) runs(asJSON bool) error {
	all, wrong, err := runlog.List(a.runsDir())
	if err != nil {
		return err
	}
	for _, err := range wrong {
		a.errText().Warn(err.Error())
	}
	if asJSON {
		return view.WriteRuns(a.out, all)
	}
	a.outText().Runs(all)
	return nil
}

// completeRuns offers the ids of runs.
func (a *app) completeRuns([]string, string) []string {
	all, _, _ := runlog.List(a.runsDir()) // a damaged file offers nothing
	var out []string
	for _, b := range all {
		out = append(out, b.Head.ID)
	}
	if len(out) > 0 {
		out = append(out, runlog.Last)
	}
	return out
}

// failedFrom narrows an apply to the hosts on which an earlier run left something.
func (a *app) failedFrom(run string) error {
	switch {
	case run == "":
		return nil
	case len(a.on)+len(a.exclude) > 0:
		return errors.New("--failed-from names the hosts itself: leave --on and --exclude out")
	}
	path, err := runlog.Find(a.runsDir(), run)
	if err != nil {
		return fmt.Errorf("--failed-from: %w", err)
	}
	r, err := runlog.Read(path)
	if err != nil {
		return fmt.Errorf("--failed-from: %w", err)
	}
	left := r.Unfinished()
	if len(left) == 0 {
		return fmt.Errorf("--failed-from: the run %s left nothing on a host; macfleet show %s tells what it did, macfleet plan what is left now", r.Head.ID, r.Head.ID)
	}
	for _, host := range left {
		a.on = append(a.on, "name="+host)
	}
	a.failed = &failedRun{id: r.Head.ID, owner: fleet.Owner{Name: r.Head.Configuration, Environment: r.Head.Environment}, hosts: left}
	return nil
}

// failedRun is the run that --failed-from names.
type failedRun struct {
	id    string
	owner fleet.Owner
	hosts []string // on which it left something
}

// ownFailed refuses the hosts of another configuration's run.
func (s *session) ownFailed() error {
	if of := s.app.failed; of != nil && of.owner != s.config.Owner {
		return fmt.Errorf("--failed-from: that run was of %s, this is %s", of.owner, s.config.Owner)
	}
	return nil
}

// sayGone says which of those hosts no plan knows any more: those that were released
// since, and servers of the pool that somebody else has claimed.
func (s *session) sayGone(p *plan.Plan) {
	of := s.app.failed
	if of == nil {
		return
	}
	gone := slices.DeleteFunc(slices.Clone(of.hosts), func(name string) bool {
		return slices.ContainsFunc(p.Hosts, func(h plan.Host) bool { return h.Name == name }) ||
			slices.ContainsFunc(p.Lost, func(l plan.Lost) bool { return l.Name == name }) ||
			slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.Host == name })
	})
	if len(gone) > 0 {
		s.app.warn(fmt.Sprintf("of the hosts on which the run %s left something, these are no longer there and are passed over: %s; macfleet plan shows what is wanted instead of them",
			of.id, strings.Join(gone, ", ")))
	}
}
