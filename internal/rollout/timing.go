package rollout

import (
	"time"

	"github.com/macfleet/macfleet/plan"
)

// Task is a kind of work that takes about the same time on each host.
type Task struct {
	Kind       plan.Kind
	Step       plan.StepID
	Disruption plan.Disruption
	Drains     bool   // the host is drained first
	Lane       string // of plan.AwaitNode: the host's lane
}

// TaskOf returns the task of an action.
func TaskOf(a plan.Action) Task {
	return Task{Kind: a.Kind, Step: a.Step, Disruption: a.Disruption, Drains: a.Drains}
}

// Await returns the task of waiting until the Node of a host of a lane is Ready.
func Await(l Lane) Task { return Task{Kind: plan.AwaitNode, Lane: l.String()} }

// Check is the task of comparing all hosts again at the end of a run.
var Check = Task{Kind: "check"}

// Timing says how long tasks typically take.
type Timing struct {
	Recorded  map[Task]time.Duration // medians of recorded runs
	Runs      int                    // how many runs these are from
	Simulated bool                   // the hosts are simulated: what is not recorded takes next to nothing
}

// pace holds the durations of tasks that no run has recorded yet.
type pace struct {
	call    time.Duration // a request to a provider or the cluster, or a file on the host
	step    time.Duration // a step: its changes, and its probes before and after
	job     time.Duration // besides, where a job is restarted: it stops, starts and stays up
	install time.Duration // the provider reinstalls a server, and it answers again
	drain   time.Duration // the Pods of a host end, and its virtual machines with them
	quiet   time.Duration // a host with a fenced CI agent must stay idle
	reboot  time.Duration
	join    time.Duration // a Node registers and is Ready
	restart time.Duration // a Node is Ready again after its kubelet restarted
	check   time.Duration
	rate    int64 // bytes a second of an artifact, to or from a host
}

// The defaults. docs/performance.md lists them with their reasons.
var (
	realMacs = pace{call: time.Second, step: 4 * time.Second, job: 8 * time.Second, drain: time.Minute, quiet: time.Minute, reboot: 2 * time.Minute, install: 40 * time.Minute,
		join: 20 * time.Second, restart: 10 * time.Second, check: 5 * time.Second, rate: 10e6}
	simulatedMacs = pace{call: 300 * time.Millisecond, step: time.Second, drain: time.Second, quiet: time.Second, reboot: time.Second, install: 5 * time.Second,
		join: time.Second, restart: time.Second, check: time.Second, rate: 100e6}
)

// of returns how long a task typically takes. recorded says that runs recorded it.
func (t Timing) of(k Task) (d time.Duration, recorded bool) {
	if d, recorded = t.Recorded[k]; recorded {
		return d, true
	}
	p := t.pace()
	switch k.Kind {
	case plan.ReinstallServer:
		return p.install, false
	case Check.Kind:
		return p.check, false
	case plan.AwaitNode:
		if k.Lane == Disrupt.String() {
			return p.restart, false
		}
		return p.join, false
	case plan.RunStep, plan.RemoveStep:
		d = p.step
	default:
		d = p.call
	}
	switch {
	case k.Disruption >= plan.Reboot:
		d += p.reboot
	case k.Disruption == plan.Restart:
		d += p.job
	}
	return d, false
}

func (t Timing) pace() pace {
	if t.Simulated {
		return simulatedMacs
	}
	return realMacs
}

// Of adds up how long actions on one host take one after the other. agent says that the host has a CI agent, which is fenced
// once before the first action that would interrupt its jobs.
func (t Timing) Of(actions []plan.Action, agent bool) Estimate {
	var e Estimate
	for _, a := range actions {
		d, recorded := t.of(TaskOf(a))
		if !recorded {
			d += t.unrecorded(a)
			if agent && a.Disruption >= plan.Drain && !a.Forced {
				d, agent = d+t.pace().quiet, false
			}
			e.Pods = e.Pods || a.Drains && a.Evicts > 0
		}
		e.add(d, recorded)
	}
	return e
}

// unrecorded returns what an action takes besides its task: moving its artifacts, and a drain.
func (t Timing) unrecorded(a plan.Action) (d time.Duration) {
	p := t.pace()
	for _, c := range a.Changes {
		if c.Delivery != nil {
			d += time.Duration(float64(c.Delivery.Artifact.Size) / float64(p.rate) * float64(time.Second))
		}
	}
	switch {
	case a.Drains && a.Evicts > 0:
		d += p.drain
	case a.Drains:
		d += p.step
	}
	return d
}

// Estimate is how long something takes, and what that is based on.
type Estimate struct {
	Time     time.Duration
	Recorded bool // at least one part was recorded
	Default  bool // at least one part is a default
	Pods     bool // Pods are evicted, and how long these take to end is not recorded
}

func (e *Estimate) add(d time.Duration, recorded bool) {
	e.Time += d
	e.Recorded, e.Default = e.Recorded || recorded, e.Default || !recorded
}

// Task returns how long a task takes.
func (t Timing) Task(k Task) (e Estimate) {
	e.add(t.of(k))
	return e
}

// With adds the parts that two estimates are based on, without their times.
func (e Estimate) With(other Estimate) Estimate {
	e.Recorded, e.Default, e.Pods = e.Recorded || other.Recorded, e.Default || other.Default, e.Pods || other.Pods
	return e
}
