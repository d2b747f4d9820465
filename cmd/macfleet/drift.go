package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/view"
)

func (a *app) driftCmd() *cobra.Command {
	var asJSON bool
	var from source
	c := &cobra.Command{Use: "drift", Short: "Show what changed behind our back", Args: cobra.NoArgs,
		Long: "drift looks at everything and changes nothing. What the configuration wants and was never\n" +
			"applied is counted and is no drift.\n\n" + exitCodes,
		RunE: func(c *cobra.Command, _ []string) error { return a.drift(c.Context(), from, asJSON) }}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	from.flags(c)
	a.jsonIntoFlag(c)
	return c
}

func (a *app) drift(ctx context.Context, from source, asJSON bool) error {
	if asJSON && a.jsonInto != "" {
		return errTwoJSON
	}
	if err := a.openInto(); err != nil {
		return err
	}
	p, err := a.look(ctx, from)
	if err != nil {
		return err
	}
	a.planInto(p)
	if asJSON {
		if err := view.WriteDocument(a.out, p); err != nil {
			return err
		}
	} else {
		a.outText().Drift(p)
	}
	s := p.Summarise()
	return result(s.Drift > 0, s.Compared())
}
