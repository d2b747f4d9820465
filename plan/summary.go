package plan

// Summary counts a plan.
type Summary struct {
	Add          int `json:"add"` // actions that will run, by sign
	Change       int `json:"change"`
	Remove       int `json:"remove"`
	Refused      int `json:"refused"`              // what is wanted and can't be done: releases, missing servers, hosts that must not be touched
	RefusedHosts int `json:"refused_hosts"`        // of these, hosts that could not be compared
	Unknown      int `json:"unknown"`              // hosts that could not be asked
	Deferred     int `json:"deferred"`             // hosts of which a limit of the run leaves something for a later one
	Unread       int `json:"unread"`               // steps with answers that could not be read, parts of the cluster, and groups of which nobody was asked
	NotJudged    int `json:"not_judged,omitempty"` // members whose kubelet was started too lately to judge their Nodes
	Drift        int `json:"drift"`                // differences whose facts moved since their proof
	Pending      int `json:"pending"`              // differences whose wish moved, or that were never proven
	Hosts        int `json:"hosts"`                // members
	Converged    int `json:"converged"`            // members without a difference
	NotCompared  int `json:"not_compared"`         // hosts of which nothing could be compared
	Partly       int `json:"partly_compared"`      // hosts of which not every step could be compared
	LeftOut      int `json:"left_out"`             // hosts that the selection leaves out, wanted ones too
	Orphans      int `json:"orphans"`              // hosts of ours without a place in the configuration
	Undecided    int `json:"undecided"`            // of these, those that nobody has allowed
}

// Summarise counts the plan.
func (p *Plan) Summarise() Summary {
	var s Summary
	blocked := make(map[string]bool) // by server id: hosts that are refused or unknown as a whole
	for _, h := range p.Hosts {
		blocked[h.Server.ID] = h.Refused != nil || h.Unknown != nil
		s.Hosts += ones(h.Member)
		s.Converged += ones(h.Member && h.Converged == Converged)
		s.Unknown += ones(h.Unknown != nil)
		s.Refused += ones(h.Refused != nil)
		s.RefusedHosts += ones(h.Refused != nil)
		s.Unread += len(h.Unread)
		s.NotJudged += ones(h.Member && h.NotJudged() != nil)
		s.NotCompared += ones(h.Extent() == Nothing)
		s.Partly += ones(h.Extent() == Part)
	}
	s.NotCompared, s.LeftOut = s.NotCompared+len(p.Lost), p.LeftOut
	unprepared, deferred := false, make(map[string]bool) // by server id
	for _, a := range p.Actions {
		s.Drift += ones(a.Origin.Drift)
		s.Pending += ones(a.Origin.Pending)
		if a.Refusal != nil {
			// One that is refused with its whole host is counted there, and one command of
			// an administrator makes all that the cluster lacks.
			prepares := a.OfCluster() && a.Refusal.Code == CodeClusterNotPrepared
			s.Refused += ones(a.Disruption == Wipe || !blocked[a.ServerID] && !(unprepared && prepares))
			unprepared = unprepared || prepares
			continue
		}
		if a.Deferral != nil {
			deferred[a.ServerID] = true
			continue
		}
		sign := a.Kind.Sign()
		s.Add += ones(sign == Create || sign == Replace)
		s.Remove += ones(sign == Remove || sign == Replace)
		s.Change += ones(sign == Update)
	}
	for _, sh := range p.Shortages {
		s.Refused += sh.Missing
		s.Pending += sh.Missing
	}
	if s.Orphans = len(p.Orphans); !p.AllowOrphans {
		s.Undecided = s.Orphans
	}
	for _, r := range p.Rejected {
		s.Unknown += ones(r.Begun)
	}
	for _, d := range p.Doubts {
		s.Refused += ones(d.Code == CodeOtherCluster) // an apply refuses all of it
	}
	s.Unread += len(p.Unread) + len(p.Unasked)
	s.Refused += len(p.Lost)
	s.Deferred = len(deferred)
	s.RefusedHosts += len(p.Lost)
	return s
}

func ones(is bool) int {
	if is {
		return 1
	}
	return 0
}

// Complete reports whether everything could be compared and judged, nothing that is wanted is
// refused, and every host of ours has its place.
func (s Summary) Complete() bool { return s.Refused+s.Unknown+s.Unread+s.NotJudged+s.Undecided == 0 }

// Compared reports whether every host could be compared, whatever is refused.
func (s Summary) Compared() bool { return s.RefusedHosts+s.Unknown+s.Unread == 0 }

// Finished reports whether the run may do nothing more: everything is as it is wanted,
// but for what a limit leaves for a later run.
func (s Summary) Finished() bool { return s.Changes() == 0 && s.Complete() }

// Changes returns how many actions will run.
func (s Summary) Changes() int { return s.Add + s.Change + s.Remove }
