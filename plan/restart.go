package plan

// Restarting returns the action that runs a step's change without a difference: a
// person asks for it.
func Restarting(h Host, step StepID, c Change) Action {
	a := h.action(RunStep)
	a.Step, a.Reason, a.Disruption = step, c.Reason, c.Disruption
	a.Fields, a.Changes = c.Fields, []Change{c}
	if held := h.Standing(); held != nil {
		a.Refusal = held.Trouble(h.Name)
	}
	return a
}
