package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	applesilicon "github.com/scaleway/scaleway-sdk-go/api/applesilicon/v1alpha1"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// codesOf are the codes of a host's warnings, with "!" where they count as drift.
func codesOf(h plan.Host) []string {
	var out []string
	for _, w := range h.Warnings {
		code := w.Code.String()
		if w.Drift {
			code += "!"
		}
		out = append(out, code)
	}
	return out
}

// TestStatusesOfMembers: each status of the provider is named, the host is compared anyway, and it is not changed while the provider may restart or wipe it.
func TestStatusesOfMembers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status  string
		code    string // with "!" where it counts as drift
		changes bool
	}{
		{"ready", "", true},
		{"starting", "server-busy", false},
		{"rebooting", "server-busy", false},
		{"updating", "server-busy", false},
		{"unlocking", "server-busy", false},
		{"busy", "server-busy", false},
		{"reinstalling", "server-reinstalling!", false},
		{"locking", "server-locked!", true},
		{"locked", "server-locked!", true},
		{"error", "server-error!", true},
		{"unknown_status", "server-status-unknown", true},
		{"of a later API", "server-status-unknown", true},
		{"", "server-status-unknown", true},
	} {
		t.Run(tc.status, func(t *testing.T) {
			t.Parallel()
			w := newWorld(1, 0, 0)
			w.member("macos", "m2", 1).Status = tc.status
			w.found(1, "moved", good)
			p := w.plan(t)
			var want []string
			if tc.code != "" {
				want = []string{tc.code}
				explained(t, &p.Hosts[0].Warnings[0].Trouble)
			}
			expect(t, "warnings", want, codesOf(p.Hosts[0]))
			if a := p.Actions[0]; len(p.Actions) != 1 || a.Step != "alpha" || (a.Refusal == nil) != tc.changes {
				t.Errorf("actions %+v", p.Actions)
			}
			if h := p.Hosts[0]; !h.Compared || h.Converged != plan.Differs {
				t.Errorf("the host is compared %t, converged %s", h.Compared, h.Converged)
			}
		})
	}
}

// TestEveryStatusHasAMeaning: the provider's library knows which there are.
func TestEveryStatusHasAMeaning(t *testing.T) {
	t.Parallel()
	for _, s := range applesilicon.ServerStatus("").Values() {
		w := newWorld(1, 0, 0)
		w.free(1).Status = s.String()
		p := w.plan(t)
		switch {
		case s == applesilicon.ServerStatusReady:
			expect(t, "claims", 1, len(claimed(p)))
		case len(p.Rejected) != 1:
			t.Errorf("%s is not rejected", s)
		case strings.Contains(p.Rejected[0].Text, "does not know what that means"):
			t.Errorf("%s has no meaning: %s", s, p.Rejected[0].Text)
		}
	}
}

// due schedules the deletion of a server.
func due(s *inventory.Server) *inventory.Server {
	s.DeletionScheduled, s.DeletableAt = true, noon.Add(time.Hour)
	return s
}

// TestDeletionScheduled: such a server is not claimed and not taken over, and for a member it is reported whatever else is wrong with it, also where it is held.
func TestDeletionScheduled(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		make      func(*world)
		warnings  []string
		refused   string // the host
		remembers string // in the text
	}{
		"converged":  {func(w *world) { due(w.member("macos", "m2", 1)) }, []string{"deletion-scheduled!"}, "", "2026-11-21 13:00:00 UTC"},
		"at once":    {func(w *world) { due(w.member("macos", "m2", 1)).DeletableAt = noon }, []string{"deletion-scheduled!"}, "", "2026-11-21 12:00:00 UTC"},
		"no time":    {func(w *world) { due(w.member("macos", "m2", 1)).DeletableAt = time.Time{} }, []string{"deletion-scheduled!"}, "", "Scaleway"},
		"and locked": {func(w *world) { due(w.member("macos", "m2", 1)).Status = "locked" }, []string{"deletion-scheduled!", "server-locked!"}, "", ""},
		"unreachable": {func(w *world) {
			due(w.member("macos", "m2", 1))
			w.away(1, plan.CodeUnreachable)
		}, []string{"deletion-scheduled!"}, "", ""},
		"held and locked": {func(w *world) {
			due(w.member("macos", "m2", 1)).Status = "locked"
			w.mark(1, func(m *plan.Marker) { m.Hold = &inventory.Hold{Who: "sam@desk", Reason: "tests"} })
		}, []string{"deletion-scheduled!", "server-locked"}, "", ""},
		"adopted":       {func(w *world) { due(w.adoptedMember(1, legacy)) }, []string{"deletion-scheduled!"}, "", ""},
		"to be adopted": {func(w *world) { due(w.outside(1, legacy)); w.adopt(1, legacy) }, []string{"deletion-scheduled!"}, "deletion-scheduled", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(1, 0, 0)
			w.snap.Taken = noon
			tc.make(w)
			p := w.plan(t)
			h := p.Hosts[0]
			expect(t, "warnings", tc.warnings, codesOf(h))
			explained(t, &h.Warnings[0].Trouble)
			if x := h.Warnings[0]; !x.OfServer || !strings.Contains(x.Text, tc.remembers) || x.Code.Severity() != plan.Critical {
				t.Errorf("it says %+v", x)
			}
			if got := h.Refused; (got != nil) != (tc.refused != "") || got != nil && got.Code.String() != tc.refused {
				t.Errorf("refused: %+v", got)
			}
			if tc.refused != "" && slices.ContainsFunc(p.Actions, plan.Action.Runs) {
				t.Errorf("it is taken over: %+v", p.Actions)
			}
		})
	}
}

// TestDeletionOfOthers: of a server of the pool it is reported why it is not claimed, of an
// orphan that it goes, and of a foreign server nothing.
func TestDeletionOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(1, 0, 0)
	w.snap.Taken = noon
	due(w.free(1))
	w.free(2)
	due(w.outside(3, "acme-prod-gone-m2-00003"))
	due(w.server(4, "somebody")).Type = "M4-M"
	w.sel.AllowOrphans = true
	p := w.plan(t)
	expect(t, "claims", []string{"acme-pool-02 > acme-prod-macos-m2-00002"}, claimed(p))
	expect(t, "rejected", []string{"acme-pool-01 deletion-scheduled"}, rejected(p))
	explained(t, &p.Rejected[0].Trouble)
	if len(p.Orphans) != 1 || !strings.Contains(p.Orphans[0].Text, "2026-11-21 13:00:00 UTC") {
		t.Errorf("orphans %+v", p.Orphans)
	}
}

// TestRunnersOfTheProvider are drift of a member for a person, and keep a pool server from being claimed.
func TestRunnersOfTheProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(2, 0, 0)
	w.member("macos", "m2", 1).RunnerConfigurations = "11111111,22222222"
	w.free(9).RunnerConfigurations = "33333333"
	p := w.plan(t)
	h, _ := p.HostByServer(serverID(1))
	if codes := codesOf(h); !slices.Equal(codes, []string{"provider-runner!"}) || !h.Warnings[0].OfServer {
		t.Errorf("warnings %q", codes)
	}
	if len(p.Runnable()) > 0 || len(p.Rejected) != 1 || p.Rejected[0].Code.String() != "provider-runner" {
		t.Errorf("actions %v, rejected %+v", lines(p), p.Rejected)
	}
}
