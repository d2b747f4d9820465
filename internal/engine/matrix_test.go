package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

// leastPoints is how many points of the fault matrix must be tried.
const leastPoints = 3000

// before and after an event of a run: the places of faults that are no call.
const (
	beforeEvent enginetest.Place = 100 + iota
	behindEvent
)

// memFault hits a run in memory at one place.
type memFault struct {
	at      enginetest.Place
	is      enginetest.Fault // of a call
	happens func(m *memory)  // there, or what hits an event
	instead bool             // the event is not recorded
	behind  bool             // it happens when the call has had its effect
	before  func(m *memory)  // the run begins
	repair  func(m *memory)  // what time or a person does before the next apply
	once    bool             // where it falls makes no difference
}

// memory is a world in memory with a fault that falls at one place.
type memory struct {
	t      *testing.T
	world  *enginetest.World
	engine *engine.Engine
	values map[plan.StepID]string // what is configured
	epoch  int64
	idle   bool   // no Pods run
	late   string // the Node that a Pod came to

	mu   sync.Mutex
	f    memFault
	left int // places before the one where the fault falls; -1: it fell
	die  context.CancelCauseFunc
	halt context.CancelCauseFunc
	dead bool
}

// newMemory returns a world whose two hosts have all that a step can ask for.
func newMemory(t *testing.T) *memory {
	t.Helper()
	m := &memory{t: t, left: -1, world: enginetest.New(2, 2, fleet.Rollout{MaxUnavailable: fleet.Share{Count: 1}, Canary: 1})}
	m.values = map[plan.StepID]string{"sudo": "yes", "plain": "a", "tools": "t1", "net": "n1", "long": "l1", "agent": "v1"}
	m.world.Things = func(fleet.Host) []enginetest.Thing {
		return []enginetest.Thing{
			{Key: "sudo", Value: m.values["sudo"], Input: plan.LoginPassword, Grants: true},
			{Key: "plain", Value: m.values["plain"]},
			{Key: "tools", Value: m.values["tools"], Class: plan.Drain, Root: true, Brought: true},
			{Key: "net", Value: m.values["net"], Root: true, Guarded: true},
			{Key: "long", Value: m.values["long"], Root: true, Detached: true},
			{Key: "agent", Value: m.values["agent"], Class: plan.Restart, Root: true, Brought: true, Node: true, Input: plan.Kubeconfig},
		}
	}
	m.world.OnCall = m.onCall
	m.engine = m.world.Engine()
	return m
}

// asRun begins another run, as another process has it.
func (m *memory) asRun() {
	m.epoch++
	m.engine = m.world.Engine()
	m.engine.Run = named(fmt.Sprint("run", m.epoch), m.epoch)
	for _, machine := range m.world.Machines {
		name := machine.NodeName()
		if m.world.TakesPods(name) && !m.idle && len(m.world.Pods(name)) == 0 {
			m.world.RunPod(name, fmt.Sprint("job-", m.epoch, "-", machine.Server.ID))
		}
	}
}

// counts reports whether the fault falls at this place.
func (m *memory) counts(at enginetest.Place) (memFault, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left < 0 || m.f.at != at {
		return memFault{}, false
	}
	m.left--
	return m.f, m.left < 0
}

func (m *memory) onCall(c enginetest.Call) enginetest.Fault {
	f, falls := m.counts(c.Place)
	if !falls {
		return enginetest.Fault{}
	}
	out := f.is
	if f.happens != nil && f.behind {
		out.After = func() { f.happens(m) }
	} else if f.happens != nil {
		out.Before = func() { f.happens(m) }
	}
	return out
}

// onEvent lets the fault happen where it falls at an event. It reports whether the
// event is recorded no more.
func (m *memory) onEvent(at enginetest.Place) bool {
	m.mu.Lock()
	dead := m.dead
	m.mu.Unlock()
	if dead {
		return true
	}
	f, falls := m.counts(at)
	if falls && f.happens != nil {
		f.happens(m)
	}
	return falls && f.instead
}

