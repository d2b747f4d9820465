package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// Explanation is what the plan of one host is made from.
type Explanation struct {
	Owner   fleet.Owner
	Host    plan.Host
	Type    Effective     // server type
	OS      Effective     // family
	Actions []plan.Action // besides the steps: claim, marker, rename, …
	Steps   []StepExplanation
}

// Effective is one value that counts for a host, with the place it came from.
type Effective struct {
	fleet.Value
	fleet.Source
}

// StepExplanation is one step of a host.
type StepExplanation struct {
	ID      plan.StepID   `json:"step"`
	Wanted  bool          `json:"wanted"` // the configuration has its block
	Values  []Effective   `json:"values"` // the block first; empty without one
	Want    string        `json:"-"`      // what the configuration wants, in normal form; empty where nothing was compared
	Finding plan.Finding  `json:"-"`      // the zero Finding where the host was not compared
	Action  *plan.Action  `json:"-"`      // nil: no difference
	Proof   *Verification `json:"-"`      // nil: there is none
}

// Verification is when a step was last verified, by the host's marker, and what changed since, as far
// as the step could be compared.
type Verification struct {
	At                 time.Time `json:"at,omitzero"`
	HostMoved          bool      `json:"host_moved"`
	ConfigurationMoved bool      `json:"configuration_moved"`
}

// Compared reports whether anything was compared: not where the configuration lacks the block, or
// the host or an answer could not be read.
func (s StepExplanation) Compared() bool {
	return len(s.Finding.Unread) == 0 && s.Finding.Facts != ""
}

// Explain explains one host, by any name that plan.Find takes. The snapshot must
// hold what plan.Next asks for; a host that could not be contacted is explained as far as
// it is known. Where the server is not a host of the plan, the error says what it is.
func Explain(cfg *fleet.Config, stepsFor plan.StepsFor, snap plan.Snapshot, name string) (Explanation, error) {
	server, err := plan.Find(cfg, snap, name)
	if err != nil {
		return Explanation{}, err
	}
	p := plan.Compute(cfg, stepsFor, snap, plan.Selection{})
	h, ok := p.HostByServer(server.ID)
	if !ok {
		return Explanation{}, notAHost(p, server)
	}
	sources := cfg.SourcesOf(h.Name, h.Fleet, h.Group)
	f, g, _ := cfg.Group(h.Fleet, h.Group)
	x := Explanation{Owner: p.Owner, Host: h,
		Type: Effective{fleet.Value{Path: "type", Text: g.TypeText()}, sources.Of("type")},
		OS:   Effective{fleet.Value{Path: "os", Text: f.OS}, sources.Of("os")}}
	byStep := make(map[plan.StepID]*plan.Action)
	for _, a := range p.Actions {
		if a.ServerID == h.Server.ID && a.Kind.OfStep() {
			byStep[a.Step] = &a
		} else if a.ServerID == h.Server.ID {
			x.Actions = append(x.Actions, a)
		}
	}
	marker, _ := h.Seen.Marker.Get()
	for _, step := range stepsFor(h.Spec) {
		s := StepExplanation{ID: step.ID(), Values: effective(h.Spec.Spec, sources, step.ID()), Action: byStep[step.ID()]}
		s.Wanted = len(s.Values) > 0
		if h.Compared {
			s.Want, s.Finding = step.Wanted(), step.Diff(h.View(step.ID()))
		}
		if d, ok := marker.Steps[s.ID]; ok {
			s.Proof = &Verification{At: d.At}
			if s.Compared() {
				moved := d.Moved(s.Want, s.Finding.Facts)
				s.Proof.HostMoved, s.Proof.ConfigurationMoved = moved.Drift, moved.Pending
			}
		}
		x.Steps = append(x.Steps, s)
	}
	return x, nil
}

// effective returns the values of a step's block.
func effective(spec fleet.Spec, sources fleet.Sources, step plan.StepID) []Effective {
	out := []Effective{}
	for _, v := range spec.Values() {
		if block, _, _ := strings.Cut(v.Path, "."); block == string(step) {
			out = append(out, Effective{v, sources.Of(v.Path)})
		}
	}
	return out
}

// notAHost says what a server is that the plan does not have as a host.
func notAHost(p *plan.Plan, server inventory.Server) error {
	if i := slices.IndexFunc(p.Orphans, func(o plan.Orphan) bool { return o.Server.ID == server.ID }); i >= 0 {
		o := p.Orphans[i]
		return fmt.Errorf("%s is an orphaned member, so nothing is compared: %w", server.Name, &o.Trouble)
	}
	if slices.ContainsFunc(p.Strays, func(s inventory.Server) bool { return s.ID == server.ID }) {
		return fmt.Errorf("%s is not managed: it is in no pool and no fleet; fix: adopt it with a host block", server.Name)
	}
	return fmt.Errorf("%s is a free pool server; no fleet uses it; fix: macfleet doctor %s checks it", server.Name, server.Name)
}

// Step returns one step of an explanation. The error lists the steps.
func (x Explanation) Step(id plan.StepID) (StepExplanation, error) {
	var ids []string
	for _, s := range x.Steps {
		if s.ID == id {
			return s, nil
		}
		ids = append(ids, string(s.ID))
	}
	hint := ""
	if near := fleet.Nearest(string(id), ids); near != "" {
		hint = " did you mean " + near + "?"
	}
	return StepExplanation{}, fmt.Errorf("no step is called %s;%s the steps are %s", id, hint, strings.Join(ids, ", "))
}
