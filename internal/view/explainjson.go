package view

import (
	"io"
	"time"

	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// ExplainDocument is an explanation of one host as one JSON object.
type ExplainDocument struct {
	wire.OwnedHead
	Host    ExplainedHost      `json:"host"`
	Unknown *wire.TroubledHost `json:"unknown,omitempty"`
	Refused *wire.TroubledHost `json:"refused,omitempty"`
	Actions []wire.Action      `json:"actions"` // beside the steps
	Steps   []ExplainedStep    `json:"steps"`
}

// ExplainedHost is the machine.
type ExplainedHost struct {
	Name        string         `json:"name"`
	Fleet       string         `json:"fleet"`
	Group       string         `json:"group"`
	Member      bool           `json:"member"` // false: a claim would make it one
	ServerID    string         `json:"server_id"`
	ServerName  string         `json:"server_name"` // as the provider calls it now
	Type        string         `json:"type"`
	Zone        string         `json:"zone"`
	Status      string         `json:"status"`
	Address     string         `json:"address"`
	Path        string         `json:"path"` // how it was reached
	HostKey     string         `json:"host_key"`
	Pinned      bool           `json:"pinned"`
	OSVersion   string         `json:"os_version"` // "" = not known
	Serial      string         `json:"serial"`     // "" = not known
	WantedType  EffectiveValue `json:"wanted_type"`
	WantedOS    EffectiveValue `json:"wanted_os"`
	Convergence string         `json:"converged"` // yes, no, unknown
}

// EffectiveValue is a value that counts for the host, and where it was written.
type EffectiveValue struct {
	Path  string `json:"path"`
	Value string `json:"value"` // as the configuration would have it; "" for a block
	Level string `json:"level"` // built in, defaults, fleet, group or host
	File  string `json:"file"`  // "" when built in
	Line  int    `json:"line"`  // 0 when built in
}

// ExplainedStep is one step.
type ExplainedStep struct {
	Step   string            `json:"step"`
	Wanted bool              `json:"wanted"` // the configuration has its block
	Values []EffectiveValue  `json:"values"`
	Seen   string            `json:"seen"` // the facts in normal form; "" when not compared
	Want   string            `json:"want"` // the wish in the same form
	Unread []wire.UnreadStep `json:"unread"`
	Change *wire.Action      `json:"change,omitempty"`
	Proof  *Proof            `json:"proof,omitempty"`
}

// Proof is a step's last proof by the host's marker.
type Proof struct {
	At                 *time.Time `json:"at,omitempty"`
	HostMoved          bool       `json:"host_moved"`
	ConfigurationMoved bool       `json:"configuration_moved"`
}

// ExplainDocumentOf returns an explanation as a document, of one step when only
// is not empty.
func ExplainDocumentOf(x doctor.Explanation, only plan.StepID) ExplainDocument {
	h := x.Host
	os, _ := h.Seen.OSVersion.Get()
	serial, _ := h.Seen.Serial.Get()
	d := ExplainDocument{OwnedHead: wire.HeadOf(x.Owner), Actions: []wire.Action{}, Steps: []ExplainedStep{},
		Host: ExplainedHost{Name: h.Name, Fleet: h.Fleet, Group: h.Group, Member: h.Member, ServerID: h.Server.ID,
			ServerName: h.Server.Name, Type: h.Server.Type, Zone: h.Server.Zone, Status: h.Server.Status, Address: h.Server.Address,
			Path: h.Seen.Path, HostKey: h.Seen.Fingerprint, Pinned: h.Seen.Pinned, OSVersion: os, Serial: serial,
			WantedType: effectiveValue(x.Type), WantedOS: effectiveValue(x.OS), Convergence: string(h.Converged)}}
	if h.Unknown != nil {
		t := wire.Troubled(h.Name, h.Fleet, *h.Unknown)
		d.Unknown = &t
	}
	if h.Refused != nil {
		t := wire.Troubled(h.Name, h.Fleet, *h.Refused)
		d.Refused = &t
	}
	for _, a := range x.Actions {
		d.Actions = append(d.Actions, wire.ActionOf(a))
	}
	for _, s := range x.Steps {
		if only == "" || s.ID == only {
			d.Steps = append(d.Steps, explainedStep(h, s))
		}
	}
	return d
}

func explainedStep(h plan.Host, s doctor.StepExplanation) ExplainedStep {
	e := ExplainedStep{Step: string(s.ID), Wanted: s.Wanted, Values: []EffectiveValue{}, Seen: s.Finding.Facts,
		Want: s.Want, Unread: []wire.UnreadStep{}}
	for _, v := range s.Values {
		e.Values = append(e.Values, effectiveValue(v))
	}
	for _, u := range s.Finding.Unread {
		e.Unread = append(e.Unread, wire.UnreadOf(h, plan.StepUnread{Step: s.ID, Unread: u}))
	}
	if s.Action != nil {
		c := wire.ActionOf(*s.Action)
		e.Change = &c
	}
	if s.Proof != nil {
		moved := s.Moved()
		e.Proof = &Proof{HostMoved: moved.Drift, ConfigurationMoved: moved.Pending}
		if !s.Proof.At.IsZero() {
			e.Proof.At = &s.Proof.At
		}
	}
	return e
}

func effectiveValue(v doctor.Effective) EffectiveValue {
	return EffectiveValue{Path: v.Path, Value: v.Text, Level: string(v.Source.Level), File: v.Source.File, Line: v.Source.Line}
}

// WriteExplanation prints an explanation as one JSON object.
func WriteExplanation(out io.Writer, x doctor.Explanation, only plan.StepID) error {
	return wire.Write(out, ExplainDocumentOf(x, only))
}