// kill ends the process.
func (m *memory) kill() {
	m.mu.Lock()
	m.dead = true
	m.mu.Unlock()
	m.world.Die(errDied)
	m.die(errDied)
}

// podComes binds a Pod to the first host's Node in spite of a cordon.
func (m *memory) podComes() {
	if m.late = m.host(); m.world.RunsPods(m.late) {
		m.world.RunPod(m.late, fmt.Sprint("late-", m.epoch))
	}
}

// host is the name of the first host, as its kubelet goes by it.
func (m *memory) host() string { return m.world.Machines[0].NodeName() }

// memFaults are what may hit a run, by name.
func memFaults() map[string]memFault {
	lost := enginetest.ErrLost
	later := func(*memory) { time.Sleep(3 * time.Minute) } // on the virtual clock
	out := map[string]memFault{
		"host: line breaks before":      {at: enginetest.OnHost, is: enginetest.Fault{Err: lost}},
		"host: answer is lost":          {at: enginetest.OnHost, is: enginetest.Fault{Err: lost, Applied: true}},
		"host: half of it is done":      {at: enginetest.OnHost, is: enginetest.Fault{Err: lost, Half: true}},
		"host: hangs":                   {at: enginetest.OnHost, is: enginetest.Fault{Err: lost, Hang: true}},
		"host: hangs behind it":         {at: enginetest.OnHost, is: enginetest.Fault{Err: lost, Hang: true, Applied: true}},
		"host: is slow":                 {at: enginetest.OnHost, is: enginetest.Fault{Hang: true}},
		"host: answers rubbish":         {at: enginetest.OnHost, is: enginetest.Fault{Garbled: true}},
		"host: reboots":                 {at: enginetest.OnHost, repair: later, happens: func(m *memory) { m.world.Change(m.world.Machines[0].Reboot) }},
		"host: reboots under the other": {at: enginetest.OnHost, repair: later, happens: func(m *memory) { m.world.Change(m.world.Machines[1].Reboot) }},
		"host: full disk": {at: enginetest.OnHost, happens: func(m *memory) { m.world.Change(func() { m.world.Machines[0].FullDisk = true }) },
			repair: func(m *memory) { m.world.Machines[0].FullDisk = false }},
		"host: away": {at: enginetest.OnHost, happens: func(m *memory) { m.world.Change(func() { m.world.Machines[0].Away = true }) },
			repair: func(m *memory) { m.world.Machines[0].Away = false; later(m) }},
		"cluster: Node deleted":              {at: enginetest.InCluster, repair: later, happens: func(m *memory) { m.world.DeleteNode(m.host()) }},
		"cluster: Node made again":           {at: enginetest.InCluster, repair: later, happens: func(m *memory) { m.world.RemakeNode(m.host()) }},
		"cluster: Node deleted under a host": {at: enginetest.OnHost, repair: later, happens: func(m *memory) { m.world.DeleteNode(m.host()) }},
		"cluster: token revoked":             {at: enginetest.InCluster, repair: later, happens: func(m *memory) { m.world.RevokeToken(m.host()) }},
		"cluster: conflict":                  {at: enginetest.InCluster, is: enginetest.Fault{Err: errors.New("409 Conflict")}},
		"cluster: a Pod comes":               {at: enginetest.InCluster, repair: func(m *memory) { m.world.EndPods(m.late) }, happens: (*memory).podComes},
		"kill -9 before an event":            {at: beforeEvent, instead: true, happens: (*memory).kill},
		"kill -9 after an event":             {at: behindEvent, happens: (*memory).kill},
		"record: full disk":                  {at: behindEvent, happens: func(m *memory) { m.halt(errFull) }},
		"stopped":                            {at: behindEvent, happens: func(m *memory) { m.halt(errors.New("interrupted")) }},
		"stopped at a host":                  {at: enginetest.OnHost, happens: func(m *memory) { m.halt(errors.New("interrupted")) }},
		"left at once":                       {at: behindEvent, happens: func(m *memory) { m.halt(errors.New("interrupted")); m.die(errDied) }},
		"cloud: denies":                      {at: enginetest.InCloud, is: enginetest.Fault{Err: fmt.Errorf("403: %w", inventory.ErrDenied)}},
		"kill -9, and a list lacks a server": {at: enginetest.InCloud, happens: (*memory).kill, repair: (*memory).lackServer},
		"lock: lost, and it knows":           {at: behindEvent, before: func(m *memory) { m.engine.Guard = heldWhile(m.whole) }},
		"lock: stolen while it is asleep":    {at: enginetest.OnHost, happens: (*memory).takeOver},
		"operator: clock is ahead":           {at: behindEvent, once: true, before: func(m *memory) { m.skew(48 * time.Hour) }},
		"operator: clock is behind":          {at: behindEvent, once: true, before: func(m *memory) { m.skew(-48 * time.Hour) }},
	}
	for _, status := range []string{"locked", "rebooting", "error"} {
		out["cloud: server becomes "+status] = memFault{at: enginetest.InCloud,
			repair:  func(m *memory) { m.world.Machines[0].Server.Status = "ready" },
			happens: func(m *memory) { m.world.Change(func() { m.world.Machines[0].Server.Status = status }) }}
	}
	for name, at := range map[string]enginetest.Place{"a host": enginetest.OnHost, "the cluster": enginetest.InCluster, "the cloud": enginetest.InCloud} {
		out["kill -9 at "+name] = memFault{at: at, happens: (*memory).kill}
		out["kill -9 behind "+name] = memFault{at: at, behind: true, happens: (*memory).kill}
	}
	for name, at := range map[string]enginetest.Place{"cloud": enginetest.InCloud, "cluster": enginetest.InCluster} {
		out[name+": refuses"] = memFault{at: at, is: enginetest.Fault{Err: errors.New("503 Service Unavailable")}}
		out[name+": answer is lost"] = memFault{at: at, is: enginetest.Fault{Err: lost, Applied: true}}
		out[name+": hangs"] = memFault{at: at, is: enginetest.Fault{Err: context.DeadlineExceeded, Hang: true}}
		out[name+": hangs behind it"] = memFault{at: at, is: enginetest.Fault{Err: context.DeadlineExceeded, Hang: true, Applied: true}}
	}
	return out
}

