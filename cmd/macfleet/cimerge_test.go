package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// look lets the nightly job observe an environment and upload the record.
func (h *hub) look(environment string, run int) {
	h.t.Helper()
	h.wants(h.job(readWorkflow(h.t, "drift.yml"), "look", map[string]string{"environment": environment}), "")
	h.publish("observed-"+environment, run, nil)
}

// TestMerge: canary goes first. Production follows with exactly the approved plan, and only
// if canary is converged, Ready and without drift.
func TestMerge(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	w := readWorkflow(t, "apply.yml")
	h.fleets(environments()...)
	canary := func() ran {
		r := h.job(w, "plan-canary", nil)
		h.wants(r, "")
		return h.job(w, "canary", nil)
	}
	planProduction := func(changes string, texts ...string) {
		t.Helper()
		r := h.job(w, "plan-production", nil)
		h.wants(r, "", texts...)
		if r.outputs["changes"] != changes {
			t.Fatalf("outputs %v\n%s", r.outputs, r.log)
		}
		h.context["needs.plan-production.outputs.changes"] = changes
		for _, e := range r.envs {
			if name, value, _ := strings.Cut(e, "="); strings.Contains(value, "SECRET") || strings.HasPrefix(name, "SCW_") || name == "KUBECONFIG" {
				t.Errorf("the job that plans production has %s", e)
			}
		}
		if strings.Contains(r.log, "SECRET") {
			t.Errorf("a secret is in %s", r.log)
		}
	}
	// An unhealthy canary stops it; running the same job again resumes.
	h.edit("fleets.fleet.hcl", "power {}", "power {\n    sleep = 15\n  }")
	host := strings.Fields(h.macfleet("canary", "hosts", "-o", "name"))[0]
	h.macfleet("canary", "sandbox", "inject", host, "unreachable")
	h.wants(canary(), "apply", "Run the failed jobs again", "macfleet apply: canary, exit 3")
	h.macfleet("canary", "sandbox", "heal", host, "unreachable")
	h.context["github.run_attempt"] = "2"
	h.wants(h.job(w, "canary", nil), "apply", "not-approved")
	h.context["github.run_attempt"] = "3"
	h.wants(canary(), "", "3/3 hosts converged", "Nodes are Ready", "macfleet apply: canary, exit 0")

	// Actions deferred by a limit of one run need no approval, and production does not wait for one.
	h.edit("fleets.fleet.hcl", "power {\n    sleep = 15\n  }", "power {}")
	h.edit("fleets.fleet.hcl", "2.32.1", "2.33.0")
	h.macfleet("production", "artifacts", "lock", "--update", "tart")
	h.wants(h.job(w, "plan-production", nil), "Fetch the last observation", "production has not been observed yet")
	h.look("production", 1)
	from := time.Now().UTC().Add(6 * time.Hour)
	open := h.env
	h.env = append(slices.Clone(open), fmt.Sprintf(`MACFLEET_VAR_quiet_hours=["daily %s-%s"]`, from.Format("15:04"), from.Add(time.Hour).Format("15:04")))
	planProduction("false", "All changes of production are deferred by a limit of one run")
	h.env = open
	planProduction("true", "### macfleet plan: acme/production")

	// Hosts change between approval and apply: unapproved actions are left, and the others
	// performed.
	host = strings.Fields(h.macfleet("production", "hosts", "-o", "name"))[0]
	h.macfleet("production", "sandbox", "inject", host, "hostname-edited")
	h.context["github.run_attempt"] = "1"
	h.wants(h.job(w, "production", nil), "apply", "not-approved", "Run the failed jobs again")
	records, err := filepath.Glob(filepath.Join(h.artifacts, "record-production-1", "runs", "*.jsonl"))
	if err != nil || len(records) != 1 {
		t.Errorf("records: %v %v", records, err)
	}
	h.macfleet("production", "sandbox", "heal", host, "hostname-edited")
	h.context["github.run_attempt"] = "2"
	h.wants(h.job(w, "production", nil), "", "No changes. All 3 hosts", "Nodes are Ready")

	// Without changes, production needs no approval.
	h.look("production", 2)
	planProduction("false")

	// A commit that is not the newest applies nothing.
	must(t, os.WriteFile(filepath.Join(h.dir, "gh", "head"), []byte("newer"), 0o600))
	h.wants(h.job(w, "canary", nil), "Only the newest commit", "A newer commit is on main")
}

