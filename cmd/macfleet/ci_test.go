package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// macfleet runs a command outside the jobs, as a person does.
func (h *hub) macfleet(environment string, args ...string) string {
	h.t.Helper()
	return runAt(h.t, 0, []string{"-C", h.repo, "-e", environment, "--sandbox=" + h.world(environment)}, args...)
}

// calls returns the changes that gh made since the last call.
func (h *hub) calls() string {
	name := filepath.Join(h.dir, "gh", "calls")
	text, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	must(h.t, os.Remove(name))
	return string(text)
}

// edit replaces a text in a file of the repository.
func (h *hub) edit(name, old, with string) {
	h.t.Helper()
	path := filepath.Join(h.repo, name)
	text, err := os.ReadFile(path)
	must(h.t, err)
	if !strings.Contains(string(text), old) {
		h.t.Fatalf("%s has no %q", name, old)
	}
	must(h.t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), old, with)), 0o644))
}

// publish turns a job's artifact into one of an earlier run of drift.yml on main. forged replaces
// some keys of that run in GitHub's API.
func (h *hub) publish(artifact string, run int, otherwise map[string]any) {
	h.t.Helper()
	to := filepath.Join(h.dir, "gh", fmt.Sprintf("run-%d", run), artifact)
	must(h.t, os.RemoveAll(to))
	must(h.t, os.CopyFS(to, os.DirFS(filepath.Join(h.artifacts, artifact))))
	list := filepath.Join(h.dir, "gh", "runs.json")
	var all struct {
		Runs []any `json:"workflow_runs"`
	}
	if text, err := os.ReadFile(list); err == nil {
		must(h.t, json.Unmarshal(text, &all))
	}
	own := map[string]any{"id": 1}
	made := map[string]any{"id": run, "event": "schedule", "path": ".github/workflows/drift.yml", "head_branch": "main",
		"head_sha": "c0ffee", "repository": own, "head_repository": own}
	maps.Copy(made, otherwise)
	all.Runs = append([]any{made}, all.Runs...)
	text, err := json.Marshal(all)
	must(h.t, err)
	must(h.t, os.WriteFile(list, text, 0o600))
}

func (h *hub) wants(r ran, failed string, texts ...string) {
	h.t.Helper()
	if r.failed != failed {
		h.t.Fatalf("step %q failed, wanted %q\n%s", r.failed, failed, r.log)
	}
	for _, text := range texts {
		has(h.t, r.log+r.summary, text, "what the job prints")
	}
}

func (h *hub) file(name string) string {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, name))
	must(h.t, err)
	return string(text)
}

// environments are the example's.
func environments() []string { return []string{"canary", "production"} }

// fleets makes the worlds of environments, which are converged.
func (h *hub) fleets(of ...string) {
	h.t.Helper()
	for _, e := range of {
		must(h.t, os.Rename(smallWorld(h.t, e), h.world(e)))
	}
}

