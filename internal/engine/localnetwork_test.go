package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox"
)

// TestLocalNetwork: from the pool on, one apply lets jobs reach virtual machines, with a restart of the new host; before 15.5 it says
// once what a person has to click, and on 27 that it is unknown. While a virtual machine runs, a job of the session verifies it.
func TestLocalNetwork(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		os, pool, later string // its family, the version in the pool, and the version after the first apply
		rule            string // what lets jobs in
		says            string // of a host that is set up
		denied          bool   // until someone clicks
	}{
		"15.2":                {os: "Sequoia", pool: "15.2", rule: "version", says: "warning local-network-click", denied: true},
		"27":                  {os: "Tahoe", pool: "26.3", later: "27.0", rule: "version", says: "warning local-network-unproven"},
		"27 ignores the list": {os: "Tahoe", pool: "26.3", later: "27.0", rule: "ignored", says: "warning local-network-unproven", denied: true},
	} {
		parallel(t, name, func(t *testing.T) {
			c := config("production", 1)
			c.Fleets[0].OS = tc.os
			c.Fleets[0].Groups[0].Spec = fleet.Spec{AutoLogin: &fleet.AutoLogin{}, LocalNetwork: &fleet.LocalNetwork{},
				Tart: &fleet.Tart{Artifact: sample("tart", "2.32.1", "tart-2.32.1.tar.gz")}}.WithBuiltIn().WithDefaults()
			w, e := onSystem(t, tc.pool, c)
			h := planned(t, e).Hosts[0]
			m, err := w.Mac(h.Name)
			if err == nil {
				err = m.SetSwitch("local-network", tc.rule)
			}
			if err == nil && tc.later != "" {
				err = m.SetSwitch("macos", tc.later)
			}
			must(t, err)
			expect := func(want ...string) {
				t.Helper()
				want = slices.DeleteFunc(want, func(s string) bool { return s == "" })
				if got := codesOf(planned(t, e), h.Name); !slices.Equal(got, want) {
					t.Errorf("it says %q, want %q", got, want)
				}
			}
			expect(tc.says)
			p := planned(t, e)
			for _, warning := range p.Hosts[0].Warnings {
				if !strings.Contains(warning.Remedy, "vnc://"+h.Server.Address) && tc.pool == "15.2" {
					t.Errorf("the remedy is %q", warning.Remedy)
				}
			}
			if len(p.Actions) > 0 {
				t.Errorf("the next plan has %v", p.Actions)
			}
			must(t, m.StartVM("vm"))
			r := apply(t, e)
			if tc.denied != (len(r.Failures) == 1) {
				t.Errorf("failures %v", r.Failures)
			}
			if !tc.denied {
				expect()
				return
			}
			if !strings.Contains(r.Failures[0].Err.Error(), "No route to host") {
				t.Errorf("the error is %v", r.Failures[0].Err)
			}
			if got := codesOf(r.After, h.Name); !slices.Contains(got, "warning local-network-denied") {
				t.Errorf("it says %q", got)
			}
			// Someone clicks, and the next run tries again, without a restart.
			must(t, m.SetSwitch("local-network", "clicked"))
			converges(t, e)
			expect()
		})
	}
}

// onSystem returns a world whose pool has a version of macOS, and an engine that has applied a configuration there.
func onSystem(t *testing.T, version string, c *fleet.Config) (*sandbox.World, *engine.Engine) {
	t.Helper()
	if version == "26.3" {
		return converged(t, 3, c)
	}
	w, _ := world(t, 3)
	for i := range 3 {
		m, err := w.Mac(fmt.Sprintf("acme-pool-%02d", i+1))
		if err == nil {
			err = m.SetSwitch("macos", version)
		}
		must(t, err)
	}
	e := engineOf(t, w, c)
	converges(t, e)
	return w, e
}