// TestVerifyCanary: after a complete apply, a Node that is not Ready and drift each fail the
// job, so production is not reached.
func TestVerifyCanary(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	w := readWorkflow(t, "apply.yml")
	h.fleets("canary")
	host := strings.Fields(h.macfleet("canary", "hosts", "-o", "name"))[0]
	j := w.Jobs["canary"]
	equal(t, w.Jobs["plan-production"].Needs, "canary", "what the plan of production needs")
	proof := func(name string) workflow {
		var steps []step
		for _, s := range j.Steps {
			if s.Name == "macfleet" || s.Name == name {
				steps = append(steps, s)
			}
		}
		return workflow{Jobs: map[string]job{"canary": {Env: j.Env, Steps: steps}}}
	}
	ready := proof("Ready")
	ready.Jobs["canary"].Steps[1].Run = strings.Replace(ready.Jobs["canary"].Steps[1].Run, "--timeout 3m", "--timeout 1s", 1)
	h.wants(h.job(ready, "canary", nil), "")
	h.wants(h.job(proof("drift"), "canary", nil), "")
	h.macfleet("canary", "sandbox", "inject", host, "sleep-enabled")
	h.wants(h.job(proof("drift"), "canary", nil), "drift", "exit status 2")
	h.macfleet("canary", "sandbox", "inject", host, "node-not-ready")
	h.wants(h.job(ready, "canary", nil), "Ready", "exit status 3")
	h.macfleet("canary", "sandbox", "heal", host, "sleep-enabled")
	h.macfleet("canary", "sandbox", "heal", host, "node-not-ready")
	h.macfleet("canary", "sandbox", "inject", host, "unreachable")
	h.wants(h.job(proof("drift"), "canary", nil), "drift", "exit status 3")
}

// TestDriftIssue: the nightly job opens one issue, is silent while the drift stays, comments
// when it changes, and closes the issue without drift, but never when hosts are unknown.
func TestDriftIssue(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	w := readWorkflow(t, "drift.yml")
	h.fleets("production")
	hosts := strings.Fields(h.macfleet("production", "hosts", "-o", "name"))
	run, matrix := 100, map[string]string{"environment": "production"}
	night := func(looks string) (string, ran) {
		t.Helper()
		run++
		r := h.job(w, "look", matrix)
		h.wants(r, looks)
		if looks == "" {
			h.publish("drift-production", run, nil)
		}
		report := h.job(w, "report", matrix)
		return h.calls(), report
	}
	wants := func(when, pattern, failed string) {
		t.Helper()
		calls, r := night("")
		h.wants(r, failed)
		if !regexp.MustCompile(`^(?:` + pattern + `)$`).MatchString(calls) {
			t.Errorf("%s: gh was called with %q, wanted %s\n%s", when, calls, pattern, r.log)
		}
	}
	wants("a clean night", "", "")
	h.macfleet("production", "sandbox", "inject", hosts[0], "sleep-enabled")
	wants("the first night of drift", "label macfleet-drift-production\nissue created: macfleet-drift-production: Drift of acme-production: 1 difference on 1 host, warning\n", "")
	wants("the second", "", "")
	h.macfleet("production", "sandbox", "inject", hosts[1], "hostname-edited")
	wants("more drift", "issue 1 edited\nissue 1 comment: The drift has changed: https://github.com/acme/macs/actions/runs/42\n", "")
	h.macfleet("production", "sandbox", "inject", hosts[1], "unreachable")
	wants("a drifted host is unreachable", "issue 1 edited\n", "")
	wants("it still is", "", "")
	h.macfleet("production", "sandbox", "heal", hosts[0], "sleep-enabled")
	wants("the other one is unknown", "issue 1 edited\n", "Issue")
	h.macfleet("production", "sandbox", "heal", hosts[1], "unreachable")
	wants("reachable again", "issue 1 edited\n(issue 1 comment: .*\n)?", "")
	h.macfleet("production", "sandbox", "heal", hosts[1], "hostname-edited")
	wants("all is well", "issue 1 closed: No more drift: https://github.com/acme/macs/actions/runs/42\n", "")
	h.macfleet("production", "sandbox", "inject", hosts[1], "unreachable")
	wants("incomplete without an issue", "", "Issue")
	h.macfleet("production", "sandbox", "heal", hosts[1], "unreachable")

	// An invalid configuration leaves no observation.
	h.macfleet("production", "sandbox", "inject", hosts[0], "sleep-enabled")
	wants("drift again", "label .*\nissue created: .*\n", "")
	h.edit("main.fleet.hcl", "macfleet {", "macfleet {{")
	must(t, os.RemoveAll(filepath.Join(h.artifacts, "drift-production")))
	calls, r := night("drift")
	h.wants(r, "Fetch the observation")
	equal(t, calls, "", "gh was called with")
}
