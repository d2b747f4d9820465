package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/plan"
)

// boundsFlags adds the flags of plan and apply that lift what one run may do. Each
// names what it allows, so that the record of a run tells it.
func (a *app) boundsFlags(c *cobra.Command) {
	c.PreRun = func(*cobra.Command, []string) { a.bounded = true }
	f := c.Flags()
	f.IntVar(&a.bounds.MaxDisrupted, "max-disrupted", 0, "let a run drain, reboot or wipe up to `N` Ready hosts of a fleet, and not a quarter of them")
	f.IntVar(&a.bounds.MaxWipes, "max-wipes", 0, "let a run wipe up to `N` hosts, and not one")
	f.IntVar(&a.maxHosts, "max-hosts", 0, "let a run change up to `N` hosts, whatever the guardrails say")
	f.BoolVar(&a.bounds.AnyTime, "outside-windows", false, "drain, reboot and wipe now, whatever windows the guardrails name")
}

// boundsOf returns what a run of the command may do, or nil where the command has
// no such bounds.
func (s *session) boundsOf() (*plan.Bounds, error) {
	a := s.app
	if !a.bounded {
		return nil, nil
	}
	for flag, n := range map[string]int{"max-disrupted": a.bounds.MaxDisrupted, "max-wipes": a.bounds.MaxWipes, "max-hosts": a.maxHosts} {
		if n < 0 {
			return nil, fmt.Errorf("--%s is %d; it must be at least 1", flag, n)
		}
	}
	b := a.bounds
	b.Guardrails = s.config.Guardrails
	if a.maxHosts > 0 {
		b.Guardrails.MaxHosts = a.maxHosts
	}
	return &b, nil
}
