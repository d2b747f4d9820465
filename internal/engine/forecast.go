package engine

import (
	"math"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/rollout"
	"github.com/macfleet/macfleet/plan"
)

// Outlook is what a forecast needs besides a plan.
type Outlook struct {
	Timing      func() rollout.Timing // nil: the defaults
	Parallelism int
}

// forecast plays the plan with the scheduler that a run uses, and enters the order of its hosts
// and how long it takes.
func forecast(cfg *fleet.Config, steps plan.StepsFor, p *plan.Plan, b plan.Bounds, o Outlook) {
	work := p.Runnable()
	if len(work) == 0 {
		return
	}
	var timing rollout.Timing
	if o.Timing != nil {
		timing = o.Timing()
	}
	var first rollout.Estimate // the cluster's own objects come first
	if work[0][0].OfCluster() {
		first, work = timing.Of(work[0], false), work[1:]
	}
	total := timing.Task(rollout.Check).With(first)
	l := lineUpOf(cfg, steps, p, work)
	jobs := make(map[string]rollout.Job, len(work))
	of := make(map[string][]plan.Action, len(work))
	for _, actions := range work {
		of[actions[0].ServerID] = actions
	}
	for _, w := range l.work {
		if actions, works := of[w.ID]; works {
			job, based := l.job(p, timing, w, actions)
			jobs[w.ID], total = job, total.With(based)
		}
	}
	course := rollout.New(l.work, l.limits, l.healthy, o.Parallelism).Play(jobs, l.cordoned())
	total.Time += first.Time + course.Takes
	for _, f := range cfg.Fleets {
		if r := l.rolloutOf(f, course, first.Time); len(r.Waves)+len(r.Left) > 0 {
			p.Rollouts = append(p.Rollouts, r)
		}
	}
	p.Forecast = &plan.Forecast{Seconds: seconds(total.Time), Defaults: total.Default, Pods: total.Pods}
	if total.Recorded {
		p.Forecast.Runs = timing.Runs
	}
	for _, s := range course.Starts {
		at := b.Now.Add(first.Time + s.At)
		if slices.ContainsFunc(of[s.ID], func(a plan.Action) bool { return b.OutsideWindow(*l.hosts[s.ID], a, at) != nil }) {
			p.Forecast.Late++
		}
	}
}

// job returns how long the work on a host takes, and what that is based on.
func (l lineUp) job(p *plan.Plan, timing rollout.Timing, w rollout.Work, actions []plan.Action) (rollout.Job, rollout.Estimate) {
	agent := l.hosts[w.ID].Fenceable()
	done := timing.Of(actions, agent)
	_, opens := splitUncordon(actions)
	job := rollout.Job{Work: done.Time, Uncordons: opens != nil}
	if i := slices.IndexFunc(actions, func(a plan.Action) bool { return a.Kind == plan.ReinstallServer }); i > 0 {
		job.Left = timing.Of(actions[:i], agent).Time
	}
	if w.Lane != rollout.Plain && w.Lane != rollout.Leave && p.Cluster && l.hosts[w.ID].Spec.Spec.JoinsCluster() {
		ready := timing.Task(rollout.Await(w.Lane))
		job.Settle, done = ready.Time, done.With(ready)
	}
	return job, done
}

// cordoned returns the healthy hosts whose Nodes are cordoned.
func (l lineUp) cordoned() map[string]bool {
	out := make(map[string]bool)
	for id := range l.nodes {
		if h := l.hosts[id]; h != nil {
			if n, there := h.Node.Get(); there && n.Cordoned {
				out[id] = true
			}
		}
	}
	return out
}

// rolloutOf returns how a course, which begins after some time, disturbs the hosts of a fleet.
func (l lineUp) rolloutOf(f fleet.Fleet, c rollout.Course, after time.Duration) plan.Rollout {
	r := plan.Rollout{Fleet: f.Name, AtOnce: l.limits[f.Name].MaxUnavailable, Canary: f.Rollout.Canary, Waves: [][]string{}}
	if f.Rollout.Soak > 0 {
		r.Soak = f.Rollout.Soak.String()
	}
	lanes := make(map[string]rollout.Lane, len(l.work))
	for _, w := range l.work {
		lanes[w.ID] = w.Lane
		if w.Fleet == f.Name && w.Trial && f.Rollout.Canary > 0 {
			r.Trials = append(r.Trials, l.hosts[w.ID].Name)
		}
	}
	for _, s := range c.Starts {
		h := l.hosts[s.ID]
		if h.Fleet != f.Name {
			continue
		}
		r.Seconds = max(r.Seconds, seconds(after+s.Until))
		if s.Wave > len(r.Waves) {
			r.Waves = append(r.Waves, nil)
		}
		if s.Wave > 0 {
			r.Waves[s.Wave-1] = append(r.Waves[s.Wave-1], h.Name)
		}
	}
	for _, left := range c.Left {
		if h := l.hosts[left.ID]; h.Fleet == f.Name && lanes[left.ID] == rollout.Disrupt {
			r.Left = append(r.Left, h.Name)
			if r.LeftReason == "" {
				r.LeftReason = string(left.Why)
			}
		}
	}
	return r
}

func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
