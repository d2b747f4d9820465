package view_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// allButTheClaim approves all that follows a claim, but not the claim.
func allButTheClaim(p *plan.Plan) plan.Approved {
	out := plan.Approved{Keys: map[string]string{memberID: "SHA256:abc", poolID: "SHA256:abc"}, Digests: make(map[string]string)}
	for _, a := range p.Actions {
		if a.Kind != plan.ClaimServer {
			out.Digests[a.Address()] = p.Approve().Digests[a.Address()]
		}
	}
	return out
}

// annsLock is a lock that another person holds while a plan is made.
func annsLock(alive bool) *plan.Lock {
	at := time.Unix(1794000000, 0)
	return &plan.Lock{Run: plan.Run{ID: "k3h7w2mq5a", Who: "ann@laptop", Epoch: 41}, Since: at, Renewed: at.Add(time.Minute), Alive: alive}
}

// gateTroubles are those of a host whose work is done and whose Node is waited for.
func gateTroubles() []plan.Trouble {
	return []plan.Trouble{{Code: plantest.Code("node-not-ready"), Text: "not Ready after 5m0s: Ready is Unknown: no heartbeat since 10:00:00 UTC; " +
		"on the host: tart_kubelet: kubelet-crash-loop: crash-looping", Remedy: "kubectl describe node " + memberOf},
		{Code: engine.CodeNotDrained, Text: "tart not started: drain node " + memberOf + ": pod ci/a: time was up while a disruption budget held it: The disruption budget web needs 1 healthy pods and has 1 currently",
			Remedy: "check what blocks the drain, allow more time (--drain-timeout), and apply again"},
		{Code: engine.CodeRunnerBusyStuck, Text: "tools not started: https://github.com/acme reports a job there, but the host was idle all the time",
			Remedy: "check the job at the service; if none runs: macfleet apply --force-busy " + memberOf},
		{Code: plantest.Code("artifact-unreadable"), Text: "artifact.tart_kubelet: open dist/tart-kubelet: permission denied; its source is \"dist/tart-kubelet\": make the file readable for macfleet's user",
			Remedy: "make the file readable for macfleet's user, and run macfleet plan again"},
		{Code: plantest.Code("artifact-changed"), Text: "artifact.tart_kubelet: dist/tart-kubelet has the SHA-256 " + strings.Repeat("0a", 32) + ", locked is " + strings.Repeat("0b", 32),
			Remedy: "if the change is intended, run macfleet artifacts lock --update tart_kubelet; otherwise restore the locked file"},
		{Code: plan.CodeMayNotRename, Text: "change server " + poolID + ": permission denied: scaleway-sdk-go: insufficient permissions: write server; " +
			"the key needs AppleSiliconFullAccess in this project", Remedy: "give the API key the permission to change servers, then apply again"},
		{Code: engine.CodeNotErased, Text: "server " + memberOf + " was reinstalled, but its host has the same key as before",
			Remedy: "check the server in the provider's console; macfleet apply continues the release"},
		{Code: plantest.Code("not-releasable"), Text: memberOf + " is a member of runners.m2, so it is not released",
			Remedy: "lower replicas, or put another server in its place: macfleet replace " + memberOf},
		{Code: plantest.Code("not-replaceable"), Text: "acme-pool-07 is in the pool, so it is not replaced", Remedy: "macfleet hosts lists the members"},
		{Code: plantest.Code("install-failed"), Text: "the installation of server " + memberOf + " failed: its status is error", Remedy: plantest.Code("install-failed").Remedy()},
		{Code: plantest.Code("not-reinstalled"), Text: "server " + memberOf + " was not reinstalled in 2h0m0s: its status is reinstalling",
			Remedy: "check the server in the provider's console; macfleet apply continues the release"},
		{Code: plantest.Code("host-may-be-busy"), Text: "it is a builder whose host does not answer, so it is unknown whether a job runs on it",
			Remedy: "wait until its work has ended; to lose that work: macfleet reboot " + memberOf + " --force-busy " + memberOf},
		{Code: plantest.Code("reboot-unsafe"), Text: "auto_login differs (sealed-kcpassword): after a restart the host has no session, or no SSH",
			Remedy: "macfleet apply --on name=" + memberOf + "; then reboot it"},
		{Code: plantest.Code("server-not-verified"), Text: "the host does not answer, it has no Node, and its key was never pinned",
			Remedy: "check the server's id in the provider's console"},
		{Code: plantest.Code("lock-lost"), Text: "the run stopped: the lock is lost: bob@ci has taken it (run p5xq, since 10:00:00 UTC)",
			Remedy: "macfleet lock status shows the holder; apply again when that run has ended"}}
}

// bobEntered is another run on the host.
const bobEntered = "bob@ci has been working here since 21:20:00 UTC (run p5xq, epoch 42)"

