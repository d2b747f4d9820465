package drift

import (
	"fmt"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

var (
	codeIgnoreExpired = plan.NewCode("ignore-expired", plan.Warning, "an ignore block expired and has no effect")
	codeIgnoreTooLong = plan.NewCode("ignore-too-long", plan.Warning, "an ignore block ends too far ahead and has no effect")
	codeIgnoreUnused  = plan.NewCode("ignore-unused", plan.Notice, "an ignore block matches no drift, and everything was compared")
)

// State says whether an ignore block has an effect today.
type State string

// The states of ignore blocks.
const (
	Active  State = "active"   // it holds, and there is drift that it names
	Idle    State = "unused"   // it holds, and nothing is as it says
	Expired State = "expired"  // its last day is over: it ignores nothing
	TooLong State = "too-long" // it reaches too far ahead: it ignores nothing
)

// IgnoreState is an ignore block of the configuration and its state.
type IgnoreState struct {
	Name    string    `json:"name"`
	Owner   string    `json:"owner"`
	Reason  string    `json:"reason"`
	Until   string    `json:"until"`
	State   State     `json:"state"`
	Expires time.Time `json:"-"` // when it holds no more
	block   fleet.Ignore
	on      *plan.Selector // nil: all hosts
}

// Ignored is drift that raises no alarm, and who decided that. apply fixes it anyway.
type Ignored struct {
	Item   `json:"item"`
	Ignore string `json:"ignore"`
	Owner  string `json:"owner"`
	Reason string `json:"reason"`
	Until  string `json:"until"`
}

// statesOf returns the ignore blocks with their states at now, as far as their dates decide them.
func statesOf(all []fleet.Ignore, now time.Time) ([]IgnoreState, error) {
	states := make([]IgnoreState, 0, len(all))
	for _, i := range all {
		s := IgnoreState{i.Name, i.Owner, i.Reason, i.Until.Format(time.DateOnly), stateOf(i, now), i.Expires(), i, nil}
		if s.State == Idle && i.On != "" {
			on, err := plan.ParseSelector(i.On)
			if err != nil {
				return []IgnoreState{}, fmt.Errorf("ignore %q: %w", i.Name, err)
			}
			s.on = &on
		}
		states = append(states, s)
	}
	return states, nil
}

// stateOf returns the state of an ignore block at now, as far as its date decides it.
func stateOf(i fleet.Ignore, now time.Time) State {
	switch {
	case i.Expired(now):
		return Expired
	case i.TooLong(now):
		return TooLong
	}
	return Idle
}

// means reports whether the block holds and is about an item, whatever its fields.
func (s *IgnoreState) means(i Item, h *plan.Host) bool {
	switch {
	case s.State != Idle && s.State != Active:
		return false
	case s.block.Step != "" && s.block.Step != i.Step, s.block.Code != "" && s.block.Code != i.Code.String():
		return false
	case s.on == nil:
		return true
	}
	return h != nil && s.on.Keeps(*h)
}

// apart splits an item into what counts and what is ignored. The first block that
// means the item, or a field of it, has it, and is active.
func apart(i Item, h *plan.Host, states []IgnoreState) (counts *Item, ignored []Ignored) {
	rest := i
	for at := range states {
		s := &states[at]
		if !s.means(i, h) {
			continue
		}
		part, other := rest, func(f Field) bool { return s.block.Field != "" && f.Name != plan.FieldName(s.block.Field) }
		part.Fields = slices.DeleteFunc(slices.Clone(rest.Fields), other)
		rest.Fields = slices.DeleteFunc(slices.Clone(rest.Fields), func(f Field) bool { return !other(f) })
		if s.block.Field != "" && len(part.Fields) == 0 {
			continue
		}
		s.State = Active
		if ignored = append(ignored, Ignored{part, s.Name, s.Owner, s.Reason, s.Until}); len(rest.Fields) == 0 {
			return nil, ignored
		}
	}
	return &rest, ignored
}

// Remark is worth knowing and no drift.
type Remark struct {
	Code     plan.Code     `json:"code"`
	Severity plan.Severity `json:"severity"` // Warning or Notice
	Text     string        `json:"text"`
}

// inProgress says that an apply is running: what was observed may be half done.
func inProgress(p *plan.Plan) []Remark {
	out := []Remark{}
	for _, w := range p.Warnings {
		if w.Code == plan.CodeApplyInProgress {
			out = append(out, Remark{w.Code, plan.Notice, w.Text})
		}
	}
	return out
}

// RemarkOn says what is wrong with an ignore block at now, without looking at any host:
// its day, or a code that no reason has. ok is false where nothing is.
func RemarkOn(i fleet.Ignore, now time.Time) (r Remark, ok bool) {
	day := i.Until.Format(time.DateOnly)
	switch stateOf(i, now) {
	case Expired:
		return Remark{codeIgnoreExpired, plan.Warning,
			fmt.Sprintf("ignore %q of %s expired on %s and has no effect: fix the drift, set a later date, or remove the block", i.Name, i.Owner, day)}, true
	case TooLong:
		return Remark{codeIgnoreTooLong, plan.Warning,
			fmt.Sprintf("ignore %q of %s ends on %s and has no effect: the limit is %d days ahead; longer exceptions belong in the configuration",
				i.Name, i.Owner, day, int(fleet.MaxIgnore.Hours()/24))}, true
	}
	if why := noCode(i); why != "" {
		return Remark{codeIgnoreUnused, plan.Notice, fmt.Sprintf("ignore %q of %s matches nothing: %s", i.Name, i.Owner, why)}, true
	}
	return Remark{}, false
}

// noCode says that an ignore block names a code that no reason has, or "".
func noCode(i fleet.Ignore) string {
	if i.Code == "" || slices.Contains(codes(), i.Code) {
		return ""
	}
	text := "no reason has the code " + i.Code
	if near := fleet.Nearest(i.Code, codes()); near != "" {
		text += fmt.Sprintf(", did you mean %q?", near)
	}
	return text
}

// remarksOn says what to do about ignore blocks. That one is unused is only known where everything
// was compared.
func remarksOn(states []IgnoreState, now time.Time, all bool) []Remark {
	out := []Remark{}
	for _, s := range states {
		switch {
		case s.State == Expired, s.State == TooLong:
			r, _ := RemarkOn(s.block, now)
			out = append(out, r)
		case s.State == Idle && all:
			text := fmt.Sprintf("ignore %q of %s (until %s) matches nothing: remove the block if the drift is gone for good", s.Name, s.Owner, s.Until)
			if why := noCode(s.block); why != "" {
				text += "; " + why
			}
			out = append(out, Remark{codeIgnoreUnused, plan.Notice, text})
		}
	}
	return out
}

// codes returns the codes that an item of drift may have, sorted.
func codes() []string {
	var out []string
	for _, c := range plan.Codes() {
		if c.Severity() != plan.NotDrift {
			out = append(out, c.String())
		}
	}
	return out
}