func (m *memory) skew(d time.Duration) {
	m.engine.Now = func() time.Time { return time.Now().Add(d) }
}

// takeOver lets another run take the lock in the middle of this one, and finish.
func (m *memory) takeOver() {
	m.epoch++
	other := m.world.Engine()
	other.Run = named(fmt.Sprint("other", m.epoch), m.epoch)
	p, err := other.Plan(m.t.Context())
	if err == nil {
		_, err = applying(m.t, m.t.Context(), other, p)
	}
	if err != nil {
		m.t.Error(err)
	}
}

// lackServer plans and applies while the list of the servers lacks the first one.
func (m *memory) lackServer() {
	m.asRun()
	m.world.Machines[0].Unlisted = true
	if p, err := m.engine.Plan(m.t.Context()); err == nil { // else it has none of the servers that are known
		m.world.Machines[0].Unlisted = true // it still lacks it when the run looks again
		_, _ = applying(m.t, m.t.Context(), m.engine, p)
	}
	m.world.Machines[0].Unlisted = false
	m.asRun()
}

// heldWhile is a lock that is lost once the function returns false.
type heldWhile func() bool

// Check returns why the lock is lost.
func (h heldWhile) Check() error {
	if h() {
		return nil
	}
	return errTaken
}

// whole reports whether the fault has not fallen yet.
func (m *memory) whole() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.left >= 0
}

