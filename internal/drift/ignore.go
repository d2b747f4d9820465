package drift

import (
	"fmt"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

// State is what an ignore block is good for today.
type State string

// The states of ignore blocks.
const (
	Active  State = "active"   // it holds, and there is drift that it names
	Idle    State = "unused"   // it holds, and nothing is as it says
	Expired State = "expired"  // its last day is over: it ignores nothing
	TooLong State = "too-long" // it reaches too far ahead: it ignores nothing
)

// IgnoreState is an ignore block and its state.
type IgnoreState struct {
	fleet.Ignore
	State State
}

// Ignored is drift that counts as none for now. apply mends it all the same.
type Ignored struct {
	Item
	By fleet.Ignore
}

// rule is an ignore block that is being tried on items.
type rule struct {
	fleet.Ignore
	on   *plan.Selector // nil: all hosts
	used bool
}

// rulesOf returns the ignore blocks that hold at now, and the states of all.
func rulesOf(all []fleet.Ignore, now time.Time) ([]*rule, []IgnoreState, error) {
	var rules []*rule
	states := make([]IgnoreState, 0, len(all))
	for _, i := range all {
		state := Idle
		switch {
		case i.Expired(now):
			state = Expired
		case i.TooLong(now):
			state = TooLong
		}
		states = append(states, IgnoreState{i, state})
		if state != Idle {
			continue
		}
		r := &rule{Ignore: i}
		if i.On != "" {
			on, err := plan.ParseSelector(i.On)
			if err != nil {
				return nil, nil, fmt.Errorf("ignore %q: %w", i.Name, err)
			}
			r.on = &on
		}
		rules = append(rules, r)
	}
	return rules, states, nil
}

// means reports whether the block is about an item, whatever its fields.
func (r *rule) means(i Item, h *plan.Host) bool {
	switch {
	case r.Step != "" && r.Step != i.Step, r.Code != "" && r.Code != i.Code:
		return false
	case r.on == nil:
		return true
	}
	return h != nil && r.on.Keeps(*h)
}

// apart splits an item into what counts and what is ignored. The first block that
// means the item, or a field of it, has it.
func apart(i Item, h *plan.Host, rules []*rule) (counts *Item, ignored []Ignored) {
	rest := i
	for _, r := range rules {
		if !r.means(i, h) {
			continue
		}
		if r.Field == "" {
			r.used = true
			return nil, append(ignored, Ignored{rest, r.Ignore})
		}
		named := func(f plan.Field) bool { return f.Name == r.Field }
		if !slices.ContainsFunc(rest.Fields, named) {
			continue
		}
		r.used = true
		part := rest
		part.Fields = slices.DeleteFunc(slices.Clone(rest.Fields), func(f plan.Field) bool { return !named(f) })
		rest.Fields = slices.DeleteFunc(slices.Clone(rest.Fields), named)
		ignored = append(ignored, Ignored{part, r.Ignore})
		if len(rest.Fields) == 0 {
			return nil, ignored
		}
	}
	return &rest, ignored
}

// Remark is worth knowing and no drift.
type Remark struct {
	Code     string
	Severity Severity // Warning or Notice
	Text     string
}

// inProgress says that somebody applies at this moment: what is seen may be half done.
func inProgress(p *plan.Plan) []Remark {
	var out []Remark
	for _, w := range p.Warnings {
		if w.Code == plan.InProgress {
			out = append(out, Remark{w.Code, Notice, w.Text})
		}
	}
	return out
}

// remarksOn says what is to be done about ignore blocks. That one is not used is only
// known where all was compared.
func remarksOn(states []IgnoreState, all bool) []Remark {
	var out []Remark
	for _, s := range states {
		day := s.Until.Format(time.DateOnly)
		switch s.State {
		case Expired:
			out = append(out, Remark{"ignore-expired", Warning,
				fmt.Sprintf("ignore %q of %s ended with %s and ignores nothing: mend what it names, give it another day, or remove the block", s.Name, s.Owner, day)})
		case TooLong:
			out = append(out, Remark{"ignore-too-long", Warning,
				fmt.Sprintf("ignore %q of %s reaches to %s and ignores nothing: an ignore may reach %d days ahead; what stays longer belongs into the configuration",
					s.Name, s.Owner, day, int(fleet.MaxIgnore.Hours()/24))})
		case Idle:
			if !all {
				continue
			}
			text := fmt.Sprintf("ignore %q of %s (until %s) matches nothing: remove the block once the drift is gone for good", s.Name, s.Owner, day)
			if s.Code != "" && !slices.Contains(Codes(), s.Code) {
				text += fmt.Sprintf("; no reason has the code %s", s.Code)
				if near := fleet.Nearest(s.Code, Codes()); near != "" {
					text += fmt.Sprintf(", did you mean %q?", near)
				}
			}
			out = append(out, Remark{"ignore-unused", Notice, text})
		}
	}
	return out
}
