package enginetest

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// Machine is a Mac. Its exported fields may be changed within World.Change.
type Machine struct {
	Server   inventory.Server
	Serial   string            // that it reports
	State    map[string]string // values of its steps, by step
	Root     bool              // passwordless sudo works
	Away     bool              // no connection succeeds
	Unlisted bool              // the next list of the servers lacks it
	FullDisk bool              // every write fails
	Slow     time.Duration     // added to the latency of each call
	Blurred  time.Duration     // how much later than it did its kubelet seems to have started
	Late     time.Duration     // added to the time until its kubelet's first heartbeat
	Refuses  string            // a value that makes its kubelet exit at once
	Silent   string            // a value with which its kubelet runs, but never reports to the cluster
	Agent    Agent             // its CI agent
	Refusals []plan.Refusal    // passwords that were tried on it
	VMs      []string          // virtual machines that run without a Pod

	granted   string // which key of State gave root
	pending   map[plan.StepID]bool
	artifacts map[string]bool // by digest
	marker    string
	claim     *plan.Claim
	entered   plan.Run
	key       string
	boots     int
	installs  int
	up        time.Time // when it has booted
	node      string    // the name of its kubelet's Node; empty: no kubelet was started yet
	process   string    // the value its kubelet was started from; empty: none runs
	token     string    // of the kubelet
	started   time.Time // when the kubelet was started
	nodeGone  time.Time // when its Node was last deleted
}

// NodeName is the name of the machine's Node.
func (m *Machine) NodeName() string {
	if m.node == "" {
		return m.Server.Name
	}
	return m.node
}

// Reboot restarts the machine: all connections break, and it is back after a minute.
func (m *Machine) Reboot() {
	m.boots++
	m.up = time.Now().Add(time.Minute)
	m.Agent.Jobs, m.Agent.started = nil, m.up
	if m.process != "" {
		m.process, m.started = m.State[agentOf(m)], m.up
	}
}

// agentOf is the key of State that holds the kubelet's value.
func agentOf(m *Machine) string {
	for key := range m.State {
		if strings.HasPrefix(key, "agent") {
			return key
		}
	}
	return ""
}

func (m *Machine) lasting() []string {
	var out []string
	for key, v := range m.State {
		out = append(out, fmt.Sprintf("%s has %s=%s", m.Server.Name, key, v))
	}
	for id := range m.pending {
		out = append(out, fmt.Sprintf("%s pending %s", m.Server.Name, id))
	}
	if mark, err := plan.ParseMarker(m.marker); err == nil {
		for id, d := range mark.Steps {
			if m.State[string(id)] == "" {
				continue // a removal whose answer was lost leaves its record behind
			}
			out = append(out, fmt.Sprintf("%s verified %s %s %s", m.Server.Name, id, d.Wanted, d.Facts))
		}
		out = append(out, fmt.Sprintf("%s is marked as %s of %s hold %v fence %t", m.Server.Name, mark.Name, mark.Owner(), mark.Hold, mark.Fence != nil))
	}
	return append(out, fmt.Sprintf("%s runs %q root %t artifacts %d claimed %t agent %t %t", m.Server.Name, m.process, m.Root, len(m.artifacts), m.claim != nil, m.Agent.ID != "", m.Agent.Runs))
}

// Error is why a host could not be contacted, or refused a request.
type Error struct {
	Host, Code, Text string
	Err              error // the cause; nil: none
}

