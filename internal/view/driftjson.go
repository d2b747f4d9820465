package view

import (
	"io"
	"time"

	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/plan"
)

// DriftReport is what drift adds to a document: what alarms go by.
type DriftReport struct {
	Complete    bool           `json:"complete"`
	Selected    bool           `json:"selected"` // a selection was looked at
	Fingerprint string         `json:"fingerprint"`
	Items       []DriftItem    `json:"items"`
	Ignored     []IgnoredDrift `json:"ignored"`
	Unknown     []UnknownDrift `json:"unknown"`
	Pending     int            `json:"pending"`
	Hosts       []DriftedFleet `json:"hosts"`
	Ignores     []IgnoreBlock  `json:"ignores"`
	Notices     []DriftNotice  `json:"notices"`
	Since       *DriftSince    `json:"since,omitempty"`
}

// DriftItem is one thing that moved behind our back.
type DriftItem struct {
	Fingerprint string       `json:"fingerprint"`
	Host        string       `json:"host"`
	Fleet       string       `json:"fleet"`
	Step        string       `json:"step"`
	Code        string       `json:"code"`
	Severity    string       `json:"severity"`
	Text        string       `json:"text"`
	Fields      []DriftField `json:"fields"`
	Refused     string       `json:"refused,omitempty"`
}

// DriftField is one value that moved.
type DriftField struct {
	Name   string `json:"name"`
	Seen   string `json:"seen"`
	Wanted string `json:"wanted"`
}

// IgnoredDrift is drift that raises no alarm, and by whose word.
type IgnoredDrift struct {
	Item   DriftItem `json:"item"`
	Ignore string    `json:"ignore"`
	Owner  string    `json:"owner"`
	Reason string    `json:"reason"`
	Until  string    `json:"until"`
}

// UnknownDrift is where drift may be that nobody saw.
type UnknownDrift struct {
	Host     string `json:"host"`
	Fleet    string `json:"fleet"`
	Step     string `json:"step"`
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Why      string `json:"why"`
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
	Name   string `json:"name"`
	Owner  string `json:"owner"`
	Reason string `json:"reason"`
	Until  string `json:"until"`
	State  string `json:"state"`
}

// DriftNotice is worth knowing and no drift.
type DriftNotice struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Text     string `json:"text"`
}

// DriftSince is what is different from an earlier document.
type DriftSince struct {
	New       []DriftItem `json:"new"`
	Stays     []DriftItem `json:"stays"`
	Kept      []DriftItem `json:"kept"`
	Recovered []DriftItem `json:"recovered"`
}

// WriteDrift prints a drift as one JSON object: the plan, and the report on it.
func WriteDrift(out io.Writer, p *plan.Plan, r drift.Report) error {
	d := DocumentOf(p)
	if r.Blind != "" {
		d.Complete, d.Summary.Unread = false, 1
		d.Unread = []UnreadStep{{Address: "inventory", Probe: "inventory", Why: r.Blind}}
	}
	report := driftReportOf(r)
	d.Drift = &report
	return writeJSON(out, d)
}

func driftReportOf(r drift.Report) DriftReport {
	d := DriftReport{Complete: r.Complete, Selected: r.Narrowed, Fingerprint: r.Fingerprint, Items: driftItems(r.Items), Pending: r.Pending,
		Ignored: []IgnoredDrift{}, Unknown: []UnknownDrift{}, Hosts: []DriftedFleet{}, Ignores: []IgnoreBlock{}, Notices: []DriftNotice{}}
	for _, i := range r.Ignored {
		d.Ignored = append(d.Ignored, IgnoredDrift{driftItem(i.Item), i.By.Name, i.By.Owner, i.By.Reason, i.By.Until.Format(time.DateOnly)})
	}
	for _, u := range r.Unseen {
		d.Unknown = append(d.Unknown, UnknownDrift{u.Host, u.Fleet, u.Step, u.Code, string(u.Severity), u.Why})
	}
	for _, h := range r.Hosts {
		d.Hosts = append(d.Hosts, DriftedFleet{h.Fleet, h.By[drift.Drifted], h.By[drift.NotKnown], h.By[drift.Passed], h.By[drift.Waiting], h.By[drift.Fine]})
	}
	for _, i := range r.Ignores {
		d.Ignores = append(d.Ignores, IgnoreBlock{i.Name, i.Owner, i.Reason, i.Until.Format(time.DateOnly), string(i.State)})
	}
	for _, x := range r.Remarks {
		d.Notices = append(d.Notices, DriftNotice{x.Code, string(x.Severity), x.Text})
	}
	if c := r.Since; c != nil {
		d.Since = &DriftSince{driftItems(c.New), driftItems(c.Stays), driftItems(c.Kept), driftItems(c.Recovered)}
	}
	return d
}

func driftItems(items []drift.Item) []DriftItem {
	out := []DriftItem{}
	for _, i := range items {
		out = append(out, driftItem(i))
	}
	return out
}

func driftItem(i drift.Item) DriftItem {
	d := DriftItem{Fingerprint: i.Fingerprint, Host: i.Host, Fleet: i.Fleet, Step: i.Step, Code: i.Code, Severity: string(i.Severity),
		Text: i.Text, Fields: []DriftField{}, Refused: i.Refused}
	for _, f := range i.Fields {
		d.Fields = append(d.Fields, DriftField{f.Name, f.Before, f.After})
	}
	return d
}

// Known returns the items that a document knew: those it saw, and those it kept
// from documents before it.
func (d DriftReport) Known() []drift.Item {
	all := d.Items
	if d.Since != nil {
		all = append(all[:len(all):len(all)], d.Since.Kept...)
	}
	var out []drift.Item
	for _, i := range all {
		item := drift.Item{Fingerprint: i.Fingerprint, Host: i.Host, Fleet: i.Fleet, Step: i.Step, Code: i.Code, Severity: drift.Severity(i.Severity),
			Text: i.Text, Refused: i.Refused}
		for _, f := range i.Fields {
			item.Fields = append(item.Fields, plan.Field{Name: f.Name, Before: f.Seen, After: f.Wanted})
		}
		out = append(out, item)
	}
	return out
}
