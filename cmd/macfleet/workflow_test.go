package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/macfleet/macfleet/internal/scripttest"
)

// workflow is what these tests read of a workflow's file.
type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]job    `json:"jobs"`
}

type job struct {
	If          string             `json:"if"`
	Environment string             `json:"environment"`
	Permissions *map[string]string `json:"permissions"`
	Concurrency map[string]any     `json:"concurrency"`
	Timeout     int                `json:"timeout-minutes"`
	Env         map[string]string  `json:"env"`
	Needs       any                `json:"needs"`
	Outputs     map[string]string  `json:"outputs"`
	Steps       []step             `json:"steps"`
}

type step struct {
	ID   string            `json:"id"`
	Name string            `json:"name"`
	If   string            `json:"if"`
	Uses string            `json:"uses"`
	With map[string]any    `json:"with"`
	Env  map[string]string `json:"env"`
	Run  string            `json:"run"`
}

// action is a composite action's file.
type action struct {
	Runs struct {
		Steps []step `json:"steps"`
	} `json:"runs"`
}

// exampleCI is the example of workflows.
const exampleCI = "../../examples/ci"

func readWorkflow(t *testing.T, name string) workflow {
	t.Helper()
	var w workflow
	readYAML(t, filepath.Join(exampleCI, ".github", "workflows", name), &w)
	return w
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	must(t, err)
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// hub is a GitHub that runs the jobs of a workflow's file on this machine: the commands
// of each step by bash, with a gh that keeps issues and comments in a folder. What
// macfleet reaches is simulated.
type hub struct {
	t         *testing.T
	dir       string
	repo      string            // what is checked out
	artifacts string            // one folder each
	context   map[string]string // what expressions name
	env       []string          // of every step
}

// ran is the result of a job.
type ran struct {
	failed  string // name of the step that failed; empty: none
	log     string // what its steps printed
	summary string
	outputs map[string]string
	temp    string   // folder of its runner
	envs    []string // every environment that a step of it saw
}

func newHub(t *testing.T) *hub {
	t.Helper()
	scripttest.Need(t, "bash", "jq", "openssl")
	dir := t.TempDir()
	h := &hub{t: t, dir: dir, repo: filepath.Join(dir, "repo"), artifacts: filepath.Join(dir, "artifacts"), context: map[string]string{
		"github.ref": "refs/heads/main", "github.token": "token-of-the-job", "github.repository": "acme/macs", "github.run_attempt": "1",
		"github.event.repository.default_branch": "main", "github.event.pull_request.number": "7",
		"github.event.pull_request.head.repo.full_name": "acme/macs", "github.event.pull_request.head.sha": "c0ffee",
		"secrets.KUBECONFIG": "SECRET-kubeconfig", "secrets.SCW_ACCESS_KEY": "SECRET-access", "secrets.SCW_SECRET_KEY": "SECRET-secret",
	}}
	smallFleets(t, h.repo)
	must(t, os.CopyFS(h.repo, os.DirFS(exampleCI)))
	bin := filepath.Join(dir, "bin")
	must(t, os.MkdirAll(bin, 0o755))
	must(t, os.MkdirAll(filepath.Join(dir, "gh"), 0o755))
	self, err := os.Executable()
	must(t, err)
	write := func(name, text string) { must(t, os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755)) }
	fake, err := os.ReadFile("testdata/gh")
	must(t, err)
	write("gh", string(fake))
	// go install installs this test binary.
	write("go", "#!/bin/sh\n[ \"$1 $2\" = 'install -trimpath' ] && mkdir -p \"$GOBIN\" && ln -s '"+self+"' \"$GOBIN/macfleet\"\n")
	h.env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + dir, "GITHUB_WORKSPACE=" + h.repo, "GITHUB_REPOSITORY=acme/macs", "GITHUB_ACTIONS=true", "CI=true",
		"GITHUB_SERVER_URL=https://github.com", "GITHUB_RUN_ID=42", "GITHUB_ACTOR=ann", "GITHUB_SHA=c0ffee", "GITHUB_REF_NAME=main", "FAKE_GH=" + filepath.Join(dir, "gh"),
		`MACFLEET_VAR_quiet_hours=["daily 00:00-24:00"]`, "GORACE=" + os.Getenv("GORACE")}
	return h
}