// Error names host and cause.
func (e *Error) Error() string { return e.Host + ": " + e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Trouble returns the error as the plan carries it.
func (e *Error) Trouble() *plan.Trouble {
	return &plan.Trouble{Code: code(e.Code), Text: e.Text, Remedy: "run the command again"}
}

func code(name string) (c plan.Code) {
	if err := c.UnmarshalText([]byte(name)); err != nil {
		panic(err)
	}
	return c
}

// ErrLost is why a host or a provider gives no answer.
var ErrLost = errors.New("the connection broke")

func (m *Machine) lost(err error) error {
	return &Error{m.Server.Name, "connection-lost", err.Error(), err}
}

// fingerprint is that of the machine's key, which is not a real SSH key.
func (m *Machine) fingerprint() string { return plan.Fingerprint(m.key) }

// keyOf is a host key, another for each text.
func keyOf(text string) string {
	return "ssh-ed25519 " + base64.StdEncoding.EncodeToString([]byte(text))
}

// lines connects to machines.
type lines struct{ world *World }

// Connect opens a connection.
func (l lines) Connect(ctx context.Context, t engine.Target) (engine.Host, error) {
	w := l.world
	w.mu.Lock()
	m := w.Member(t.Server.ID)
	w.mu.Unlock()
	c := &conn{world: w, machine: m, target: t, boots: -1}
	err := c.call(ctx, "connect", func(Fault) error {
		switch pin := t.Trust.Pin; {
		case pin != nil && pin.Key != m.key, t.Trust.Disagrees(m.fingerprint()) != "":
			return &Error{m.Server.Name, "wrong-host-key", "it showed a different key", nil}
		case t.Trust.Unknown():
			return &Error{m.Server.Name, "host-key-unknown", "the host is known but has no pinned key", nil}
		}
		c.boots = m.boots
		w.open++
		w.most = max(w.most, w.open)
		return nil
	})
	if err != nil {
		if c.boots >= 0 { // only the answer was lost
			c.end()
		}
		return nil, err
	}
	return c, nil
}

// conn is a connection to a machine.
type conn struct {
	world   *World
	machine *Machine
	target  engine.Target
	boots   int    // of the machine when it was opened; -1: not opened yet
	broken  bool   // nothing passes any more
	ended   bool   // it is counted as closed
	marker  string // as last read or written
}

// call applies the latency, the faults and the effect of a call.
func (c *conn) call(ctx context.Context, what string, effect func(Fault) error) error {
	w, m := c.world, c.machine
	w.mu.Lock()
	name, wait := m.Server.Name, Latency+m.Slow // another process may rename it meanwhile
	w.mu.Unlock()
	f := w.fault(Call{OnHost, what, name})
	if f.Hang {
		wait += Silence
	}
	late := pass(ctx, wait)
	if f.After != nil {
		defer f.After()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.dead != nil:
		return w.dead
	case late != nil:
		c.broken = true
		return m.lost(late)
	case m.Away, time.Now().Before(m.up):
		c.broken = true
		return &Error{m.Server.Name, "unreachable", "no route to host", nil}
	case c.broken, c.boots >= 0 && c.boots != m.boots:
		return m.lost(ErrLost)
	}
	if err := c.fence(); err != nil {
		return err
	}
	if f.Err != nil && !f.Applied && !f.Half {
		c.broken = true
		return m.lost(f.Err)
	}
	err := effect(f)
	if f.Err != nil {
		c.broken = true
		return m.lost(f.Err)
	}
	return err
}

// fence refuses an older run, and records the run that enters.
func (c *conn) fence() error {
	run := c.target.Run
	if run == nil || c.boots < 0 {
		return nil
	}
	if c.machine.entered.Epoch > run.Epoch {
		return &Error{c.machine.Server.Name, "newer-run", "run " + c.machine.entered.ID + " entered", nil}
	}
	c.machine.entered = *run
	return nil
}

// Observe answers the probes, those of the identity first.
func (c *conn) Observe(ctx context.Context, probes []plan.Probe) plan.HostSeen {
	m := c.machine
	seen := plan.HostSeen{Key: m.key, Fingerprint: m.fingerprint(), Pinned: c.target.Trust.Pin != nil, Path: "memory"}
	err := c.call(ctx, "observe", func(f Fault) error {
		seen.Root, seen.Serial, seen.OSVersion = m.Root, inventory.Present(m.Serial), inventory.Present("26.3")
		seen.Marker, seen.Claim = inventory.Absent[plan.Marker](), inventory.Absent[plan.Claim]()
		if c.marker = m.marker; m.marker != "" {
			mark, err := plan.ParseMarker(m.marker)
			if seen.Marker = inventory.Present(mark); err != nil || f.Garbled {
				seen.Marker = inventory.Unread[plan.Marker]("cannot be parsed")
			}
		}
		if m.claim != nil {
			seen.Claim = inventory.Present(*m.claim)
		}
		for id := range m.pending {
			seen.Pending = append(seen.Pending, id)
		}
		if m.entered.ID != "" {
			seen.Entered = &plan.Entered{ID: m.entered.ID, Who: m.entered.Who, Epoch: m.entered.Epoch}
		}
		seen.Refusals = slices.Clone(m.Refusals)
		seen.Facts = c.answers(probes, f)
		return nil
	})
	if err != nil {
		seen.Trouble = &plan.Trouble{Code: code("connection-lost"), Text: err.Error()}
		if known := (*Error)(nil); errors.As(err, &known) {
			seen.Trouble = known.Trouble()
		}
	}
	return seen
}

// Probe answers probes.
func (c *conn) Probe(ctx context.Context, probes []plan.Probe) (facts plan.Facts, root bool, err error) {
	err = c.call(ctx, "probe", func(f Fault) error {
		facts, root = c.answers(probes, f), c.machine.Root
		return nil
	})
	return facts, root, err
}

func (c *conn) answers(probes []plan.Probe, f Fault) plan.Facts {
	out := make(plan.Facts, len(probes))
	for _, p := range probes {
		a := plan.Answer{Stdout: c.answer(p)}
		if f.Garbled {
			a.Stdout = "\x00rubbish"
		}
		if out[p.ID] = inventory.Present(a); p.As == plan.Root && !c.machine.Root {
			out[p.ID] = inventory.Unread[plan.Answer](plan.NeedsRoot)
		}
	}
	return out
}

// dead is the answer of a machine whose kubelet exits at once.
const dead = "dead"

// answer is "VALUE PROCESS STARTED NODE VM VM …".
func (c *conn) answer(p plan.Probe) string {
	m := c.machine
	switch {
	case p.Script == AgentState:
		return m.agentState()
	case len(p.Args) == 0: // of its clock
		return fmt.Sprint(time.Now().Unix())
	}
	process := orNone(m.process)
	if m.process == m.Refuses && m.Refuses != "" {
		process = dead
	}
	words := []string{orNone(m.State[p.Args[0]]), process, m.started.Add(m.Blurred).UTC().Format(time.RFC3339Nano), m.NodeName()}
	for _, pod := range c.world.podsOn(m.NodeName()) {
		if pod.Phase != "Pending" { // its virtual machine was not started yet
			words = append(words, pod.VM())
		}
	}
	words = append(words, m.VMs...)
	return strings.Join(words, " ")
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// Do runs a task.
func (c *conn) Do(ctx context.Context, task engine.Task) (a plan.Answer, err error) {
	m := c.machine
	what := strings.TrimPrefix(fmt.Sprintf("%T", task), "engine.")
	err = c.call(ctx, what, func(f Fault) error {
		if m.FullDisk {
			a.Exit = 1
			return fmt.Errorf("%s on %s: no space left on device", what, m.Server.Name)
		}
		switch t := task.(type) {
		case engine.RunChange:
			a.Exit = c.change(t, f)
			if a.Exit != 0 {
				return fmt.Errorf("%s on %s failed with exit code %d", t.Change.Command.Name, m.Server.Name, a.Exit)
			}
		case engine.TakeClaim:
			if m.claim == nil {
				m.claim = &plan.Claim{}
				*m.claim = *t.Claim
			}
			*t.Claim = *m.claim
		case engine.DropClaim:
			if m.claim != nil && *m.claim == t.Claim && m.marker == "" {
				m.claim = nil
				if t.Root != "" {
					m.Root = false
					delete(m.State, m.granted)
				}
			}
		case engine.WriteMarker:
			return c.mark(t)
		case engine.TryPassword:
			if t.Password.Reveal() != "password of "+m.Server.ID {
				c.world.wrong = append(c.world.wrong, "a wrong password was tried on "+m.Server.Name)
				return plan.ErrPasswordRefused
			}
		case engine.ReadBoot:
			*t.Boot = fmt.Sprint("boot ", m.boots)
		case engine.RestartHost:
			c.world.interrupts(m, "restarted", false)
			m.Reboot()
		case engine.PruneArtifacts:
			if t.Removed { // what a run leaves when it is killed just before this is pruned a day later
				break
			}
			for sum := range m.artifacts {
				if !slices.Contains([]string{m.State["agent"], m.State["tools"], m.State["was agent"], m.State["was tools"]}, sum) {
					delete(m.artifacts, sum)
				}
			}
		}
		return nil
	})
	if _, restarts := task.(engine.RestartHost); restarts && c.broken && c.world.dead == nil { // the connection ends with it
		err = nil
	}
	return a, err
}

func (c *conn) mark(t engine.WriteMarker) error {
	m := c.machine
	if m.marker != c.marker {
		return plan.ErrMarkerMoved
	}
	text, err := t.Marker.Encode()
	if err != nil {
		return err
	}
	m.marker, c.marker = text, text
	delete(m.pending, t.Proven)
	return nil
}

// change does what a step's script does: it notes that it started, writes the value, and starts the
// process that runs from it.
func (c *conn) change(t engine.RunChange, f Fault) (exit int) {
	if exit, known := c.agentChange(t, f); known {
		return exit
	}
	w, m, args := c.world, c.machine, t.Change.Command.Args
	if t.Change.Disruption >= plan.Drain {
		w.interrupts(m, "changed", args[2] == "force")
	}
	key, value, force := args[0], args[1], args[2] == "force"
	renamed := args[4] == "node" && args[5] != m.NodeName()
	if working := w.podsOn(m.NodeName()); (t.Change.Disruption >= plan.Drain || renamed) && !force && len(working) > 0 {
		w.wrong = append(w.wrong, fmt.Sprintf("%s was changed under %s on %s", key, working[0].Name, m.Server.Name))
	}
	if t.Change.Disruption >= plan.Drain && !force && len(m.VMs) > 0 {
		w.wrong = append(w.wrong, fmt.Sprintf("%s was changed under the machine %s on %s", key, m.VMs[0], m.Server.Name))
	}
	switch {
	case args[3] == "breaks":
		return 1
	case t.Change.Command.As == plan.Root && !m.Root && t.Change.Input != plan.LoginPassword:
		return 126
	case t.Change.Delivery != nil && !m.artifacts[value]:
		w.wrong = append(w.wrong, fmt.Sprintf("%s was installed from nothing on %s", key, m.Server.Name))
	}
	if t.Change.Delivery != nil {
		m.pending[t.Step] = true // a process runs from what is replaced
	}
	if f.Half && t.Change.Guard != nil {
		return 0 // the guard restored it: the connection was not confirmed
	}
	if old := m.State[key]; value == "" {
		delete(m.State, key)
		delete(m.State, "was "+key)
	} else if m.State[key] = value; old != value && old != "" {
		m.State["was "+key] = old
	}
	if f.Half {
		return 0
	}
	if t.Change.GrantsRoot {
		m.Root, m.granted = true, key
	}
	if args[4] == "node" {
		if t.Change.Input == plan.Kubeconfig {
			m.token = t.Input.Reveal()
		}
		m.process, m.started, m.node = value, time.Now(), args[5]
	}
	if t.Change.Disruption >= plan.Reboot {
		m.Reboot()
		m.up = time.Time{} // it is rebooting
		c.boots = m.boots
	}
	return 0
}

// Deliver uploads an artifact.
func (c *conn) Deliver(ctx context.Context, d plan.Delivery, source engine.Source) error {
	m := c.machine
	return c.call(ctx, "deliver", func(f Fault) error {
		switch {
		case m.artifacts[d.Artifact.SHA256]:
			return nil
		case m.FullDisk:
			return &Error{m.Server.Name, "disk-full", "no space left on device", nil}
		case f.Half:
			return nil
		}
		r, _, err := source()
		if err != nil {
			return err
		}
		m.artifacts[d.Artifact.SHA256] = true
		return r.Close()
	})
}

// Close ends the connection.
func (c *conn) Close(ctx context.Context) {
	if c.target.Run != nil && ctx.Err() == nil {
		_ = c.call(ctx, "leave", func(Fault) error { return nil })
	}
	c.end()
}

func (c *conn) end() {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	if !c.ended {
		c.ended = true
		c.world.open--
	}
}

// shelf holds every artifact.
type shelf struct{}

// Open returns an artifact.
func (shelf) Open(_ context.Context, a fleet.Artifact) (io.ReadCloser, int64, error) {
	return io.NopCloser(strings.NewReader(a.SHA256)), int64(len(a.SHA256)), nil
}

// Unchanged reports that an artifact's bytes are the expected ones.
func (shelf) Unchanged(context.Context, fleet.Artifact) error { return nil }

// Claim puts a claim on the machine, as another run does; nil removes it.
func (m *Machine) Claim(c *plan.Claim) { m.claim = c }

// Claimed reports whether a claim is on the machine.
func (m *Machine) Claimed() bool { return m.claim != nil }
