package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

// Codes of artifacts.
var (
	codeArtifactUnreadable = plan.NewCode("artifact-unreadable", plan.Warning, "an artifact's file cannot be read on this machine",
		"make the file readable for macfleet's user, and run macfleet plan again")
	codeArtifactChanged = plan.NewCode("artifact-changed", plan.Warning, "checksum mismatch: an artifact's file does not have the locked SHA-256",
		"if the change is intended, run macfleet artifacts lock --update; otherwise restore the locked file")
)

// Artifacts provides the files that are delivered to hosts.
type Artifacts interface {
	// Open returns a verified artifact and its size in bytes.
	Open(context.Context, fleet.Artifact) (io.ReadCloser, int64, error)
	// Unchanged returns an error if the artifact's local file does not have the locked digest.
	// It downloads nothing.
	Unchanged(context.Context, fleet.Artifact) error
}

// refuseChanged refuses actions that would deliver a file that changed since it was locked.
func (e *Engine) refuseChanged(ctx context.Context, p *plan.Plan) {
	if e.Artifacts == nil {
		return
	}
	said := make(map[string]*plan.Trouble) // by digest; nil: unchanged
	for i := range p.Actions {
		a := &p.Actions[i]
		for _, of := range a.Needs().Files {
			t, known := said[of.SHA256]
			if !known {
				if err := e.Artifacts.Unchanged(ctx, of); err != nil {
					t = changed(err)
				}
				said[of.SHA256] = t
			}
			a.Refusal = cmp.Or(a.Refusal, t)
		}
	}
	p.RefuseTokens(e.Steps)
}

// deliver uploads an artifact to the host before the change that installs it.
func (w *worker) deliver(ctx context.Context, d plan.Delivery) error {
	return w.conn.Deliver(ctx, d, func() (io.ReadCloser, int64, error) {
		if w.engine.Artifacts == nil {
			return nil, 0, fmt.Errorf("no source for %s", d.Artifact)
		}
		return w.engine.Artifacts.Open(ctx, d.Artifact)
	})
}

// changed splits a file's error into its text and its remedy.
func changed(err error) *plan.Trouble {
	t := codeArtifactUnreadable.Trouble(err.Error())
	var advising interface{ Remedy() string }
	if errors.As(err, &advising) {
		t.Code, t.Remedy = codeArtifactChanged, advising.Remedy()
		t.Text = strings.TrimSuffix(t.Text, "; "+t.Remedy)
	}
	return t
}

// everySecond is the interval of an upload's progress events.
const everySecond = time.Second

// Upload emits an event of an upload: its start, its end, or its progress, limited to one per
// interval except for the last.
func (e *Engine) Upload(ev Event) {
	if ev.Type == Sending {
		now := e.Now()
		if last, told := e.sent.Load(ev.Host); told && now.Sub(last.(time.Time)) < everySecond && ev.Bytes != ev.Size {
			return
		}
		e.sent.Store(ev.Host, now)
	}
	e.emit(ev)
}
