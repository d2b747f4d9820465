package steps

import (
	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
)

var codeRestartAsked = plan.NewCode("restart-asked", plan.Notice, "somebody asks for a restart")

// Jobs returns the steps that have a job to restart.
func Jobs() []plan.StepID {
	var out []plan.StepID
	for _, s := range For(fleet.Host{}) {
		if _, ok := s.(kit.Restarter); ok {
			out = append(out, s.ID())
		}
	}
	return out
}

// Restart returns the change that starts a step's job anew on a host. It proves
// itself: the process is a new one, and the same some seconds later. ok is false
// where the host has no such job.
func Restart(id plan.StepID, v plan.View) (c plan.Change, ok bool) {
	for _, s := range For(v.Host) {
		r, has := s.(kit.Restarter)
		if !has || s.ID() != id || s.Wanted() == "" {
			continue
		}
		c = r.Restart(v)
		c.Reason = plan.Reason{Code: codeRestartAsked, Text: "somebody asks for it"}
		return c, true
	}
	return plan.Change{}, false
}
