package plan

// Summary counts a plan.
type Summary struct {
	Add          int `json:"add"` // actions that will run, by sign
	Change       int `json:"change"`
	Remove       int `json:"remove"`
	Refused      int `json:"refused"`              // blocked: releases, missing servers, hosts that must not be changed
	RefusedHosts int `json:"refused_hosts"`        // of these, hosts that could not be compared
	Unknown      int `json:"unknown"`              // unreachable hosts
	Deferred     int `json:"deferred"`             // hosts with actions deferred to a later run
	Unread       int `json:"unread"`               // steps and parts of the cluster that could not be read, and groups whose hosts were not contacted
	NotJudged    int `json:"not_judged,omitempty"` // members whose kubelet was started too recently to judge their Nodes
	Drift        int `json:"drift"`                // differences whose facts changed since the last verification
	Pending      int `json:"pending"`              // differences whose configuration changed, or that were never verified
	Hosts        int `json:"hosts"`                // members
	Converged    int `json:"converged"`            // members without a difference
	NotCompared  int `json:"not_compared"`         // hosts of which nothing could be compared
	Partly       int `json:"partly_compared"`      // hosts of which not every step could be compared
	LeftOut      int `json:"left_out"`             // hosts that the selection leaves out, including those still to be claimed
	Orphans      int `json:"orphans"`              // orphaned members
	Undecided    int `json:"undecided"`            // of these, those that --allow-orphans does not allow
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
			// A host that is refused as a whole is counted there, and one init cluster creates all objects
			// that the cluster lacks.
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
		s.Unknown += ones(r.ClaimStarted)
	}
	for _, d := range p.Doubts {
		s.Refused += ones(d.Code == CodeOtherCluster) // an apply refuses all of it
	}
	s.Unread += len(p.Unread) + len(p.NotContacted)
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

// Complete reports whether everything could be compared and judged, nothing is blocked, and no member is
// orphaned.
func (s Summary) Complete() bool { return s.Refused+s.Unknown+s.Unread+s.NotJudged+s.Undecided == 0 }

// Compared reports whether every host could be compared, whatever is blocked.
func (s Summary) Compared() bool { return s.RefusedHosts+s.Unknown+s.Unread == 0 }

// Finished reports whether nothing is left for the run: everything is in sync, except for deferred
// actions.
func (s Summary) Finished() bool { return s.Changes() == 0 && s.Complete() }

// Changes returns how many actions will run.
func (s Summary) Changes() int { return s.Add + s.Change + s.Remove }