// job runs a job of a workflow.
func (h *hub) job(w workflow, name string, matrix map[string]string) ran {
	h.t.Helper()
	j, ok := w.Jobs[name]
	if !ok {
		h.t.Fatalf("there is no job %s", name)
	}
	r := &jobRun{hub: h, context: maps.Clone(h.context), ran: ran{temp: h.t.TempDir(), outputs: map[string]string{}}}
	r.context["runner.temp"] = r.ran.temp
	for k, v := range matrix {
		r.context["matrix."+k] = v
	}
	if j.If != "" && !r.holds(j.If) {
		h.t.Fatalf("job %s is not run: %s", name, j.If)
	}
	env := slices.Clone(h.env)
	for k, v := range j.Env {
		env = append(env, k+"="+r.text(v))
	}
	if environment := r.environment(env); environment != "" {
		env = append(env, "MACFLEET_SANDBOX="+h.world(environment))
	}
	r.steps(j.Steps, env, "")
	for k, v := range j.Outputs {
		if r.ran.failed == "" { // a step that was not reached has none
			r.ran.outputs[k] = r.text(v)
		}
	}
	return r.ran
}

// world is the folder of an environment's simulated world.
func (h *hub) world(environment string) string { return filepath.Join(h.dir, "world-"+environment) }

// jobRun is one job that runs.
type jobRun struct {
	*hub
	context map[string]string
	ran     ran
	added   []string // to the environment, by steps before
	path    string
}

func (r *jobRun) environment(env []string) string {
	for _, e := range slices.Backward(env) {
		if name, ok := strings.CutPrefix(e, "MACFLEET_ENVIRONMENT="); ok {
			return name
		}
	}
	return ""
}

func (r *jobRun) steps(all []step, env []string, within string) {
	for n, s := range all {
		name := within + s.Name
		if s.Name == "" {
			r.t.Fatalf("step %d of %q has no name", n, within)
		}
		always := strings.Contains(s.If, "always()") || strings.Contains(s.If, "cancelled()")
		if r.ran.failed != "" && !always || s.If != "" && !r.holds(s.If) {
			continue
		}
		if ok := r.step(s, env, name); !ok && r.ran.failed == "" {
			r.ran.failed = name
		}
	}
}

func (r *jobRun) step(s step, env []string, name string) bool {
	uses, _, _ := strings.Cut(s.Uses, "@")
	with := make(map[string]string)
	for k, v := range s.With {
		with[k] = r.text(fmt.Sprint(v))
	}
	switch {
	case s.Run != "":
		return r.shell(s, env)
	case strings.HasPrefix(uses, "./"):
		var a action
		readYAML(r.t, filepath.Join(exampleCI, uses, "action.yml"), &a)
		maps.DeleteFunc(r.context, func(k, _ string) bool { return strings.HasPrefix(k, "inputs.") })
		r.context["inputs.kubeconfig"] = with["kubeconfig"]
		before := r.ran.failed
		r.steps(a.Runs.Steps, env, name+": ")
		return r.ran.failed == before
	case uses == "actions/checkout":
		equal(r.t, with["persist-credentials"], "false", "step", name, "persist-credentials")
		return true
	case uses == "actions/upload-artifact":
		return r.upload(with)
	case uses == "actions/download-artifact":
		return r.download(with)
	}
	r.t.Fatalf("step %s uses %s, which is not simulated", name, s.Uses)
	return false
}

