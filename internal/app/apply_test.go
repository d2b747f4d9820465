package app

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// TestBoundsOf: 0 is refused where a flag gives it, and is the guardrails' number where none does.
func TestBoundsOf(t *testing.T) {
	t.Parallel()
	config := &fleet.Config{Guardrails: fleet.Guardrails{MaxHosts: 7}}
	for _, flag := range []string{"max-hosts", "max-wipes", "max-disrupted"} {
		if _, err := new(Bounds).of(config, Call{Flags: []string{"--" + flag + "=0"}}); err == nil || !strings.HasPrefix(err.Error(), "--"+flag+" is 0;") {
			t.Errorf("--%s: %v", flag, err)
		}
	}
	if b, err := new(Bounds).of(config, Call{}); err != nil || b.Guardrails.MaxHosts != 7 {
		t.Errorf("%+v, %v", b, err)
	}
}

// TestCheckNamed: a host that is not in the run is refused.
func TestCheckNamed(t *testing.T) {
	t.Parallel()
	p := &plan.Plan{Hosts: []plan.Host{{Name: "a"}, {Name: "b"}}}
	of := func(h plan.Host) []string { return []string{h.Name} }
	must(t, checkNamed("force-busy", []string{"b", "a"}, p, of))
	if err := checkNamed("force-busy", []string{"a", "c"}, p, of); err == nil || err.Error() != `--force-busy: this run has no host "c"` {
		t.Error(err)
	}
}

// TestUnpinnedAsksApproval: a run that only pins a host's key changes something, so a person approves it.
func TestUnpinnedAsksApproval(t *testing.T) {
	t.Parallel()
	s := &session{need: need{config: &fleet.Config{}}, engine: &engine.Engine{},
		env: &Env{Global: Global{Dir: t.TempDir()}, Streams: Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, stop: t.Context()}}
	p := &plan.Plan{Hosts: []plan.Host{{Name: "a", Member: true}}}
	if err := s.perform(t.Context(), p, false); !errors.Is(err, errCancelled) {
		t.Error(err)
	}
}
