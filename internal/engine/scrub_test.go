package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
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
	if err := os.MkdirAll(filepath.Dir(claim), 0o755); err != nil {
		t.Fatal(err)
	}
	// Escaped, so that only what the JSON means can be found.
	text := fmt.Sprintf(`{"configuration":"globex","name":"\u0053%s","server_id":"x"}`, planted[1:])
	if err := os.WriteFile(claim, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var events strings.Builder
	e.Emit = func(ev engine.Event) { fmt.Fprintf(&events, "%+v\n", ev) }
	snap, _, err := e.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := snap.Hosts[s.ID].Claim.Get(); !ok || c.Name != secret.Scrubbed {
		t.Errorf("the claim is %+v, %t", c, ok)
	}
	content, err := wire.NewRecord(e.Config.Owner, snap).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(content)+events.String(), planted) || !strings.Contains(string(content), "acme-pool-<secret>") {
		t.Errorf("the record:\n%s\nthe events:\n%s", content, events.String())
	}
}

// TestErrorsAreScrubbed lets a provider fail in words that hold a secret: the
// cause is still to be found, and its text is not.
func TestErrorsAreScrubbed(t *testing.T) {
	t.Parallel()
	w, dir := world(t, 4)
	e := run(t, w, config("production", 1))
	scrubbing(e)
	said := func(err error) {
		t.Helper()
		if err == nil || strings.Contains(err.Error(), planted) || !strings.Contains(err.Error(), secret.Scrubbed) {
			t.Errorf("the error is: %v", err)
		}
	}
	failed := func(p *plan.Plan) error {
		t.Helper()
		r := performed(t, e, p)
		if len(r.Failures) != 1 {
			t.Fatalf("failures %+v", r.Failures)
		}
		return r.Failures[0].Err
	}
	p, good := planned(t, e), e.Servers
	raced := &scaleway.RacedError{ServerID: "id-1", Wanted: "acme-1", Found: planted}
	var cause *scaleway.RacedError

	e.Servers = failing{Servers: good, rename: raced}
	err := failed(p)
	said(err)
	if !errors.As(err, &cause) {
		t.Errorf("the cause of %v is lost", err)
	}

	e.Servers = failing{Servers: good, list: raced}
	_, _, err = e.Observe(t.Context())
	said(err)
	if !errors.As(err, &cause) {
		t.Errorf("the cause of %v is lost", err)
	}

	// A name that moved since the plan is reported without what it holds.
	e.Servers = good
	s := p.Hosts[0].Server
	edit(t, filepath.Join(dir, "scaleway/servers", s.ID+".json"), `"`+s.Name+`"`, `"`+planted+`"`)
	said(failed(p))
}

// failing cannot list, or cannot rename.
type failing struct {
	engine.Servers
	list, rename error
}

func (f failing) List(ctx context.Context) ([]inventory.Server, error) {
	if f.list != nil {
		return nil, f.list
	}
	return f.Servers.List(ctx)
}

func (f failing) Rename(context.Context, string, string, string, string) error { return f.rename }
