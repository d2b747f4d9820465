package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// idling is how hosts are made idle.
type idling struct {
	force   []string      // names of hosts that are not waited for
	timeout time.Duration // of the drain of one host
}

// idleFlags adds the flags of apply that say how hosts are made idle.
func (a *app) idleFlags(c *cobra.Command) {
	c.Flags().StringArrayVar(&a.idling.force, "force-busy", nil, "change a `HOST` (or another --force-busy) whatever it is at work on; that work is lost")
	c.Flags().DurationVar(&a.idling.timeout, "drain-timeout", engine.DefaultDrain, "how `LONG` the Pods of a host have to end before it is changed")
}

// checkForced returns an error for a name given to --force-busy that no host of the plan
// bears: whoever forces something must mean a host.
func (a *app) checkForced(p *plan.Plan) error {
	for _, name := range a.idling.force {
		if !slices.ContainsFunc(p.Hosts, func(h plan.Host) bool { return h.Name == name }) {
			return fmt.Errorf("--force-busy: no host of this run is called %q", name)
		}
	}
	return nil
}
