package wire_test

import (
	"io"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// BenchmarkDocuments handles 1,000 hosts of 14 steps that all differ.
func BenchmarkDocuments(b *testing.B) {
	const n = 1_000
	cfg, stepsFor, snap := plantest.Recorded(n)
	var s secret.Scrubber
	s.Learn("a-secret-of-this-run")
	r := wire.NewRecord(fleet.Owner{Name: "acme"}, snap)
	content, err := r.Encode()
	if err != nil {
		b.Fatal(err)
	}
	p := plan.Compute(cfg, stepsFor, snap, plan.Selection{})
	for name, run := range map[string]func(){
		"walk":   func() { wire.Clean(nil, snap) },
		"scrub":  func() { wire.Clean(s.Scrub, snap) },
		"encode": func() { _, _ = r.Encode() },
		"decode": func() { _, _ = wire.DecodeRecord(content) },
		"print":  func() { _ = wire.Write(io.Discard, wire.PlanOf(p)) },
		"file":   func() { _, _ = wire.NewPlanFile(p).Encode() },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/host")
		})
	}
}