func (r *jobRun) shell(s step, env []string) bool {
	if !strings.HasPrefix(s.Run, "set -euo pipefail\n") || strings.Contains(s.Run, "${{") {
		r.t.Errorf("step %s: it continues after an error, or an expression is pasted into it:\n%s", s.Name, s.Run)
	}
	temp := r.ran.temp
	files := map[string]string{}
	for _, f := range []string{"GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH"} {
		files[f] = filepath.Join(r.t.TempDir(), f)
		must(r.t, os.WriteFile(files[f], nil, 0o600))
		env = append(env, f+"="+files[f])
	}
	env = append(append(slices.Clone(env), r.added...), "RUNNER_TEMP="+temp)
	if r.path != "" {
		env = append(env, strings.Replace(r.env[0], "PATH=", "PATH="+r.path+":", 1))
	}
	for k, v := range s.Env {
		env = append(env, k+"="+r.text(v))
	}
	r.ran.envs = append(r.ran.envs, env...)
	cmd := exec.CommandContext(r.t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", s.Run)
	cmd.Dir, cmd.Env = r.repo, env
	out, err := cmd.CombinedOutput()
	r.ran.log += fmt.Sprintf("== %s\n%s", s.Name, out)
	if err != nil {
		r.ran.log += fmt.Sprintf("== %v\n", err)
	}
	text := func(f string) string {
		b, err := os.ReadFile(files[f])
		must(r.t, err)
		return string(b)
	}
	r.ran.summary += text("GITHUB_STEP_SUMMARY")
	r.added = append(r.added, strings.Fields(text("GITHUB_ENV"))...)
	r.path = strings.TrimSpace(r.path + text("GITHUB_PATH"))
	for line := range strings.Lines(text("GITHUB_OUTPUT")) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
		r.context["steps."+s.ID+".outputs."+k] = v
	}
	return err == nil
}

func (r *jobRun) upload(with map[string]string) bool {
	to := filepath.Join(r.artifacts, with["name"])
	if with["overwrite"] == "true" {
		must(r.t, os.RemoveAll(to))
	}
	info, err := os.Stat(with["path"])
	if err != nil {
		return with["if-no-files-found"] != "error"
	}
	must(r.t, os.MkdirAll(to, 0o755))
	if info.IsDir() {
		must(r.t, os.CopyFS(to, os.DirFS(with["path"]))) // fails if a file of the name exists
		return true
	}
	text, err := os.ReadFile(with["path"])
	must(r.t, err)
	must(r.t, os.WriteFile(filepath.Join(to, filepath.Base(with["path"])), text, 0o600))
	return true
}

func (r *jobRun) download(with map[string]string) bool {
	pattern := with["name"] + with["pattern"]
	from, err := filepath.Glob(filepath.Join(r.artifacts, pattern))
	must(r.t, err)
	for _, f := range from {
		must(r.t, os.CopyFS(with["path"], os.DirFS(f)))
	}
	return len(from) > 0
}

var expression = regexp.MustCompile(`\$\{\{\s*([^}]*?)\s*\}\}`)

// text replaces expressions by their values.
func (r *jobRun) text(s string) string {
	return expression.ReplaceAllStringFunc(s, func(e string) string {
		return r.value(expression.FindStringSubmatch(e)[1])
	})
}

// value is that of a name in an expression, or of a text in quotes.
func (r *jobRun) value(name string) string {
	if text, ok := strings.CutPrefix(name, "'"); ok {
		return strings.TrimSuffix(text, "'")
	}
	v, ok := r.context[name]
	if !ok {
		r.t.Fatalf("the expression %s is not simulated", name)
	}
	return v
}

// holds evaluates the few forms of conditions that the workflows have.
func (r *jobRun) holds(cond string) bool {
	cond = strings.TrimSuffix(strings.TrimPrefix(cond, "${{ "), " }}")
	if cond == "always()" || cond == "!cancelled()" {
		return true
	}
	for op, want := range map[string]bool{" == ": true, " != ": false} {
		if a, b, ok := strings.Cut(cond, op); ok {
			return (r.value(a) == r.value(b)) == want
		}
	}
	r.t.Fatalf("the condition %s is not simulated", cond)
	return false
}
