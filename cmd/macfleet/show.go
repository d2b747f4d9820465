package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/internal/view"
)

func (a *app) showCmd() *cobra.Command {
	var o formatOptions
	c := &cobra.Command{Use: "show RUN|FILE", Short: "Show what a run did, or a plan that plan --out kept", Args: cobra.ExactArgs(1),
		Long: "show tells who did what and when in a run, what happened on each host, and the last words of scripts that\n" +
			"failed. RUN is its id or how the id begins, or last. A file is shown by what is in it: a record of a run, or a\n" +
			"plan as plan printed it, with who made it and how long it is good. It reads files alone.",
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(c); err != nil {
				return err
			}
			return a.show(args[0], o)
		}}
	o.flags(c)
	return c
}

// show shows a file where there is one of that name, else a run.
func (a *app) show(name string, o formatOptions) error {
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
		return a.showFile(name, o)
	}
	path, err := runlog.Find(a.runsDir(), name)
	if err != nil {
		return fmt.Errorf("%w; and no file is called %s", err, name)
	}
	return a.showRecord(path, o)
}

// showFile shows a file by what is in it.
func (a *app) showFile(name string, o formatOptions) error {
	if runlog.IsRecord(name) {
		return a.showRecord(name, o)
	}
	return a.showPlanFile(name, o)
}

func (a *app) showRecord(path string, o formatOptions) error {
	if o.format == formatMarkdown {
		return fmt.Errorf("a run is shown as text or JSON; run macfleet show %s without --format markdown", path)
	}
	r, err := runlog.Read(path)
	if err != nil {
		return fmt.Errorf("show the run: %w", err)
	}
	if o.format == formatJSON {
		return view.WriteRun(a.out, r)
	}
	a.outText().Run(r)
	return nil
}
