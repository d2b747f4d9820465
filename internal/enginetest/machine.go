package enginetest

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
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

// Mark writes a marker, as another run does; empty: it removes it.
func (m *Machine) Mark(text string) { m.marker = text }

// Key returns the host key that the machine shows.
func (m *Machine) Key() string { return m.key }

// Claimed reports whether a claim is on the machine.
func (m *Machine) Claimed() bool { return m.claim != nil }
