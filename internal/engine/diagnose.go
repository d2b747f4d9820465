package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// Diagnoser is what Servers may also be: a provider that can test a server's network.
type Diagnoser interface {
	// Diagnose asks for the provider's connectivity diagnostic of a server and waits for it. It changes nothing.
	Diagnose(ctx context.Context, zone, id string) (inventory.Diagnosis, error)
}

// The limits of diagnostics. When a whole zone does not answer, a few of them are enough, and a plan does not wait long
// for what only explains a trouble.
const (
	mostDiagnosed  = 8 // hosts in one comparison, all at once
	diagnoseWithin = 20 * time.Second
	diagnoseAgain  = time.Minute // a result counts so long
)

// diagnosis is a diagnostic of this process, and when it was made.
type diagnosis struct {
	found  *inventory.Diagnosis
	unread string
	at     time.Time
}

// diagnoses are those of a run, by server id.
type diagnoses struct {
	mu  sync.Mutex
	all map[string]diagnosis
}

// diagnose adds the provider's diagnostics of hosts that do not answer to the snapshot, and returns those hosts.
// A diagnostic that cannot be read is a part of the plan.
func (e *Engine) diagnose(ctx context.Context, snap *plan.Snapshot, p *plan.Plan) map[string]bool {
	provider, has := e.Servers.(Diagnoser)
	servers := p.Undiagnosed()
	if !has || len(servers) == 0 {
		return nil
	}
	slices.SortFunc(servers, func(a, b inventory.Server) int { return cmp.Compare(a.Name, b.Name) })
	within, cancel := context.WithTimeoutCause(ctx, diagnoseWithin, fmt.Errorf("no result within %s", diagnoseWithin))
	defer cancel()
	some := servers[:min(len(servers), mostDiagnosed)]
	results := each(some, mostDiagnosed, func(s inventory.Server) diagnosis { return e.diagnosisOf(within, provider, s) })
	changed := make(map[string]bool, len(servers))
	for i, s := range servers {
		result := diagnosis{unread: fmt.Sprintf("it was requested for %d hosts only", mostDiagnosed)}
		if i < len(results) {
			result = results[i]
		}
		seen := snap.Hosts[s.ID]
		seen.Diagnosis, seen.DiagnosisUnread = result.found, result.unread
		snap.Hosts[s.ID] = wire.Clean(e.Scrub, seen)
		changed[s.ID] = true
	}
	return changed
}

// diagnosisOf returns a server's diagnostic: that of the last minute, or a new one.
func (e *Engine) diagnosisOf(ctx context.Context, provider Diagnoser, s inventory.Server) diagnosis {
	e.diagnosed.mu.Lock()
	known, is := e.diagnosed.all[s.ID]
	e.diagnosed.mu.Unlock()
	if is && e.Now().Sub(known.at) < diagnoseAgain {
		return known
	}
	var out diagnosis
	if found, err := provider.Diagnose(ctx, s.Zone, s.ID); err != nil {
		out.unread = err.Error()
	} else {
		out.found = &found
	}
	e.diagnosed.mu.Lock()
	defer e.diagnosed.mu.Unlock()
	if e.diagnosed.all == nil {
		e.diagnosed.all = make(map[string]diagnosis)
	}
	out.at = e.Now()
	e.diagnosed.all[s.ID] = out
	return out
}
