package rollout

import (
	"slices"
	"time"
)

// Job is how long the work on one host takes.
type Job struct {
	Work      time.Duration // its actions
	Left      time.Duration // of these, until its Node is gone because it leaves; 0: it stays
	Settle    time.Duration // then until its Node is Ready, which takes no worker
	Uncordons bool          // its Node is uncordoned at the end
}

// Start is the start of a host in a course.
type Start struct {
	ID        string
	Wave      int           // 0: it disturbs nothing
	At, Until time.Duration // since the start of the run; with the wait for its Node
}

// Course is how a run goes if nothing fails.
type Course struct {
	Starts []Start   // in order
	Left   []Waiting // hosts that do not start
	Takes  time.Duration
}

// Play plays a run that has not started: its hosts start when the rollout allows it, and take as long as their jobs say.
// cordoned are the healthy hosts whose Nodes are cordoned.
func (r *Rollout) Play(jobs map[string]Job, cordoned map[string]bool) Course {
	var (
		c       Course
		start   = time.Unix(0, 0)
		now     = start
		running []*played
	)
	ready := func(string) bool { return true }
	for {
		r.SetCordoned(cordoned)
		for _, id := range r.Next(now, ready) {
			c.Starts = append(c.Starts, Start{ID: id, Wave: r.Wave(id), At: now.Sub(start)})
			p := &played{place: len(c.Starts) - 1, job: jobs[id], next: now.Add(jobs[id].Work)}
			if jobs[id].Left > 0 {
				p.next, p.leaves = now.Add(jobs[id].Left), true
			}
			running = append(running, p)
		}
		var next time.Time
		for _, until := range r.Soaks(now) {
			next = earlier(next, until)
		}
		for _, p := range running {
			next = earlier(next, p.next)
		}
		if next.IsZero() {
			break
		}
		now = next
		running = slices.DeleteFunc(running, func(p *played) bool {
			at := &c.Starts[p.place]
			switch {
			case p.next.After(now):
				return false
			case p.leaves:
				r.HasLeft(at.ID)
				p.leaves, p.next = false, now.Add(p.job.Work-p.job.Left)
				return false
			case !p.settles && p.job.Settle > 0:
				r.AwaitReady(at.ID)
				p.settles, p.next = true, now.Add(p.job.Settle)
				return false
			}
			r.Finished(at.ID, now)
			at.Until, c.Takes = now.Sub(start), now.Sub(start)
			if p.job.Uncordons {
				delete(cordoned, at.ID)
			}
			return true
		})
	}
	c.Left = r.Waiting(now, ready)
	return c
}

// played is a host in progress.
type played struct {
	place   int // in the starts
	job     Job
	settles bool
	leaves  bool
	next    time.Time // when something happens next
}

// earlier returns the earlier of two times; a zero one does not count.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