// memRolls are what is rolled to and fro.
var memRolls = map[string]func(m *memory, second bool){
	"settings": func(m *memory, second bool) {
		m.values["plain"] = map[bool]string{false: "a", true: "b"}[second]
		m.values["net"] = map[bool]string{false: "n1", true: "n2"}[second]
		m.values["long"] = map[bool]string{false: "l1", true: "l2"}[second]
	},
	"agent": func(m *memory, second bool) { m.values["agent"] = map[bool]string{false: "v1", true: "v2"}[second] },
	"tools": func(m *memory, second bool) { m.values["tools"] = map[bool]string{false: "t1", true: "t2"}[second] },
	// The fleet gets another name, and each of its Nodes with it.
	"moves": func(m *memory, second bool) {
		from, to := "jobs", "f0"
		if second {
			from, to = to, from
		}
		c := *m.world.Config
		c.Fleets = slices.Clone(c.Fleets)
		c.Fleets[0].Name, c.Moves = to, []fleet.Move{{From: fleet.Place{Fleet: from}, To: fleet.Place{Fleet: to}}}
		m.world.Config = &c
	},
	"scales":  wants(1), // a host is released to the pool, and claimed again
	"empties": wants(0), // all hosts are released
	// A Node leaves the cluster, and joins it again.
	"leaves": func(m *memory, second bool) {
		spec := &m.world.Config.Fleets[0].Groups[0].Spec
		m.values["agent"], spec.TartKubelet, m.idle = "v1", &fleet.TartKubelet{}, true
		if second {
			m.values["agent"], spec.TartKubelet = "", nil
		}
	},
}

// wants configures fewer hosts than two.
func wants(replicas int) func(m *memory, second bool) {
	return func(m *memory, second bool) {
		m.world.Config.Fleets[0].Groups[0].Replicas = map[bool]int{false: 2, true: replicas}[second]
	}
}

// TestFaultMatrix lets each fault hit a roll in memory at each place where it can: at
// each call to a host, of the providers, at each event of the run. The run ends and keeps
// its limits; the next plan is complete; the next apply converges, and then everything is
// as after a run without a fault. TestFaultMatrixOverSSH tries points of it on Macs.
func TestFaultMatrix(t *testing.T) {
	t.Parallel()
	count := &tally{said: make(map[string]map[string]int)}
	t.Cleanup(func() {
		count.report(t)
		whole := count.parts.Load() == int64(len(memFaults())*(len(memRolls)+1))
		if whole && !t.Failed() && (count.points.Load() < leastPoints || count.left.Load() == 0) {
			t.Errorf("%d points are fewer than %d, or no run ever left a cordon (%d)", count.points.Load(), leastPoints, count.left.Load())
		}
	})
	scenarios, names := slices.Sorted(maps.Keys(memRolls)), slices.Sorted(maps.Keys(memFaults()))
	for _, row := range rows(t, len(scenarios)+1, len(names)) {
		scenario, name := "first set-up", names[row[1]]
		if row[0] < len(scenarios) {
			scenario = scenarios[row[0]]
		}
		configure, f := memRolls[scenario], memFaults()[name]
		parallel(t, scenario+", "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				count.parts.Add(1)
				if configure == nil {
					everyPlaceOfASetUp(t, count, name, f)
				} else {
					everyPlace(t, count, name, f, configure)
				}
			})
		})
	}
}

// everyPlace rolls to and fro, with the fault at one place after the other.
func everyPlace(t *testing.T, count *tally, name string, f memFault, configure func(*memory, bool)) {
	t.Helper()
	m := newMemory(t)
	want := make(map[bool][]string)
	for i := range 5 { // the first joins, and the next of each know no version from before
		configure(m, i%2 == 1)
		m.asRun()
		converges(t, m.engine)
		want[i%2 == 1] = m.lasting()
	}
	second := true
	for n := 0; n < 1000; n++ {
		configure(m, second)
		if !m.point(count, name, n, f, want[second]) || f.once || t.Failed() {
			return
		}
		second = !second
	}
	t.Fatal("there is no end")
}

// everyPlaceOfASetUp claims servers and sets them up, with the fault at one place after
// the other, each time in its own world.
func everyPlaceOfASetUp(t *testing.T, count *tally, name string, f memFault) {
	t.Helper()
	clean := newMemory(t)
	clean.asRun()
	converges(t, clean.engine)
	want := clean.lasting()
	for n := 0; n < 1000; n++ {
		if m := newMemory(t); !m.point(count, name, n, f, want) || f.once || t.Failed() {
			return
		}
	}
	t.Fatal("there is no end")
}

