package view

import (
	"io"
	"slices"
	"time"

	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// DriftDocument is a plan with the drift in it, as one JSON object.
type DriftDocument struct {
	wire.Plan
	Drift *DriftReport `json:"drift,omitempty"` // what alarms go by; of drift alone
}

// DriftReport is what drift adds to a document: what alarms go by.
type DriftReport struct {
	drift.Report
	Ignored []IgnoredDrift `json:"ignored"`
	Hosts   []DriftedFleet `json:"hosts"`
	Ignores []IgnoreBlock  `json:"ignores"`
}

// IgnoredDrift is drift that raises no alarm, and by whose word.
type IgnoredDrift struct {
	Item   drift.Item `json:"item"`
	Ignore string     `json:"ignore"`
	Owner  string     `json:"owner"`
	Reason string     `json:"reason"`
	Until  string     `json:"until"`
}

// DriftedFleet counts a fleet's hosts by state.
type DriftedFleet struct {
	Fleet   string `json:"fleet"`
	Drift   int    `json:"drift"`
	Unknown int    `json:"unknown"`
	Ignored int    `json:"ignored"`
	Pending int    `json:"pending"`
	Clean   int    `json:"clean"`
}

// IgnoreBlock is an ignore block of the configuration.
type IgnoreBlock struct {
	Name   string      `json:"name"`
	Owner  string      `json:"owner"`
	Reason string      `json:"reason"`
	Until  string      `json:"until"`
	State  drift.State `json:"state"`
}

// WriteDrift prints a drift as one JSON object: the plan, and the report on it.
func WriteDrift(out io.Writer, p *plan.Plan, r drift.Report) error {
	d := DriftDocument{Plan: wire.PlanOf(p)}
	if r.Blind != "" {
		d.Complete, d.Summary.Unread = false, 1
		d.Unread = []wire.UnreadStep{{Address: "inventory", StepUnread: plan.StepUnread{Unread: plan.Unread{Probe: "inventory", Why: r.Blind}}}}
	}
	report := driftReportOf(r)
	d.Drift = &report
	return wire.Write(out, d)
}

func driftReportOf(r drift.Report) DriftReport {
	r.Items, r.Unseen, r.Remarks = items(r.Items), list(r.Unseen), list(r.Remarks)
	if c := r.Since; c != nil {
		r.Since = &drift.Changes{New: items(c.New), Stays: items(c.Stays), Kept: items(c.Kept), Recovered: items(c.Recovered)}
	}
	d := DriftReport{Report: r, Ignored: []IgnoredDrift{}, Hosts: []DriftedFleet{}, Ignores: []IgnoreBlock{}}
	for _, i := range r.Ignored {
		d.Ignored = append(d.Ignored, IgnoredDrift{i.Item, i.By.Name, i.By.Owner, i.By.Reason, i.By.Until.Format(time.DateOnly)})
	}
	for _, h := range r.Hosts {
		d.Hosts = append(d.Hosts, DriftedFleet{h.Fleet, h.By[drift.Drifted], h.By[drift.NotKnown], h.By[drift.Passed], h.By[drift.Waiting], h.By[drift.Fine]})
	}
	for _, i := range r.Ignores {
		d.Ignores = append(d.Ignores, IgnoreBlock{i.Name, i.Owner, i.Reason, i.Until.Format(time.DateOnly), i.State})
	}
	return d
}

// list returns a list that is [] in JSON where it is empty.
func list[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

// items are items whose lists are [] in JSON where they are empty.
func items(all []drift.Item) []drift.Item {
	out := append([]drift.Item{}, all...)
	for i := range out {
		out[i].Fields = list(out[i].Fields)
	}
	return out
}

// Known returns the items that a report knew: those it saw, and those it kept from
// reports before it.
func (d DriftReport) Known() []drift.Item {
	if d.Since == nil {
		return d.Items
	}
	return append(slices.Clip(d.Items), d.Since.Kept...)
}
