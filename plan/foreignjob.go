package plan

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

var codeForeignJob = NewCode("foreign-job", Critical, "a launchd job of another system schedules work on the host or configures it",
	"stop the job with the command that the plan prints, or add its label to ignore_jobs in the guardrails block")

// Job is a launchd job that is neither macOS's nor macfleet's.
type Job struct {
	Target  string `json:"target"`            // domain and label: "system/org.acme.worker", "gui/501/gitlab-runner"
	Path    string `json:"path,omitempty"`    // of its property list; empty: launchd does not say
	Program string `json:"program,omitempty"` // the path that it runs; empty: not loaded, or launchd does not say
	Loaded  bool   `json:"loaded"`            // false: the next boot or login loads it
}

// Label returns the job's label.
func (j Job) Label() string { return path.Base(j.Target) }

// rule recognises by a job's label or program which system it belongs to.
type rule struct {
	system   string
	labels   []string // patterns of path.Match
	programs []string // names of files
}

// controllers are the systems that schedule work on Macs or configure them. Agents of device management (Jamf, Munki,
// Kandji, Intune) are left out: they schedule no work, and what they change shows as drift.
var controllers = []rule{
	{"Orchard", []string{"org.cirruslabs.orchard*", "homebrew.mxcl.orchard*"}, []string{"orchard"}},
	{"Cilicon", nil, []string{"Cilicon"}},
	{"Anka", []string{"com.veertu.anka.*"}, []string{"ankacluster"}},
	{actionsRunner, []string{"actions.runner.*"}, nil},
	{"GitLab Runner", []string{"gitlab-runner*", "homebrew.mxcl.gitlab-runner*"}, []string{"gitlab-runner"}},
	{"Buildkite", []string{"com.buildkite.buildkite-agent*", "homebrew.mxcl.buildkite-agent*"}, []string{"buildkite-agent"}},
	{"CircleCI", []string{"com.circleci.*"}, []string{"circleci-runner", "circleci-launch-agent"}},
	{"TeamCity", []string{"jetbrains.teamcity.*"}, nil},
	{"Azure Pipelines", []string{"vsts.agent.*"}, nil},
	{"Jenkins", []string{"org.jenkins-ci*", "homebrew.mxcl.jenkins*"}, nil},
	{"Chef", []string{"com.chef.*", "com.opscode.chef-client*"}, []string{"chef-client"}},
	{"Puppet", []string{"com.puppetlabs.*", "puppet", "pxp-agent"}, []string{"pxp-agent"}},
	{"Salt", []string{"com.saltstack.*"}, []string{"salt-minion"}},
	{"ansible-pull", nil, []string{"ansible-pull"}},
}

// actionsRunner is the program that makes a host a builder.
const actionsRunner = "an Actions runner"

// has reports whether a job belongs to the system.
func (r rule) has(j Job) bool {
	return matches(r.labels, j.Label()) || slices.Contains(r.programs, path.Base(j.Program))
}

// matches reports whether a text matches one of the patterns.
func matches(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, text)
		return ok && err == nil
	})
}

// Controlling returns those jobs that belong to systems known to schedule work on Macs or to configure them.
func Controlling(all []Job) []Job {
	var out []Job
	for _, j := range all {
		if systemOf(j) != "" {
			out = append(out, j)
		}
	}
	return out
}

// systemOf names the system that a job belongs to, or "".
func systemOf(j Job) string {
	if i := slices.IndexFunc(controllers, func(r rule) bool { return r.has(j) }); i >= 0 {
		return controllers[i].system
	}
	return ""
}

// ForeignJob returns why a host with these jobs of other systems must not be changed, or nil: two systems that
// schedule work on a Mac interrupt each other's, and two that configure it undo each other's changes. own is the label of the job
// of macfleet's own CI agent; empty: there is none.
func ForeignJob(cfg *fleet.Config, seen inventory.Seen[[]Job], spec fleet.Spec, own string) *Trouble {
	all, _ := seen.Get()
	var texts, commands []string
	for _, j := range all {
		system := systemOf(j)
		if matches(cfg.Guardrails.IgnoreJobs, j.Label()) || system == actionsRunner && spec.BuildsImages() || own != "" && j.Label() == own {
			continue
		}
		text := fmt.Sprintf("the job %s of %s", j.Target, system)
		if j.Path != "" {
			text += " (" + j.Path + ")"
		}
		command := "sudo launchctl disable " + j.Target
		if j.Loaded {
			command += " && sudo launchctl bootout " + j.Target
		} else {
			text += ", which the next boot loads"
		}
		texts, commands = append(texts, text), append(commands, command)
	}
	if len(texts) == 0 {
		return nil
	}
	return codeForeignJob.Trouble("another system controls it: "+strings.Join(texts, "; "),
		"when its work is done, on the host: "+strings.Join(commands, "; ")+"; or, if both may control it, add the label to ignore_jobs in the guardrails block")
}
