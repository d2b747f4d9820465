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

// The codes that are raised here.
var (
	codeArtifactUnreadable = plan.NewCode("artifact-unreadable", plan.Warning, "an artifact's file cannot be read on this machine",
		"make the file readable for macfleet's user, and run macfleet plan again")
	codeArtifactChanged = plan.NewCode("artifact-changed", plan.Warning, "an artifact's file has another SHA-256 than the configuration says",
		"if it was changed on purpose, run macfleet artifacts lock --update; else bring back the file that was locked")
)

// Artifacts has the files that hosts get.
type Artifacts interface {
	// Open returns an artifact, whole and checked, and its size in bytes.
	Open(context.Context, fleet.Artifact) (io.ReadCloser, int64, error)
	// Unchanged returns why an artifact that is sent from here cannot be: its file has
	// other bytes than the configuration says. It downloads nothing.
	Unchanged(context.Context, fleet.Artifact) error
}

// refuseChanged refuses what would send a file that has changed since it was locked,
// before anything else is done on its host.
func (e *Engine) refuseChanged(ctx context.Context, p *plan.Plan) {
	if e.Artifacts == nil {
		return
	}
	said := make(map[string]*plan.Trouble) // by digest; nil: it may be sent
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

// deliver brings an artifact to the host before the change that installs it.
func (w *worker) deliver(ctx context.Context, d plan.Delivery) error {
	return w.conn.Deliver(ctx, d, func() (io.ReadCloser, int64, error) {
		if w.engine.Artifacts == nil {
			return nil, 0, fmt.Errorf("nothing here has %s", d.Artifact)
		}
		return w.engine.Artifacts.Open(ctx, d.Artifact)
	})
}

// changed takes apart what an error says of a file, and what it says is to be done.
func changed(err error) *plan.Trouble {
	t := codeArtifactUnreadable.Trouble(err.Error())
	var advising interface{ Remedy() string }
	if errors.As(err, &advising) {
		t.Code, t.Remedy = codeArtifactChanged, advising.Remedy()
		t.Text = strings.TrimSuffix(t.Text, "; "+t.Remedy)
	}
	return t
}

// everySecond is how often an upload tells how far it is.
const everySecond = time.Second

// Upload tells of an upload to a host: that it begins, ends, or, now and then and when it is
// complete, how far it is.
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