// boundTroubles are those of hosts that one run may not touch any more.
func boundTroubles() []plan.Trouble {
	var out []plan.Trouble
	night, _ := fleet.ParseWindow("daily 22:00-04:00")
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, b := range []plan.Bounds{
		{Guardrails: fleet.Guardrails{MaxHosts: 1}}, {Guardrails: fleet.Guardrails{Windows: []fleet.Window{night}}, Now: noon},
		{}, {Guardrails: fleet.Guardrails{MaxDisrupted: fleet.Share{Count: 1}}},
	} {
		p := &plan.Plan{Healthy: make(map[string][]plan.Healthy)}
		for _, id := range []string{"1", "2"} {
			name := "acme-production-runners-m2-0a1b" + id
			p.Hosts = append(p.Hosts, plan.Host{Name: name, Fleet: "runners", Member: true, Server: inventory.Server{ID: id}})
			p.Healthy["runners"] = append(p.Healthy["runners"], plan.Healthy{ServerID: id, Name: name})
			d := plan.Drain
			if b.Guardrails.MaxHosts == 0 && b.Guardrails.Windows == nil && b.Guardrails.MaxDisrupted == (fleet.Share{}) {
				d = plan.Wipe
			}
			p.Actions = append(p.Actions, plan.Action{Host: name, ServerID: id, Disruption: d})
		}
		p.Defer(b, func(fleet.Host) []plan.Step { return nil }, nil)
		out = append(out, *p.Actions[1].Deferral)
	}
	return out
}

// applyTroubles are those of a host that only an apply meets.
func applyTroubles() []*hosts.Error {
	return []*hosts.Error{
		{Host: memberOf, Code: plantest.Code("undo-armed"), Phase: hosts.Undoing, Err: errors.New("a change of vm_firewall is not confirmed yet; the host undoes it within 42s"),
			Remedy: "run macfleet plan in a minute: what is not confirmed by then is as it was before"},
		{Host: memberOf, Code: plantest.Code("cut-off"), Phase: hosts.Undoing, Err: errors.New("vm_firewall: unknown whether the change is active: no answer within 6m0s"),
			Remedy: "macfleet reboot acme-production-runners-m2-0a1b2: an unconfirmed change is also undone at boot"},
		{Host: memberOf, Code: plantest.Code("rolled-back"), Phase: hosts.Undoing, Err: errors.New("vm_firewall was undone: no confirmation within 60 s"),
			Remedy: "the host is unchanged; fix what the change does to its connections, then run macfleet plan"},
		{Host: memberOf, Code: plantest.Code("no-gui-session"), Phase: hosts.Talking, Err: errors.New("no gui session of m1: Could not find domain for user gui: 501"),
			Remedy: "let the step auto_login create the session, or log in over VNC as m1"},
		{Host: memberOf, Code: plantest.Code("job-running"), Phase: hosts.Talking, Err: errors.New("os-update is still running after 1h0m0s"),
			Remedy: "run macfleet apply again; it waits for the running job"},
		{Host: memberOf, Code: plantest.Code("new-key-refused"), Phase: hosts.Authorising, Err: errors.New("the host lists the key SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU and refuses it"),
			Remedy: "check the login user's ~/.ssh on the host: only that user may write to it, and sshd_config must read authorized_keys"},
		{Host: memberOf, Code: plantest.Code("previous-key-needed"), Phase: hosts.Authorising, Err: errors.New("the host refused the key SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU (secret k8s://macfleet/fleet-ssh/id_ed25519) for user m1 (tried once, not again)"),
			Remedy: "check sshd_config and ~/.ssh on the host, then apply again"},
		{Host: memberOf, Code: plantest.Code("newer-run"), Phase: hosts.Talking, Err: errors.New(bobEntered),
			Remedy: "wait for the other apply to end, then apply again"},
		{Host: memberOf, Code: plantest.Code("host-locked"), Phase: hosts.Talking, Err: errors.New(bobEntered + "; last command 42s ago"),
			Remedy: "wait for that apply to end; if it crashed, its lock expires 10m0s after its last command, or run: macfleet lock release --force p5xq"},
		{Host: memberOf, Code: plantest.Code("run-not-noted"), Phase: hosts.Talking, Err: errors.New("the run could not be recorded in /etc/macfleet/runs, so nothing was changed"),
			Remedy: "check whether the disk is full or read-only: macfleet doctor " + memberOf},
		{Host: memberOf, Code: plantest.Code("disk-full"), Phase: hosts.Delivering, Err: errors.New("artifact.tart: 20 MB free, needs 210 MB"),
			Remedy: "free disk space on the host (tart list, tart delete, tart prune), then apply again"},
		{Host: memberOf, Code: plantest.Code("wrong-artifact"), Phase: hosts.Delivering, Err: fmt.Errorf("artifact.tart: https://releases.acme.dev/tart.tar.gz has the SHA-256 %s, not %s",
			strings.Repeat("0a", 32), strings.Repeat("0b", 32)),
			Remedy: "if the change is intended, run macfleet artifacts lock --update; otherwise find out who changed the file"},
		{Host: memberOf, Code: plantest.Code("download-failed"), Phase: hosts.Delivering, Err: errors.New("artifact.tart: curl: (6) Could not resolve host: releases.acme.dev"),
			Remedy: "check that the host can reach https://releases.acme.dev/tart.tar.gz, or let macfleet upload the file with fetch = \"push\"; then apply again: the download is resumed"},
	}
}

