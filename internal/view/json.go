package view

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

// FormatVersion is the version of every JSON document: readers ignore unknown
// keys of the same major version and refuse another one.
const FormatVersion = "1.0"

// Document is a plan, or a drift, as one JSON object. It holds no time and no
// secret: the same input gives the same bytes.
type Document struct {
	FormatVersion   string           `json:"format_version"`
	MacfleetVersion string           `json:"macfleet_version"`
	Configuration   string           `json:"configuration"`
	Environment     string           `json:"environment"`
	Complete        bool             `json:"complete"`
	UnknownHosts    []TroubledHost   `json:"unknown_hosts"`
	RefusedHosts    []TroubledHost   `json:"refused_hosts"`
	Unread          []UnreadStep     `json:"unread"`
	Warnings        []TroubledHost   `json:"warnings"`
	HeldHosts       []HeldHost       `json:"held_hosts"`
	ResourceChanges []ResourceChange `json:"resource_changes"`
	ResourceDrift   []ResourceChange `json:"resource_drift"`
	Shortages       []Shortage       `json:"shortages"`
	Rejected        []TroubledHost   `json:"rejected_pool_servers"`
	Strays          []string         `json:"strays"`
	Summary         Counts           `json:"summary"`
	Drift           *DriftReport     `json:"drift,omitempty"` // of drift alone
}

// TroubledHost is a host with the reason why it could not be asked or changed.
type TroubledHost struct {
	Address   string `json:"address"`
	Name      string `json:"name"`
	Fleet     string `json:"fleet,omitempty"`
	Code      string `json:"code"`
	Diagnosis string `json:"diagnosis"`
	Remedy    string `json:"remedy"`
}

// UnreadStep is an answer that could not be used.
type UnreadStep struct {
	Address string `json:"address"`
	Host    string `json:"host"`
	Step    string `json:"step"`
	Probe   string `json:"probe"`
	Why     string `json:"why"`
	Printed string `json:"printed,omitempty"` // the answer itself, at most 500 bytes
}

// ResourceChange is one action.
type ResourceChange struct {
	Address      string        `json:"address"`
	Kind         string        `json:"kind"`
	Fleet        string        `json:"fleet"`
	Group        string        `json:"group"`
	Host         string        `json:"host"`
	Step         string        `json:"step,omitempty"`
	Change       Change        `json:"change"`
	ActionReason string        `json:"action_reason"`
	ReasonText   string        `json:"reason_text"`
	Reasons      []string      `json:"reasons"` // codes of a step's changes
	Drift        bool          `json:"drift"`
	Pending      bool          `json:"pending"`
	Disruption   string        `json:"disruption"`
	Deferred     bool          `json:"deferred"`
	Busy         []string      `json:"busy,omitempty"`   // what goes on on the host that it would hurt
	Drains       bool          `json:"drains,omitempty"` // the Node is drained first
	Evicts       int           `json:"evicts,omitempty"` // Pods that the drain takes
	Forced       bool          `json:"forced,omitempty"` // the host is not waited for
	Undo         string        `json:"undo,omitempty"`
	Deliveries   []Delivery    `json:"deliveries,omitempty"` // artifacts that it brings to the host
	Pods         []string      `json:"pods,omitempty"`       // NAMESPACE/NAME of those that are let go
	Refused      *TroubledHost `json:"refused,omitempty"`
}

// Delivery is an artifact that an action brings to a host.
type Delivery struct {
	Artifact string `json:"artifact"`
	Version  string `json:"version"`
	SHA256   string `json:"sha256"`
	Fetch    string `json:"fetch"`
	Size     int64  `json:"size"`           // bytes; 0: nobody wrote it
	Space    int64  `json:"space"`          // bytes that must be free
	Free     *int64 `json:"free,omitempty"` // bytes that are free
}

