package engine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

// mark writes the host's marker with the digests of all steps in sync, and records in its pin
// that the claim is complete.
func (w *worker) mark(ctx context.Context) error {
	if !w.claimed {
		if _, err := w.claimHost(ctx); err != nil {
			return err
		}
	}
	if err := w.writeMarker(ctx, w.currentMarker(), ""); err != nil {
		return err
	}
	return w.engine.pin(*w.engine.PinOf(w.host))
}

// writeMarker writes the host's marker; verified names a step that is no longer pending. If the marker
// changed in the meantime, its hold is kept, and the run stops on this host.
func (w *worker) writeMarker(ctx context.Context, m plan.Marker, verified plan.StepID) error {
	if err := w.engine.checkLock(); err != nil {
		return err
	}
	_, err := w.conn.Do(ctx, WriteMarker{m, verified})
	if errors.Is(err, plan.ErrMarkerMoved) {
		if t := w.reread(ctx); t != nil {
			return t
		}
		there, _ := w.host.Seen.Marker.Get()
		m.Hold, m.Repairs, w.held = w.standing(there.Hold), there.Repairs, w.heldSince()
		_, err = w.conn.Do(ctx, WriteMarker{m, verified})
	}
	if err == nil {
		w.marker = &m
	}
	return err
}

// unmarked reports whether the host has no marker yet.
func (w *worker) unmarked() bool { return w.marker == nil && w.host.Seen.Marker.IsAbsent() }

// markVerified records a step in sync in the marker. A host without a marker gets one with all steps
// when its claim completes.
func (w *worker) markVerified(ctx context.Context, step plan.Step, f plan.Finding) error {
	id, wanted := step.ID(), step.Wanted()
	if w.unmarked() {
		verified := make(map[plan.StepID]plan.Digest) // copy: the plan's map must not change
		maps.Copy(verified, w.host.Verified)
		verified[id] = plan.DigestOf(wanted, f.Facts)
		w.host.Verified = verified
		return nil
	}
	m := w.currentMarker()
	if _, is := step.(plan.AgentKeeper); is && w.fence == nil {
		m.Fence = nil // an earlier run's, which the step has restored
	}
	if wanted == "" {
		m = m.Without(id)
	} else {
		m = m.With(id, w.dated(plan.DigestOf(wanted, f.Facts)))
	}
	return w.writeMarker(ctx, m, id)
}

// dated sets a digest's time.
func (w *worker) dated(d plan.Digest) plan.Digest {
	d.At = w.engine.Now().UTC().Truncate(time.Second)
	return d
}

// currentMarker returns the host's marker updated with the host's place and with the steps
// that this run found in sync.
func (w *worker) currentMarker() plan.Marker {
	if w.marker != nil {
		return *w.marker
	}
	c := w.engine.Config
	serial, _ := w.host.Seen.Serial.Get()
	m := plan.Marker{Configuration: c.Name, Environment: c.Environment, Name: w.host.Name, Fleet: w.host.Fleet,
		Group: w.host.Group, ServerID: w.host.Server.ID, Serial: serial, Version: fleet.Version, Run: w.engine.Run.Marked(),
		Steps: make(map[plan.StepID]plan.Digest)}
	old, marked := w.host.Seen.Marker.Get()
	m.ClusterUID, m.Cluster = cmp.Or(old.ClusterUID, c.ClusterUID), old.Cluster
	if in := w.host.Cluster; in != nil && (old.ClusterUID != in.UID || old.Cluster == "") {
		m.ClusterUID, m.Cluster = in.UID, in.Name() // the name is kept while the cluster is the same
	}
	if marked {
		for id, d := range old.Steps {
			m = m.With(id, d)
		}
		m.Hold, m.Repairs = w.standing(old.Hold), old.Repairs
		if _, _, agent := plan.AgentStep(w.engine.Steps(w.host.Spec)); agent {
			m.Fence = old.Fence
		}
	}
	for id, d := range w.host.Verified {
		m = m.With(id, w.dated(d))
	}
	return m
}
