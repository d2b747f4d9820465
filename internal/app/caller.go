package app

import (
	"crypto/rand"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/macfleet/macfleet/plan"
)

// newRun names the run of this command.
func newRun(now time.Time) plan.Run {
	return plan.Run{ID: strings.ToLower(rand.Text()[:10]), Who: runner(os.Getenv), Started: now}
}

// runner is who runs this: a person at a machine, or a job of CI as people find it
// again there.
func runner(env func(string) string) string {
	for _, ci := range []struct{ is, name, job, actor string }{
		{"GITHUB_ACTIONS", "GitHub Actions", env("GITHUB_REPOSITORY") + " run " + env("GITHUB_RUN_ID"), env("GITHUB_ACTOR")},
		{"GITLAB_CI", "GitLab CI", env("CI_PROJECT_PATH") + " job " + env("CI_JOB_ID"), env("GITLAB_USER_LOGIN")},
		{"BUILDKITE", "Buildkite", env("BUILDKITE_PIPELINE_SLUG") + " build " + env("BUILDKITE_BUILD_NUMBER"), env("BUILDKITE_BUILD_CREATOR")},
	} {
		if env(ci.is) == "" {
			continue
		}
		text := ci.name + " " + strings.TrimSpace(ci.job)
		if ci.actor != "" {
			text += " by " + ci.actor
		}
		return text
	}
	return caller()
}

// caller is who runs this, for a note that others read.
func caller() string {
	name := "somebody"
	if me, err := user.Current(); err == nil {
		name = me.Username
	}
	return name + "@" + machine()
}

// machine is the name of the one this runs on.
func machine() string {
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "an unknown machine"
}
