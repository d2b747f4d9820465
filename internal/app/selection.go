package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

// Selection says which hosts a command is about, and what of them.
type Selection struct {
	On, Exclude []string // selectors
	Steps       []string
	Rollback    bool     // of artifacts, to the version before
	ForceBusy   []string // names of hosts that are not waited for
}

// parsed returns the selection as plans take it.
func (s Selection) parsed() (plan.Selection, error) {
	sel := plan.Selection{ForceBusy: s.ForceBusy, Rollback: s.Rollback}
	var err error
	if sel.On, err = selectors("--on", s.On); err != nil {
		return sel, err
	}
	if sel.Exclude, err = selectors("--exclude", s.Exclude); err != nil {
		return sel, err
	}
	if s.Rollback && len(sel.On) == 0 {
		return sel, errors.New("--rollback needs to be told whose: name hosts with --on, for example --on fleet=runners")
	}
	if sel.Steps, err = plan.ParseSteps(s.Steps, steps.For); err != nil {
		return sel, fmt.Errorf("--step: %w", err)
	}
	return sel, nil
}

func selectors(flag string, texts []string) ([]plan.Selector, error) {
	var all []plan.Selector
	for _, text := range texts {
		s, err := plan.ParseSelector(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// narrowed reports whether a part of the fleets is meant.
func (s Selection) narrowed() bool { return len(s.On)+len(s.Exclude)+len(s.Steps) > 0 }

// and returns the selection of more hosts: by name, or by a selector.
func (s Selection) and(hosts ...string) Selection {
	s.On = slices.Clone(s.On)
	for _, h := range hosts {
		if !strings.Contains(h, "=") {
			h = "name=" + h
		}
		s.On = append(s.On, h)
	}
	return s
}

// oneHost refuses selections where a command looks at one host: to take and
// ignore them would look like an answer about something else.
func (env *Env) oneHost(command string) error {
	if env.narrowed() {
		return fmt.Errorf("%s looks at the one host that it is given: leave out --on, --exclude and --step", command)
	}
	return nil
}

// didYouMean puts the known name that is nearest to a wrong one into a question, or returns
// nothing.
func didYouMean(question, name string, known []string) string {
	near := fleet.Nearest(name, known)
	if near == "" {
		return ""
	}
	return fmt.Sprintf(question, near)
}