// lasting is what remains when all kubelets were heard, but for Pods: they come and go.
func (m *memory) lasting() []string {
	time.Sleep(10 * time.Second) // on the virtual clock
	return slices.DeleteFunc(m.world.Lasting(), func(line string) bool { return line[:4] == "pod " })
}

// hit performs a plan in which a fault falls at the nth place, and reports whether it fell.
func (m *memory) hit(p *plan.Plan, n int, f memFault) (record *recorded, r engine.Result, fell bool, err error) {
	t := m.t
	ctx, die := context.WithCancelCause(t.Context())
	defer die(nil)
	stop, halt := context.WithCancelCause(t.Context())
	defer halt(nil)
	m.engine.Stop = stop
	record = recordOf(t, m.engine, p, func(before bool) bool {
		return m.onEvent(map[bool]enginetest.Place{true: beforeEvent, false: behindEvent}[before])
	})
	m.mu.Lock()
	m.f, m.left, m.die, m.halt = f, n, die, halt
	m.mu.Unlock()
	if f.before != nil {
		f.before(m)
	}
	r, err = applying(t, ctx, m.engine, p)
	m.mu.Lock()
	fell = m.left < 0
	m.left, m.f, m.dead = -1, memFault{}, false
	m.mu.Unlock()
	m.world.Die(nil)
	return record, r, fell, err
}

// point rolls with a fault at the nth place, and again without. It reports whether the
// fault fell.
func (m *memory) point(count *tally, name string, n int, f memFault, want []string) bool {
	t := m.t
	m.asRun()
	p := planned(t, m.engine)
	record, r, fell, err := m.hit(p, n, f)
	broke := errors.Is(err, errDied)
	if !broke {
		record.end(t, r)
	}
	if !fell {
		if err != nil || !r.Converged() {
			t.Errorf("%s after %d did not fall: %v, failures %q", name, n, err, whatFailed(r))
		}
		return false
	}
	record.check(t, n, broke)
	for _, machine := range m.world.Machines {
		if node, _ := m.world.Node(machine.NodeName()); broke && node.Cordoned {
			count.left.Add(1)
			if node.CordonRun != m.engine.Run.ID {
				t.Errorf("%s after %d: the cordon has no owner: %+v", name, n, node)
			}
		}
	}
	m.recovers(count, name, n, f, want)
	return true
}

// recovers is the next run after a fault.
func (m *memory) recovers(count *tally, name string, n int, f memFault, want []string) {
	t := m.t
	m.asRun()
	p := planned(t, m.engine)
	said := codesOfFirst(p)
	count.add(name, said)
	if f.repair != nil {
		f.repair(m)
		p = planned(t, m.engine)
	}
	if s := p.Summarise(); s.Unknown+s.Unread+s.Refused > 0 {
		t.Errorf("%s after %d: the next plan is not complete: %q", name, n, said)
	}
	r := performed(t, m.engine, p)
	if !r.Converged() {
		t.Errorf("%s after %d: the next run leaves %q, failures %q, left %v", name, n, codesOfFirst(r.After), whatFailed(r), r.Left)
	}
	if got := m.lasting(); !slices.Equal(got, want) {
		t.Errorf("%s after %d: (-want +got)\n%s", name, n, cmp.Diff(want, got))
	}
	if open, _ := m.world.Connections(); open != 0 {
		t.Errorf("%s after %d: %d connections are left", name, n, open)
	}
	for _, what := range m.world.Wrong() {
		t.Errorf("%s after %d: %s", name, n, what)
	}
}

// codesOfFirst are those of the first host of a plan, if it has any.
func codesOfFirst(p *plan.Plan) []string {
	if len(p.Hosts) == 0 {
		return nil
	}
	return codesOf(p, p.Hosts[0].Name)
}