// disturbance is a trouble, and all that is printed of it.
type disturbance struct {
	code     string
	pictures []picture
}

// disturbed shows every trouble as plan, drift, hosts and explain do; what only an
// apply meets as its result does.
func disturbed(t *testing.T) []disturbance {
	t.Helper()
	var out []disturbance
	for _, tr := range append(troubles(), connectionTroubles(t)...) {
		s := newScene()
		tr.disturb(s)
		p := plan.Compute(s.cfg, s.steps, s.snap, plan.Selection{})
		if s.approved != nil {
			s.approved(p).Restrict(p, s.steps)
		}
		x, err := doctor.Explain(s.cfg, s.steps, s.snap, memberOf)
		explain := func(v *view.Text) { v.Explain(x, "") }
		if err != nil {
			explain = func(v *view.Text) { v.Error(err) }
		}
		out = append(out, disturbance{tr.code, []picture{
			shown("plan", func(v *view.Text) { v.Plan(p, view.PlanForm{}) }),
			shown("drift", func(v *view.Text) { v.Drift(p, reported(p), 2) }),
			shown("hosts", func(v *view.Text) { v.Hosts(p, narrow) }),
			shown("explain", explain),
		}})
	}
	failed := func(code string, f engine.Failure) {
		out = append(out, disturbance{code, []picture{
			shown("apply", func(v *view.Text) { showApplied(v, engine.Result{Failures: []engine.Failure{f}}) })}})
	}
	for _, x := range append(gateTroubles(), boundTroubles()...) {
		failed(x.Code.String(), engine.Failure{Err: &x, Action: plan.Action{Kind: plan.AwaitNode, Host: memberOf}})
	}
	for _, e := range applyTroubles() {
		failed(e.Code.String(), engine.Failure{Err: e, Action: plan.Action{Kind: plan.RunStep, Host: memberOf, Fleet: "runners", Group: "m2", Step: "vm_firewall"}})
	}
	return out
}

// errorBlocks is a picture of every trouble: which outputs show its code, and the
// paragraphs that plan, or else apply, prints of it.
func errorBlocks(all []disturbance) picture {
	return picture{"errors", func(k terminal) string {
		var b strings.Builder
		for _, d := range all {
			fmt.Fprintf(&b, "== %s:", d.code)
			for _, p := range d.pictures {
				if strings.Contains(p.draw(terminal{}), d.code) {
					b.WriteString(" " + p.name)
				}
			}
			b.WriteString("\n")
			for part := range strings.SplitSeq(d.pictures[0].draw(k), "\n\n") {
				if strings.Contains(part, d.code) {
					b.WriteString(strings.Trim(part, "\n") + "\n")
				}
			}
		}
		return b.String()
	}}
}

// TestEveryTroubleIsShown by plan, or by apply where only that meets it.
func TestEveryTroubleIsShown(t *testing.T) {
	t.Parallel()
	for _, d := range disturbed(t) {
		has(t, d.pictures[0].draw(terminal{}), d.code, d.pictures[0].name, "shows it")
	}
}

// unshown are the codes of troubles that are never shown outside a step.
func unshown() []string {
	return []string{"unknown-host-key", "known-hosts", // they become jump-failed
		"unread",                                                                // a step's answer: the pictures of plans show it
		"api-key-rejected", "api-key-expires", "right-missing", "wrong-project", // of doctor account, and of errors
		"rate-limited", "provider-away", "kubeconfig-rejected", // of errors
		"runner-credentials-unread", "runner-credentials-rejected", "runner-right-missing", "runner-scope-missing", // of doctor github
		"tailnet-credentials-unread", "tailnet-credentials-refused", "tailnet-right-missing", "tags-not-permitted", "tailnet-down", "device-cap-reached", // scripts show them
		"kubelet-settling", "node-not-judged"} // a step's warnings
}

// TestEveryCodeHasAGolden: each trouble is shown by a golden, so its text is reviewed.
// Those that steps raise are in the goldens of steps.
func TestEveryCodeHasAGolden(t *testing.T) {
	t.Parallel()
	shown, err := os.ReadFile(filepath.Join("testdata", "errors-pipe.txt"))
	must(t, err)
	for _, c := range plan.Codes() {
		ours := !strings.HasPrefix(c.Home(), "steps/") && !strings.HasPrefix(c.Home(), "internal/drift/")
		if c.Remedy() != "" && ours && !slices.Contains(unshown(), c.String()) && !strings.Contains(string(shown), "== "+c.String()+":") {
			t.Errorf("%s: the trouble %s has no golden", c.Home(), c)
		}
	}
}
