// Package overssh implements the engine's hosts over SSH with package hosts.
package overssh

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// Hosts connects over a client. Closing it closes the client.
type Hosts struct{ *hosts.Client }

// New returns hosts with their own client.
func New(o hosts.Options) Hosts { return Hosts{hosts.New(o)} }

// Connect opens a connection. The error is a *hosts.Error.
func (h Hosts) Connect(ctx context.Context, t engine.Target) (engine.Host, error) {
	conn, err := h.Client.Connect(ctx, hosts.Target{Server: t.Server, Name: t.Name, Trust: t.Trust, Run: t.Run})
	if err != nil {
		return nil, err
	}
	return host{conn}, nil
}

// Restarted forgets that a host refused the key.
func (h Hosts) Restarted(ctx context.Context, t engine.Target) {
	h.Client.Restarted(ctx, hosts.Target{Server: t.Server, Name: t.Name})
}

// host is a connection; Observe and Probe are hosts.Conn's own.
type host struct{ *hosts.Conn }

// Deliver uploads an artifact to the host.
func (h host) Deliver(ctx context.Context, d plan.Delivery, source engine.Source) error {
	_, err := h.Conn.Deliver(ctx, d, source)
	return err
}

// leaving limits the time to tell a host that the run is done with it.
const leaving = 10 * time.Second

// Close leaves the host. If that fails, the host lets the run expire.
func (h host) Close(ctx context.Context) {
	if ctx.Err() == nil {
		bounded, cancel := context.WithTimeout(ctx, leaving)
		_ = h.Leave(bounded)
		cancel()
	}
	h.Conn.Close()
}

// Do does one task.
func (h host) Do(ctx context.Context, task engine.Task) (a plan.Answer, err error) {
	switch t := task.(type) {
	case engine.RunChange:
		return h.change(ctx, t)
	case engine.TakeClaim:
		*t.Claim, err = h.Claim(ctx, *t.Claim)
	case engine.DropClaim:
		err = h.Conn.DropClaim(ctx, t.Claim, t.Root)
	case engine.WriteMarker:
		err = h.Conn.WriteMarker(ctx, t.Marker, t.Proven)
	case engine.TryPassword:
		if t.Seal == "" {
			t.Seal, err = t.Password.Seal()
		}
		if err == nil {
			err = h.CheckPassword(ctx, t.Password, t.Seal, t.Remembered, t.At)
		}
	case engine.AuthorizeKey:
		err = h.Conn.AuthorizeKey(ctx, t.Comment)
	case engine.RetireKey:
		err = h.Conn.RetireKey(ctx)
	case engine.ReadBoot:
		*t.Boot, err = h.Boot(ctx)
	case engine.RestartHost:
		err = h.Restart(ctx)
	case engine.PruneArtifacts:
		err = h.Conn.PruneArtifacts(ctx, t.Removed)
	default:
		err = fmt.Errorf("unknown task %T", task)
	}
	if failed := (*hosts.ScriptError)(nil); errors.As(err, &failed) {
		a = failed.Answer
	}
	return a, err
}

// change runs one change: detached, with an undo, or plain.
func (h host) change(ctx context.Context, t engine.RunChange) (plan.Answer, error) {
	switch c := t.Change; {
	case c.Guard != nil:
		return plan.Answer{}, h.RunGuarded(ctx, t.Step, c)
	case c.Detached || c.Command.As == plan.Gui:
		return h.RunDetached(ctx, t.Step, c)
	default:
		return h.Run(ctx, c.Command, t.Input)
	}
}

// Sent passes an upload's progress to the engine, for hosts.Options.Progress.
func Sent(e *engine.Engine, p hosts.Progress) {
	ev := engine.Event{Type: engine.Sending, Host: p.Host, Artifact: p.Artifact.Name, Bytes: p.Done, Size: p.Size}
	switch p.Edge {
	case hosts.Begins:
		ev.Type = engine.UploadStarts
	case hosts.Ends:
		ev.Type = engine.UploadEnds
	}
	e.Upload(ev)
}