// Change holds the two sides of an action by field.
type Change struct {
	Actions         []string          `json:"actions"`
	Before          map[string]string `json:"before"`
	After           map[string]string `json:"after"`
	BeforeSensitive map[string]bool   `json:"before_sensitive"`
	AfterSensitive  map[string]bool   `json:"after_sensitive"`
}

// Shortage is a group whose pool has too few servers.
type Shortage struct {
	Fleet   string `json:"fleet"`
	Group   string `json:"group"`
	Type    string `json:"type"`
	OS      string `json:"os"`
	Missing int    `json:"missing"`
	Code    string `json:"code"`
	Text    string `json:"text"`
	Remedy  string `json:"remedy"`
}

// Counts is plan.Summary for programs.
type Counts struct {
	Add          int `json:"add"`
	Change       int `json:"change"`
	Remove       int `json:"remove"`
	Refused      int `json:"refused"`
	RefusedHosts int `json:"refused_hosts"`
	Unknown      int `json:"unknown"`
	Unread       int `json:"unread"`
	Drift        int `json:"drift"`
	Pending      int `json:"pending"`
	Hosts        int `json:"hosts"`
	Converged    int `json:"converged"`
}

// DocumentOf returns a plan as a document.
func DocumentOf(p *plan.Plan) Document {
	s := p.Summarise()
	d := Document{FormatVersion: FormatVersion, MacfleetVersion: fleet.Version,
		Configuration: p.Owner.Name, Environment: p.Owner.Environment, Complete: s.Complete(),
		UnknownHosts: []TroubledHost{}, RefusedHosts: []TroubledHost{}, Unread: []UnreadStep{}, Warnings: []TroubledHost{}, HeldHosts: []HeldHost{},
		ResourceChanges: []ResourceChange{}, ResourceDrift: []ResourceChange{},
		Shortages: []Shortage{}, Rejected: []TroubledHost{}, Strays: []string{}, Summary: Counts(s)}
	for _, u := range p.Unread {
		d.Unread = append(d.Unread, UnreadStep{Address: clusterName, Probe: u.Probe, Why: u.Why, Printed: shortened(u.Bytes)})
	}
	d.Unread = append(d.Unread, unaskedSteps(p)...)
	for _, w := range p.Warnings {
		d.Warnings = append(d.Warnings, TroubledHost{Address: clusterName, Name: clusterName, Code: w.Code, Diagnosis: w.Text, Remedy: w.Remedy})
	}
	for _, h := range p.Hosts {
		d.host(h)
	}
	for _, a := range p.Actions {
		c := changeOf(a)
		d.ResourceChanges = append(d.ResourceChanges, c)
		if a.Origin.Drift {
			d.ResourceDrift = append(d.ResourceDrift, c)
		}
	}
	for _, l := range p.Lost {
		d.RefusedHosts = append(d.RefusedHosts, troubledHost(l.Name, l.Fleet, l.Trouble))
	}
	for _, sh := range p.Shortages {
		d.Shortages = append(d.Shortages, Shortage{Fleet: sh.Fleet, Group: sh.Group, Type: sh.Type, OS: sh.OS,
			Missing: sh.Missing, Code: sh.Trouble.Code, Text: sh.Trouble.Text, Remedy: sh.Trouble.Remedy})
	}
	for _, r := range p.Rejected {
		d.Rejected = append(d.Rejected, troubledHost(r.Server.Name, "", r.Trouble))
	}
	for _, st := range p.Strays {
		d.Strays = append(d.Strays, st.Name)
	}
	return d
}

func (d *Document) host(h plan.Host) {
	if h.Unknown != nil {
		d.UnknownHosts = append(d.UnknownHosts, troubledHost(h.Name, h.Fleet, *h.Unknown))
	}
	if h.Refused != nil {
		d.RefusedHosts = append(d.RefusedHosts, troubledHost(h.Name, h.Fleet, *h.Refused))
	}
	if h.Held != nil {
		d.HeldHosts = append(d.HeldHosts, HeldHost{Address: address(h.Name, ""), Name: h.Name, Fleet: h.Fleet, Hold: heldUntil(*h.Held)})
	}
	for _, u := range h.Unread {
		d.Unread = append(d.Unread, unreadStep(h, u))
	}
	for _, w := range h.Warnings {
		x := troubledHost(h.Name, h.Fleet, w.Trouble)
		x.Address = address(h.Name, string(w.Step))
		d.Warnings = append(d.Warnings, x)
	}
}

