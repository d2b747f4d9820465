package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/fleet"
)

// A topic is a page of help that belongs to no command.
type topic struct{ name, short, text string }

var topics = []topic{
	{"exit-codes", "Exit codes of all commands", exitCodes},
	{"environment", "Environment variables", environmentVariables},
	{"selectors", "How --on, --exclude and HOST choose hosts", "SELECTOR is KEY=VALUE, or several of them joined by commas: all must match.\n" +
		"The keys are " + strings.Join(fleet.SelectorKeys(), ", ") + ".\n" + selectors},
}

const exitCodes = `Exit codes:
  0    success
  1    error: invalid configuration, missing credentials, a provider that does
       not answer, not approved, or interrupted before anything was changed
  2    differences were found (only the commands below)
  3    incomplete: something failed, was blocked or could not be compared
  130  aborted by a second Ctrl-C

By command (the others exit 0 or 1):
  plan                      0 done, whether or not there are changes
  plan --detailed-exitcode  0 no changes, 2 changes, 3 something could not be
                            compared; if both apply, the exit code is 2
  apply                     0 everything allowed was done and verified, 3 a host
                            failed, was blocked, interrupted or did not converge
  apply --fail-on-deferred  also 3 if a limit deferred hosts to a later run
  drift                     0 everything compared and no drift, 2 drift,
                            3 incomplete; if both apply, the exit code is 2
  drift --exit-zero         0 also with drift and when incomplete
  doctor, doctor account,   0 all checks ok, 3 a problem, warning or unknown
  doctor github
  hosts --wait ready        0 all Ready, 3 some are not Ready in time
  hold, unhold              0 done, 3 some hosts are not held, or still held
  quarantine, unquarantine  0 done, 3 some hosts are not, or still, quarantined
  cordon                    0 done, 3 some Nodes are not cordoned, uncordoned or
                            drained
  reboot                    0 restarted and in sync, 3 blocked or not in sync
  restart                   0 restarted and verified, 3 not verified or blocked
  replace                   0 replaced, 3 blocked, deferred or not finished
  release                   0 in the pool, 3 blocked, deferred or not finished
  init cluster              0 prepared, 3 something is still wrong
  fmt --check               0 formatted, 2 some files would change
  artifacts lock --check    0 up to date, 2 some digests would change
  sandbox run               the exit code of the command that it runs
`

const environmentVariables = `Flags:
  MACFLEET_<FLAG>        value of any flag: MACFLEET_ENVIRONMENT=production,
                         MACFLEET_LOCK_TIMEOUT=0s, MACFLEET_SANDBOX=1
  MACFLEET_VAR_<name>    value of a variable of the configuration (its name as
                         written); --var-file and --var override it

Credentials:
  SCW_ACCESS_KEY, SCW_SECRET_KEY, SCW_PROFILE, SCW_CONFIG_PATH
                         Scaleway API key, as for the scw command
  SCW_DEFAULT_PROJECT_ID project, if the environment block has no project_id
  KUBECONFIG             kubeconfig of the cluster, as for kubectl
  SSH_AUTH_SOCK          ssh agent

Output:
  NO_COLOR               disable colours, as --no-color does; overrides the rest
  FORCE_COLOR, CLICOLOR_FORCE
                         use colours without a terminal, e.g. CI (0: none)
  CLICOLOR=0             no colours
  TERM=dumb              no colours and no live progress
  LC_ALL, LC_CTYPE, LANG the first one set decides; without UTF-8, output is
                         ASCII
  CI                     no live progress and no prompts

In CI, GITHUB_ACTIONS, GITLAB_CI and BUILDKITE name the job in locks and
records. With GITHUB_ACTIONS=true, apply prints its plan and progress as groups.
`

const selectors = `
VALUE may hold the wildcards *, ? and [...]. ready is true or false. A repeated
--on adds hosts; --exclude removes hosts from the result.

  --on fleet=runners                  all hosts of one fleet
  --on fleet=runners,zone=fr-par-1    those in one zone
  --on name=0bccd --on fleet=macos    one host and all hosts of a fleet
  --exclude ready=false               skip hosts that are not Ready

A HOST, and the value of name, can be written in several ways:

  acme-production-runners-m2-0bccd    the full name
  runners/0bccd                       fleet and suffix, as screens show it
  0bccd                               the end of one name, 4 or more characters
  'runners/*'                         a pattern, where several hosts may match

A fleet, group, name, type or zone that no host has is an error, so a typo never
looks like a clean fleet. ready=true and ready=false may match no host; then
there is nothing to do.

ready is the condition of the host's Node, as kubectl shows it. It is read
before any host is contacted. Column NODE of macfleet hosts also uses what the
kubelet reports, so it can show "not Ready" up to a minute earlier.
`

// topicCmds are the topics as commands that cannot be run: macfleet help NAME prints them.
func topicCmds() []*cobra.Command {
	var out []*cobra.Command
	for _, t := range topics {
		out = append(out, &cobra.Command{Use: t.name, Short: t.short, Long: t.text})
	}
	return out
}

func topicNames() []string {
	var out []string
	for _, t := range topics {
		out = append(out, t.name)
	}
	return out
}
