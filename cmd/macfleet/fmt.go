package main

import (
	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/app"
)

func fmtCmd(env *app.Env) *cobra.Command {
	var o app.FormatOptions
	c := &cobra.Command{
		Use:   "fmt [FILE...]",
		Short: "Lay out the configuration's files in the one canonical way",
		Long: "fmt lays out the *.fleet.hcl files of the directory, or the FILEs that are named, and prints the names\n" +
			"of those it changed. Only spaces change. \"-\" stands for standard input, laid out to standard output.\n\n" +
			"Exit codes:\n" +
			"  0    done; --check: all are laid out so already\n" +
			"  1    a file cannot be read, parsed or written; the others are done\n" +
			"  2    --check: some would change",
		RunE: func(_ *cobra.Command, args []string) error {
			o.Files = args
			return app.Format(env, o)
		},
	}
	annotationsFlag(c.Flags(), &o.Annotations)
	c.Flags().BoolVar(&o.Check, "check", false, "write nothing; print the names of what would change and exit with 2")
	return c
}
