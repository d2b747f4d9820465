package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

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