// TestPullRequest: a pull request is checked, validated and planned without a secret, and
// has one comment, which is updated.
func TestPullRequest(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	w := readWorkflow(t, "pull-request.yml")
	h.fleets(environments()...)
	for _, e := range environments() {
		must(t, os.MkdirAll(filepath.Join(h.artifacts, "observed-"+e), 0o755))
		h.macfleet(e, "plan", "--record", filepath.Join(h.artifacts, "observed-"+e, "observed.json"))
	}
	h.publish("observed-canary", 5, nil)
	h.edit("fleets.fleet.hcl", "power {}", "power {\n    sleep = 15\n  }")
	pull := func() ran {
		h.wants(h.job(w, "observed", nil), "")
		h.context["needs.observed.result"] = "success"
		return h.job(w, "plan", nil)
	}

	r := pull()
	h.wants(r, "", "::notice file=fleets.fleet.hcl,line=", "sleep: never → 15 min", "### macfleet plan: acme/canary", "not compared")
	for _, e := range r.envs {
		if name, value, _ := strings.Cut(e, "="); strings.Contains(value, "SECRET") || strings.Contains(value, "token-of") || strings.HasPrefix(name, "SCW_") || name == "KUBECONFIG" {
			t.Errorf("the untrusted job has %s", e)
		}
	}
	h.wants(h.job(w, "comment", nil), "")
	h.wants(h.job(w, "comment", nil), "")
	equal(t, h.calls(), "comment\ncomment 1001 edited\n", "comments")

	// Artifacts of the same name from a fork, a branch, a tag called main or another workflow are
	// ignored; only a record of drift.yml on a commit of main is used.
	for run, forged := range []map[string]any{
		{"head_repository": map[string]any{"id": 2}}, {"head_branch": "other", "head_sha": "bad1", "event": "workflow_dispatch"},
		{"head_sha": "bad2", "event": "workflow_dispatch"}, {"event": "push"}, {"event": "pull_request"}, {"path": ".github/workflows/evil.yml"},
	} {
		h.publish("observed-production", 6+run, forged)
	}
	h.wants(h.job(w, "observed", nil), "", "production has not been observed yet")
	h.publish("observed-production", 20, map[string]any{"path": ".github/workflows/drift.yml@main", "head_sha": "cafe", "event": "workflow_dispatch"})
	h.wants(pull(), "")
	h.wants(h.job(w, "comment", nil), "")
	if text := h.file("gh/comments.json"); !strings.Contains(text, "### macfleet plan: acme/production") || strings.Contains(text, "not compared") || len(text) > 65_000 {
		t.Errorf("the comment is %s", text)
	}

	// Errors are annotated on their lines.
	h.edit("fleets.fleet.hcl", "  power {", "  power{")
	h.wants(h.job(w, "plan", nil), "fmt", "::error file=fleets.fleet.hcl,line=1,title=macfleet::The file is not formatted")
	h.edit("fleets.fleet.hcl", "  power{", "  power {\n    slep = 1")
	h.wants(h.job(w, "plan", nil), "fmt", "::error file=fleets.fleet.hcl,line=", "slep")
}