func unreadStep(h plan.Host, u plan.StepUnread) UnreadStep {
	return UnreadStep{Address: address(h.Name, string(u.Step)), Host: h.Name,
		Step: string(u.Step), Probe: u.Probe, Why: u.Why, Printed: shortened(u.Bytes)}
}

func troubledHost(name, fleet string, x plan.Trouble) TroubledHost {
	return TroubledHost{Address: address(name, ""), Name: name, Fleet: fleet, Code: x.Code, Diagnosis: x.Text, Remedy: x.Remedy}
}

// address returns what names a host, or a step on it, in documents.
func address(host, step string) string {
	if step == "" {
		return "host." + host
	}
	return fmt.Sprintf("host.%s.%s", host, step)
}

// addressOf names an action's subject: a host or a step on it, or an object of the
// cluster.
func addressOf(a plan.Action) string { return a.Address() }

func deliveriesOf(a plan.Action) []Delivery {
	var out []Delivery
	for _, c := range a.Changes {
		if c.Delivery == nil {
			continue
		}
		x := c.Delivery.Artifact
		d := Delivery{Artifact: x.Name, Version: x.Version, SHA256: x.SHA256, Fetch: string(x.Fetch), Size: x.Size, Space: c.Delivery.Space}
		if free, ok := c.Delivery.Free.Get(); ok {
			d.Free = &free
		}
		out = append(out, d)
	}
	return out
}

func changeOf(a plan.Action) ResourceChange {
	c := ResourceChange{Address: addressOf(a), Kind: string(a.Kind), Fleet: a.Fleet, Group: a.Group,
		Host: a.Host, Step: string(a.Step), ActionReason: a.Reason.Code, ReasonText: a.Reason.Text, Reasons: []string{},
		Drift: a.Origin.Drift, Pending: a.Origin.Pending, Disruption: a.Disruption.String(),
		Change: Change{Actions: verbs(a.Kind.Sign()), Before: map[string]string{}, After: map[string]string{},
			BeforeSensitive: map[string]bool{}, AfterSensitive: map[string]bool{}}}
	for _, ch := range a.Changes {
		c.Reasons = append(c.Reasons, ch.Reason.Code)
	}
	for _, f := range a.Fields {
		c.Change.Before[f.Name], c.Change.After[f.Name] = f.Before, f.After
	}
	for _, p := range a.Pods {
		c.Pods = append(c.Pods, p.Namespace+"/"+p.Name)
	}
	for _, t := range a.Busy {
		c.Busy = append(c.Busy, t.Text)
	}
	c.Drains, c.Evicts, c.Forced = a.Drains, a.Evicts, a.Forced
	c.Deliveries = deliveriesOf(a)
	c.Deferred, c.Undo = a.Deferred, strings.TrimPrefix(guarded(a), "undo: ")
	if a.Refusal != nil {
		r := troubledHost(a.Host, a.Fleet, *a.Refusal)
		if a.Host == "" {
			r.Address = c.Address
		}
		c.Refused = &r
	}
	return c
}

// verbs are Terraform's words for a sign.
func verbs(s plan.Sign) []string {
	switch s {
	case plan.Create:
		return []string{"create"}
	case plan.Remove:
		return []string{"delete"}
	case plan.Replace:
		return []string{"delete", "create"}
	}
	return []string{"update"}
}

// WriteDocument prints a plan as one JSON object.
func WriteDocument(out io.Writer, p *plan.Plan) error { return writeJSON(out, DocumentOf(p)) }

// writeJSON prints one JSON document.
func writeJSON(out io.Writer, document any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(document); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}
