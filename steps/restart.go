package steps

import (
	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

var codeRestartAsked = plan.NewCode("restart-asked", plan.Notice, "somebody asks for a restart")

// restarts is a step with a job of its own, which a person may want to start anew.
type restarts interface {
	plan.Step
	// restart returns the change that does it. The view is of a host that has no
	// difference in this step.
	restart(v plan.View) plan.Change
}

// Jobs returns the steps that have a job to restart.
func Jobs() []plan.StepID {
	var out []plan.StepID
	for _, s := range For(fleet.Host{}) {
		if _, ok := s.(restarts); ok {
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
		r, has := s.(restarts)
		if !has || s.ID() != id || s.Wanted() == "" {
			continue
		}
		c = r.restart(v)
		c.Reason = plan.Reason{Code: codeRestartAsked, Text: "somebody asks for it"}
		return c, true
	}
	return plan.Change{}, false
}

func (k tartKubelet) restart(v plan.View) plan.Change {
	r := reader{facts: v.Facts}
	d := kubeletDiff{step: k, view: v, seen: r.kubelet(k.stateID())}
	d.compare(&r)
	return d.run()
}