// TestHostilePullRequest: a configuration that refers to secrets, files and foreign servers
// gets nothing in the untrusted job. With credentials it does get them, so that this test
// can fail.
func TestHostilePullRequest(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	w := readWorkflow(t, "pull-request.yml")
	outsiders := h.traced()
	h.wants(h.job(w, "observed", nil), "")
	h.context["needs.observed.result"] = "success"
	var dialled atomic.Int32
	server, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			dialled.Add(1)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = server.Close(); <-done })
	// Opening the pipe for reading blocks forever.
	outside := filepath.Join(h.dir, "outside")
	must(t, syscall.Mkfifo(outside, 0o600))
	key := []byte("SENTINEL-of-a-file")
	must(t, os.WriteFile(filepath.Join(h.dir, "key"), key, 0o600))
	sum := fmt.Sprintf("%x", sha256.Sum256(key))
	bin := filepath.Join(h.dir, "bin")
	for _, tool := range []string{"op", "ssh", "kubectl"} {
		must(t, os.WriteFile(filepath.Join(bin, tool), []byte("#!/bin/sh\necho "+tool+" >>'"+filepath.Join(h.dir, "gh", "calls")+"'\necho SENTINEL-of-a-tool\n"), 0o755))
	}
	kubeconfig := filepath.Join(h.dir, "kubeconfig")
	must(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"acme-production","contexts":[{"name":"acme-production","context":{"cluster":"a","user":"a"}}],
"clusters":[{"name":"a","cluster":{"server":"https://%s"}}],"users":[{"name":"a","user":{"token":"SENTINEL-of-the-cluster"}}]}`, server.Addr()), 0o600))
	h.edit("main.fleet.hcl", `"https://api.${env.name}.acme.dev:6443"`, fmt.Sprintf("%q", "https://attacker.example:"+strings.Split(server.Addr().String(), ":")[1]))
	h.edit("fleets.fleet.hcl", "https://artifacts.acme.dev", "https://"+server.Addr().String())
	// Variables that a runner may have in its environment, besides its own.
	h.env = append(h.env, "PLANTED=SENTINEL-of-the-environment", "KUBECONFIG="+kubeconfig, "SCW_API_URL=http://"+server.Addr().String(), "SCW_ACCESS_KEY=SCWSENTINEL000000000", "SCW_SECRET_KEY=5a4d6b3c-0000-4000-8000-5e4713e10000",
		"HTTPS_PROXY=http://"+server.Addr().String(), "HTTP_PROXY=http://"+server.Addr().String(), "GODEBUG=netdns=go+2")

	for _, secret := range []string{"env://PLANTED", "file://" + outside, "file://../key", "op://acme/SSH/key", "k8s://macfleet/fleet-ssh/id_ed25519"} {
		h.edit("main.fleet.hcl", "k8s://macfleet/fleet-ssh/id_ed25519", secret)
		host := fmt.Sprintf("host \"attacker\" {\n  server_id   = \"8f1c2a44-0d3b-4c1e-9a77-2b6f0e5d4c31\"\n  group       = fleet.runners.group.m2\n  environment = \"production\"\n  password    = secret(%q)\n}\n", secret)
		must(t, os.WriteFile(filepath.Join(h.repo, "hosts.fleet.hcl"), []byte(host), 0o644))
		r := h.job(w, "plan", nil)
		h.wants(r, "", "### macfleet plan: acme/production", "not compared")
		comment := h.job(w, "comment", nil)
		h.wants(comment, "")
		for _, text := range []string{r.log, r.summary, comment.log, h.file("gh/comments.json")} {
			if strings.Contains(text, "SENTINEL") || strings.Contains(text, "hostLookupOrder(") {
				t.Errorf("%s: something was read or searched for:\n%s", secret, text)
			}
		}
		if got := strings.ReplaceAll(strings.ReplaceAll(h.calls(), "comment 1001 edited\n", ""), "comment\n", ""); got != "" || dialled.Load() != 0 {
			t.Errorf("%s: ran %q, dialled %d times", secret, got, dialled.Load())
		}
		h.edit("main.fleet.hcl", secret, "k8s://macfleet/fleet-ssh/id_ed25519")
	}

	// Files outside the configuration's folder.
	for _, source := range []string{"../outside", "../key", filepath.Join(h.dir, "key")} {
		h.edit("fleets.fleet.hcl", "dist/tart-kubelet-darwin-arm64", source)
		r := h.job(w, "plan", nil)
		h.wants(r, "", "::warning title=macfleet::Artifact file not compared: artifact.tart_kubelet: "+source+" is outside")
		if strings.Contains(r.log+r.summary, sum) {
			t.Errorf("%s was read:\n%s", source, r.log)
		}
		h.edit("fleets.fleet.hcl", source, "dist/tart-kubelet-darwin-arm64")
	}
	kubelet := h.file("repo/dist/tart-kubelet-darwin-arm64")
	for link, says := range map[string]string{"dist/more": "contains symbolic links", "more.fleet.hcl": "Unreadable file", "dist/tart-kubelet-darwin-arm64": "is outside"} {
		path := filepath.Join(h.repo, link)
		_ = os.Remove(path) // one of them exists
		must(t, os.Symlink(outside, path))
		h.wants(h.job(w, "plan", nil), "Reject symbolic links", "contains symbolic links", says)
		must(t, os.Remove(path))
	}
	must(t, os.WriteFile(filepath.Join(h.repo, "dist", "tart-kubelet-darwin-arm64"), []byte(kubelet), 0o644))

	if got := outsiders(); len(got) > 0 {
		t.Errorf("opened or connected to:\n%s", strings.Join(got, ""))
	}

	// With credentials the same configuration does reach out.
	live := func(secret string) {
		h.edit("main.fleet.hcl", "k8s://macfleet/fleet-ssh/id_ed25519", secret)
		cmd := exec.CommandContext(t.Context(), testBinary(t), "-e", "production", "plan", "--runs-dir", t.TempDir())
		cmd.Args[0], cmd.Dir, cmd.Env = "macfleet", h.repo, h.env
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("%s: it planned\n%s", secret, out)
		}
		h.edit("main.fleet.hcl", secret, "k8s://macfleet/fleet-ssh/id_ed25519")
	}
	live("op://acme/SSH/key")
	live("k8s://macfleet/fleet-ssh/id_ed25519")
	if got := h.calls(); !strings.Contains(got, "op") || dialled.Load() == 0 {
		t.Errorf("even with credentials ran %q, dialled %d times", got, dialled.Load())
	}
}

func testBinary(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	return self
}

// writes reports whether a job may change anything on GitHub.
func writes(j job) bool {
	for _, may := range *j.Permissions {
		if may != "read" {
			return true
		}
	}
	return false
}

// TestWorkflowRules checks what the workflow files promise beyond their commands.
func TestWorkflowRules(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(exampleCI, ".github", "workflows", "*.yml"))
	if err != nil || len(files) != 4 {
		t.Fatalf("workflows: %v %v", files, err)
	}
	pinned := regexp.MustCompile(`^actions/(checkout|upload-artifact|download-artifact)@[0-9a-f]{40}$`)
	for _, name := range files {
		w := readWorkflow(t, filepath.Base(name))
		text, err := os.ReadFile(name)
		must(t, err)
		if w.Permissions == nil || len(w.Permissions) != 0 || regexp.MustCompile(`(?m)^\s*pull_request_target`).Match(text) {
			t.Errorf("%s: permissions %v, or pull_request_target", name, w.Permissions)
		}
		for id, j := range w.Jobs {
			if j.Permissions == nil || j.Timeout == 0 {
				t.Errorf("%s: job %s has no permissions or no time limit", name, id)
			}
			raw, err := json.Marshal(j)
			must(t, err)
			equal(t, strings.Contains(string(raw), "secrets."), j.Environment != "", name, "job", id, "secrets and an environment go together")
			if writes(j) && strings.Contains(string(raw), "secrets.") {
				t.Errorf("%s: job %s writes to GitHub and has the fleet's credentials", name, id)
			}
			if strings.Contains(string(raw), "macfleet apply") && (j.Concurrency["group"] != "macfleet-"+id || j.Concurrency["cancel-in-progress"] != false || j.Timeout != 60) {
				t.Errorf("%s: job %s: concurrency %v, %d minutes", name, id, j.Concurrency, j.Timeout)
			}
			for _, s := range j.Steps {
				if s.Uses != "" && !strings.HasPrefix(s.Uses, "./") && !pinned.MatchString(s.Uses) {
					t.Errorf("%s: job %s uses %s", name, id, s.Uses)
				}
			}
		}
	}
	bake, err := os.ReadFile(filepath.Join(exampleCI, ".github", "workflows", "image-bake.yml"))
	must(t, err)
	for line := range strings.Lines(string(bake)) {
		if command := strings.TrimSpace(line); !strings.HasPrefix(command, "#") && regexp.MustCompile(`tart login|brew |rm -r|--password`).MatchString(command) {
			t.Errorf("image-bake.yml must not have %q", command)
		}
	}
	pull := readWorkflow(t, "pull-request.yml")
	for id, j := range pull.Jobs {
		if raw, err := json.Marshal(j); err != nil || j.Environment != "" || strings.Contains(string(raw), "secrets.") {
			t.Errorf("job %s of a pull request has credentials: %v", id, err)
		}
	}
	// A tag can be called main: only the branch starts jobs with credentials.
	for _, name := range []string{"apply.yml", "drift.yml", "image-bake.yml"} {
		for id, j := range readWorkflow(t, name).Jobs {
			if j.Environment != "" && j.Needs == nil && j.If != "github.ref == 'refs/heads/main'" {
				t.Errorf("%s: job %s starts on any ref: %q", name, id, j.If)
			}
		}
	}
	// No job is root on production's hosts without approval: two of its three jobs wait for it, and one has no credential.
	for name, want := range map[string]map[string]string{
		"apply.yml": {"plan-canary": "canary", "canary": "canary", "plan-production": "", "production": "production"},
		"drift.yml": {"look": "${{ matrix.environment == 'production' && 'production-look' || matrix.environment }}", "report": ""},
	} {
		got := map[string]string{}
		for id, j := range readWorkflow(t, name).Jobs {
			got[id] = j.Environment
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: environments %v, want %v", name, got, want)
		}
	}
	plan := pull.Jobs["plan"]
	raw, err := json.Marshal(plan)
	must(t, err)
	if len(*plan.Permissions) != 1 || (*plan.Permissions)["contents"] != "read" || plan.Environment != "" || strings.Contains(string(raw), "github.token") || len(plan.Env) != 0 {
		t.Errorf("the untrusted job has more than it should: %s", raw)
	}
}
