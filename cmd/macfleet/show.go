package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"
)

func (a *app) showCmd() *cobra.Command {
	var o formatOptions
	c := &cobra.Command{Use: "show FILE", Short: "Show a plan that plan --out kept", Args: cobra.ExactArgs(1),
		Long: "show prints a plan file as plan printed it, with who made it and how long it is good. It needs no\n" +
			"configuration and no network.",
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(c); err != nil {
				return err
			}
			if _, err := os.Stat(args[0]); errors.Is(err, os.ErrNotExist) {
				return errors.New("there is no file " + args[0] + "; macfleet plan --out FILE makes one")
			}
			return a.showPlanFile(args[0], o)
		}}
	o.flags(c)
	return c
}
