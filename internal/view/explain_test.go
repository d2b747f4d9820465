package view_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

func valueAt(path, text string, level fleet.Level, line int) doctor.Effective {
	e := doctor.Effective{Value: fleet.Value{Path: path, Text: text}, Source: fleet.Source{Level: level}}
	if level != fleet.BuiltIn {
		e.Source.File, e.Source.Line = "acme.fleet.hcl", line
	}
	return e
}

// explanations are one host with every kind of detail about a step, one that could
// not be contacted, and one that must not be touched and is still in the pool.
func explanations() []doctor.Explanation {
	proven := doctor.Verification{At: time.Date(2026, 11, 20, 14, 3, 0, 0, time.UTC)}
	moved := doctor.Verification{At: proven.At, HostMoved: true, ConfigurationMoved: true}
	h := member(2, "runners")
	h.Server.Status = "ready"
	h.Seen.Path, h.Seen.Fingerprint = "public through bastion.acme.dev", "SHA256:abc"
	h.Seen.Serial = inventory.Present("C07ACME001")
	h.Seen.Marker = inventory.Present(plan.Marker{Configuration: "acme", Environment: "production", Version: "0.1.0"})
	h.Spec.User = "m1"
	a := power(h)
	renamed := plan.Action{Kind: plan.RenameServer, Host: h.Name, ServerID: h.Server.ID, Fields: []plan.Field{{Name: "name", Before: "someones-mac", After: h.Name}},
		Reason: plan.Reason{Code: plantest.Code("renamed-by-hand"), Text: "Scaleway calls the server someones-mac; it is still a member"}}
	values := []doctor.Effective{valueAt("power", "", fleet.InDefaults, 12), valueAt("power.sleep", "0", fleet.InHost, 40),
		valueAt("power.display_sleep", "5", fleet.InGroup, 31), valueAt("power.disk_sleep", "0", fleet.InFleet, 27),
		valueAt("power.screensaver", "0", fleet.BuiltIn, 0)}
	whole := doctor.Explanation{Owner: fleet.Owner{Name: "acme", Environment: "production"}, Host: h,
		Type: valueAt("type", "M2-L", fleet.InGroup, 29), OS: valueAt("os", "Tahoe", fleet.InDefaults, 10), Actions: []plan.Action{renamed},
		Steps: []doctor.StepExplanation{
			{ID: "hostname", Wanted: true, Values: []doctor.Effective{valueAt("hostname", "", fleet.InDefaults, 11)}, Proof: &proven,
				Finding: plan.Finding{Unread: []plan.Unread{{Probe: "hostname.HostName", Why: "scutil --get HostName failed with exit code 3", Bytes: "\x1b[31mno\n"}}}},
			{ID: "power", Wanted: true, Values: values, Proof: &moved, Action: &a,
				Want: "sleep=\"never\"\n", Finding: plan.Finding{Facts: "sleep=\"10 min\"\n", Changes: []plan.Change{{Reason: a.Reason, Fields: a.Fields, Command: a.Changes[0].Command}}}},
			{ID: "quiet", Wanted: true, Values: []doctor.Effective{valueAt("quiet", "", fleet.InFleet, 20)}, Want: "x=\"1\"\n", Finding: plan.Finding{Facts: "x=\"1\"\n"}},
			{ID: "absent", Values: []doctor.Effective{}},
		}}
	dead := whole
	dead.Host = member(4, "runners")
	dead.Host.Unknown = &plan.Trouble{Code: plantest.Code("unreachable"), Text: "dial tcp 198.51.100.4:22: connect: no route to host", Remedy: "see whether the machine runs"}
	dead.Actions, dead.Steps = nil, []doctor.StepExplanation{{ID: "power", Wanted: true, Values: values}}
	refused := whole
	refused.Host = member(5, "runners")
	refused.Host.Member, refused.Host.Server.Name = false, "acme-pool-05"
	refused.Host.Server.Status, refused.Host.Seen.Marker = "ready", inventory.Absent[plan.Marker]()
	refused.Host.Seen.Fingerprint, refused.Host.Seen.Pinned = "SHA256:def", false
	refused.Host.Refused = &plan.Trouble{Code: plantest.Code("missing-sudo-password"), Text: "passwordless sudo does not work", Remedy: "give the login user passwordless sudo"}
	b := power(refused.Host)
	b.Refusal = refused.Host.Refused
	refused.Actions, refused.Steps = nil, []doctor.StepExplanation{{ID: "power", Wanted: true, Values: values[:1], Action: &b,
		Want: "sleep=\"never\"\n", Finding: plan.Finding{Facts: "sleep=\"10 min\"\n", Changes: b.Changes}}}
	return []doctor.Explanation{whole, dead, refused}
}

func TestExplainDocument(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	for _, x := range explanations() {
		must(t, view.WriteExplanation(&b, x, ""))
	}
	golden(t, "explain.jsonl", b.String())
}
