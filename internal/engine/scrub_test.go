package engine_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/providers/scaleway"
)

const planted = "Sentinel-0123456789"

func scrubbing(e *engine.Engine) {
	var s secret.Scrubber
	s.Learn(planted)
	e.Scrub = s.Scrub
}

// TestObservationIsScrubbed plants a value where the providers and a host tell
// of it: neither the snapshot nor an event holds it.
func TestObservationIsScrubbed(t *testing.T) {
	t.Parallel()
	w, dir := world(t, 4)
	e := run(t, w, config("production", 2)) // all that the pool has of the type
	scrubbing(e)
	p := planned(t, e)
	s := p.Hosts[0].Server
	edit(t, filepath.Join(dir, "scaleway/servers", s.ID+".json"), `"`+s.Name+`"`, `"acme-pool-`+planted+`"`)
	claim := filepath.Join(root(t, w, s.ID), "etc/macfleet/claim.json")
	must(t, os.MkdirAll(filepath.Dir(claim), 0o755))
	// Escaped, so that only what the JSON means can be found.
	text := fmt.Sprintf(`{"configuration":"globex","name":"\u0053%s","server_id":"x"}`, planted[1:])
	must(t, os.WriteFile(claim, []byte(text), 0o644))
	var events strings.Builder
	e.Emit = func(ev engine.Event) { fmt.Fprintf(&events, "%+v\n", ev) }
	snap, _, err := e.Observe(t.Context())
	must(t, err)
	if c, ok := snap.Hosts[s.ID].Claim.Get(); !ok || c.Name != secret.Scrubbed {
		t.Errorf("the claim is %+v, %t", c, ok)
	}
	content, err := wire.NewRecord(e.Config.Owner, snap).Encode()
	must(t, err)
	if strings.Contains(string(content)+events.String(), planted) || !strings.Contains(string(content), "acme-pool-<secret>") {
		t.Errorf("the record:\n%s\nthe events:\n%s", content, events.String())
	}
}

// TestErrorsAreScrubbed lets a provider fail in words that hold a secret: the
// cause is still to be found, and its text is not.
func TestErrorsAreScrubbed(t *testing.T) {
	t.Parallel()
	inMemory(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		e := w.engine
		scrubbing(e)
		raced := &scaleway.RacedError{ServerID: "id-1", Wanted: "acme-1", Found: planted}
		said := func(err error, caused bool) {
			t.Helper()
			var cause *scaleway.RacedError
			if err == nil || strings.Contains(err.Error(), planted) || !strings.Contains(err.Error(), secret.Scrubbed) || errors.As(err, &cause) != caused {
				t.Errorf("the error is: %v", err)
			}
		}
		p := planned(t, e)
		fails := func(caused bool) {
			t.Helper()
			r := performed(t, e, p)
			if len(r.Failures) != 1 {
				t.Fatalf("failures %+v", r.Failures)
			}
			said(r.Failures[0].Err, caused)
		}
		w.OnCall = faultAt("rename", enginetest.Fault{Err: raced})
		fails(true)
		w.OnCall = faultAt("list", enginetest.Fault{Err: raced})
		_, _, err := e.Observe(t.Context())
		said(err, true)
		w.OnCall = nil
		w.Machines[0].Server.Name = planted // which moved since the plan
		fails(false)
	})
}
