package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/internal/view"
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
	all, err := runlog.List(a.runsDir())
	if all == nil {
		return err
	}
	if err != nil { // about single files
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
	all, _ := runlog.List(a.runsDir()) // a damaged file offers nothing
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
	a.failed = &fleet.Owner{Name: r.Head.Configuration, Environment: r.Head.Environment}
	return nil
}

// ownFailed refuses the hosts of another configuration's run.
func (s *session) ownFailed() error {
	if of := s.app.failed; of != nil && *of != s.config.Owner {
		return fmt.Errorf("--failed-from: that run was of %s, this is %s", of, s.config.Owner)
	}
	return nil
}
