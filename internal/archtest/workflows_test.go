package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/macfleet/macfleet/internal/scripttest"
)

// TestWorkflows checks the project's workflows: every action is pinned by its commit, no job writes to the repository, keeps a token
// or lacks a time limit, a newer run does not wait for an older one, and the nightly run tries all shares.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../.github/workflows/*.yml")
	if err != nil || len(files) != 2 {
		t.Fatalf("workflows %q: %v", files, err)
	}
	var shares []int
	pinned := regexp.MustCompile(`^actions/[a-z-]+@[0-9a-f]{40}$`)
	for _, name := range files {
		text, err := os.ReadFile(name)
		must(t, err)
		var w struct {
			Permissions map[string]string `json:"permissions"`
			Concurrency struct{ Group string }
			Jobs        map[string]struct {
				Permissions map[string]string `json:"permissions"`
				Timeout     int               `json:"timeout-minutes"`
				Strategy    struct{ Matrix struct{ Share []int } }
				Steps       []struct {
					Uses string            `json:"uses"`
					With map[string]string `json:"with"`
				} `json:"steps"`
			} `json:"jobs"`
		}
		if err := yaml.Unmarshal(text, &w); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" || w.Concurrency.Group == "" || len(w.Jobs) == 0 {
			t.Errorf("%s: permissions %v, concurrency %q, %d jobs", name, w.Permissions, w.Concurrency.Group, len(w.Jobs))
		}
		if regexp.MustCompile(`pull_request_target|secrets\.`).Match(text) {
			t.Errorf("%s: the checks need no secret, and run for pull requests without one", name)
		}
		for id, job := range w.Jobs {
			shares = append(shares, job.Strategy.Matrix.Share...)
			if job.Permissions != nil || job.Timeout == 0 || job.Timeout > 60 {
				t.Errorf("%s: job %s: permissions %v, %d minutes", name, id, job.Permissions, job.Timeout)
			}
			for _, s := range job.Steps {
				if s.Uses != "" && !pinned.MatchString(s.Uses) {
					t.Errorf("%s: job %s uses %s, which is not pinned by its commit", name, id, s.Uses)
				}
				if regexp.MustCompile(`^actions/checkout@`).MatchString(s.Uses) && s.With["persist-credentials"] != "false" {
					t.Errorf("%s: job %s leaves the token in the folder", name, id)
				}
			}
		}
	}
	for n := range scripttest.Shares + 1 {
		if slices.Contains(shares, n) != (n < scripttest.Shares) {
			t.Errorf("the nightly run tries the shares %v of %d", shares, scripttest.Shares)
		}
	}
}
