package view_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

const report = "record it (macfleet doctor renamed --record FILE) and report it"

// sick is a host with one check of each kind.
func sick() doctor.Checkup {
	return doctor.Checkup{Name: "acme-production-runners-m2-00003", Server: "renamed\x1b[31m", ServerID: "00003-x", Checks: []doctor.Check{
		{Name: "inventory", State: doctor.Problem, Text: "M2-L in fr-par-1, status ready, delivered true; member of runners.m2; Scaleway calls it renamed",
			Remedy: "give it its name back: macfleet apply --on name=acme-production-runners-m2-00003"},
		{Name: "connection", State: doctor.OK, Text: "the host answers (path: public)"},
		{Name: "host key", State: doctor.OK, Text: "SHA256:uNiVztksCsDhcc0u9e8BrhoGhsNrBtRWBIHIvYtVtjc, not pinned yet: an apply that works on the host pins it"},
		{Name: "root", State: doctor.Warning, Code: plantest.Code("rolled-back"), Text: "the host took the last change back by itself", Remedy: "look at what the change does"},
		{Name: "step hostname", State: doctor.Problem, Code: plantest.Code("hostname-edited"), Refused: plantest.Code("held"),
			Text: "HostName: mini → acme; refused, held: sam@desk holds the host", Remedy: "wait until it expires"},
		{Name: "clock", State: doctor.Unknown, Text: "timed out and was stopped", Remedy: "run date on the host"},
		{Name: "step power", State: doctor.Problem, Text: "power.settings: pmset said something new", Bytes: "Sleep: no\x1b[31m\n" + strings.Repeat("x", 900),
			Remedy: report},
		{Name: "step update", State: doctor.Problem, Text: "update.settings: strange", Remedy: report},
	}}
}

// TestCheckupShowsTheHold: who holds a host is printed above what differs, and a network error in plain words.
func TestCheckupShowsTheHold(t *testing.T) {
	t.Parallel()
	c := doctor.Checkup{Name: "acme-pool-01", Server: "acme-pool-01", Hold: &plan.Held{}, Checks: []doctor.Check{{Name: "connection", State: doctor.Problem,
		Code: plan.CodeUnreachable, Text: "dial tcp 198.51.100.1:22: connect: no route to host", Remedy: "reboot it"}}}
	c.Hold.Who, c.Hold.Reason, c.Hold.Until = "sam@desk", "swap", narrow.Now
	var b bytes.Buffer
	view.NewText(&b, 0, false).Checkup(c, false)
	for _, want := range []string{"\n? held by sam@desk until 2026-11-22 05:19 UTC (swap)\n", "(unreachable): no route to host (198.51.100.1:22)\n", "\nDetails: macfleet explain unreachable\n"} {
		has(t, b.String(), want)
	}
}

// TestCheckup: the remedy of two checks is printed once for people, and with each check
// for programs.
func TestCheckup(t *testing.T) {
	t.Parallel()
	text := shown("doctor", func(v *view.Text) { v.Checkup(sick(), false) }).draw(terminal{})
	equal(t, strings.Count(text, "fix: record it"), 1, "prints of the remedy of two checks")
	var b bytes.Buffer
	must(t, view.WriteCheckup(&b, sick()))
	golden(t, "doctor.json", b.String())
	equal(t, strings.Count(b.String(), report), 2, "checks with the remedy of two in JSON")
	equal(t, strings.Count(b.String(), "\x1b"), 0, "escape codes in JSON")
}
