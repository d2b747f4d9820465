package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/internal/view"
)

func (a *app) showCmd() *cobra.Command {
	asJSON := false
	c := &cobra.Command{Use: "show RUN|FILE", Short: "Show what a run did", Args: cobra.ExactArgs(1),
		Long: "show tells who did what and when in a run, what happened on each host, and the last words of scripts that\n" +
			"failed. RUN is its id or how the id begins, or last; a file is shown by its name. It reads files alone.",
		RunE: func(_ *cobra.Command, args []string) error { return a.show(args[0], asJSON) }}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

// show shows a file where there is one of that name, else a run.
func (a *app) show(name string, asJSON bool) error {
	info, err := os.Stat(name)
	if err == nil && info.Mode().IsRegular() {
		return a.showFile(name, asJSON)
	}
	path, err := runlog.Find(a.runsDir(), name)
	if err != nil {
		return fmt.Errorf("%w; and no file is called %s", err, name)
	}
	return a.showRecord(path, asJSON)
}

// showFile shows a file by what is in it.
func (a *app) showFile(name string, asJSON bool) error {
	return a.showRecord(name, asJSON)
}

func (a *app) showRecord(path string, asJSON bool) error {
	r, err := runlog.Read(path)
	if err != nil {
		return fmt.Errorf("show the run: %w", err)
	}
	if asJSON {
		return view.WriteRun(a.out, r)
	}
	a.outText().Run(r)
	return nil
}
