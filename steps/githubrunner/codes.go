package githubrunner

import "github.com/macfleet/macfleet/plan"

// The step's codes.
var (
	codePodOnBuilder = plan.NewCode("pod-on-builder", plan.Critical, "a Pod runs on the Node of a builder",
		"give the workload a nodeSelector for another fleet, then delete the Pod")
	codeLeftOver   = plan.NewCode("runner-left-over", plan.Notice, "a CI service lists an offline agent whose host is gone")
	codeNotWanted  = plan.NewCode("runner-not-wanted", plan.Notice, "the configuration no longer has a runner for the host")
	codeEntryStays = plan.NewCode("runner-entry-stays", plan.Notice, "macfleet has no credentials to delete the runner's entry at GitHub",
		"delete it on GitHub's page of the runners, or wait: GitHub deletes a runner that was offline for 14 days")

	codeMissing       = plan.NewCode("runner-missing", plan.Critical, "GitHub's runner is not installed on a builder")
	codeBelowFloor    = plan.NewCode("runner-below-floor", plan.Critical, "the runner's version is below min_version, or GitHub no longer accepts it")
	codeExpires       = plan.NewCode("runner-version-expires", plan.Warning, "GitHub stops accepting the runner's version within a week, and the runner has not updated itself")
	codeUpdateBroken  = plan.NewCode("runner-update-broken", plan.Critical, "the runner's own update left an empty runsvc.sh: the runner does not start again")
	codeNewestRefused = plan.NewCode("newest-version-refused", plan.Critical, "GitHub refuses the newest version of the runner, as in an outage: there is none to install instead",
		"check githubstatus.com, then run macfleet plan again")
	codeArchiveUnknown = plan.NewCode("runner-archive-unknown", plan.Warning, "the runner's archive, or its SHA-256, is unknown",
		"set version and sha256 in the github_runner block, from the release notes of actions/runner")

	codeNotRegistered  = plan.NewCode("runner-not-registered", plan.Critical, "the runner was never registered")
	codeHalfRegistered = plan.NewCode("runner-half-registered", plan.Critical, "a registration of the runner was interrupted")
	codeDeregistered   = plan.NewCode("runner-deregistered", plan.Critical, "someone deleted the runner at GitHub, or GitHub did because it was offline for 14 days")
	codeStale          = plan.NewCode("runner-stale-registration", plan.Critical, "GitHub's entry of the runner's name has another id: another machine registered under it")
	codeOnTwoHosts     = plan.NewCode("runner-on-two-hosts", plan.Critical, "the host has the registration of another host's runner")
	codeRenamed        = plan.NewCode("runner-renamed", plan.Warning, "the runner's name is not the host's")
	codeElsewhere      = plan.NewCode("runner-scope-differs", plan.Warning, "the runner is registered at another organization or repository")
	codeOptions        = plan.NewCode("runner-options-differ", plan.Warning, "the runner was registered with other options, which only a new registration changes")
	codeConflict       = plan.NewCode("runner-session-conflict", plan.Critical, "GitHub answers the runner that another one has its session")
	codeNameInUse      = plan.NewCode("runner-name-in-use", plan.Critical, "another machine is connected under the runner's name",
		"find the machine on GitHub's page of the runner, and remove the runner there; then run macfleet apply again")

	codeLabelsEdited = plan.NewCode("labels-edited", plan.Warning, "the runner's labels or its group at GitHub differ from the configuration")
	codeFenceLeft    = plan.NewCode("fence-left-by-run", plan.Critical, "an unfinished apply left the runner fenced: it gets no jobs")
	codeFenceWeak    = plan.NewCode("fence-weak", plan.Notice, "the runner still gets jobs while macfleet waits for it to become idle",
		"set fence_group in the github_runner block to a runner group without repositories")
	codeGroupMissing = plan.NewCode("runner-group-missing", plan.Warning, "the organization has no runner group of the configured name",
		"create the group at GitHub, or correct runner_group or fence_group; macfleet doctor github lists the groups")
	codePublic = plan.NewCode("runner-public", plan.Critical, "workflows of public repositories may run on the builder: anyone who opens a pull request could run code on it",
		"turn off \"Allow public repositories\" of the runner group at GitHub or make the repository private, or set allow_public_repositories = true")
	codeReadOnly = plan.NewCode("runner-read-only", plan.Warning, "macfleet's credentials may list runners but not change them",
		"give the App or the token write access to self-hosted runners; macfleet doctor github names the permission")

	codeNotLoaded  = plan.NewCode("runner-not-loaded", plan.Critical, "launchd has no job for the runner")
	codeJobEdited  = plan.NewCode("runner-job-edited", plan.Warning, "the runner's job or one of its files differs from what macfleet writes")
	codeStopped    = plan.NewCode("runner-stopped-itself", plan.Critical, "the runner stopped for good, and launchd does not restart it")
	codeCrashed    = plan.NewCode("runner-crashed", plan.Critical, "the runner's job failed")
	codeOffline    = plan.NewCode("runner-offline", plan.Critical, "GitHub shows the runner as offline although it runs")
	codeClock      = plan.NewCode("runner-clock-off", plan.Critical, "GitHub refuses the runner because the host's clock is wrong", "sudo sntp -sS time.apple.com on the host, then run macfleet apply again")
	codeSecond     = plan.NewCode("second-runner", plan.Warning, "another runner's job is loaded on the host: its jobs compete with the builder's", "remove it on the host: ./svc.sh uninstall and ./config.sh remove in its folder")
	codeBusyUnseen = plan.NewCode("busy-false-while-running", plan.Notice, "a job runs on the host, and GitHub shows its runner as idle", "none needed: macfleet waits for the job on the host, whatever GitHub shows")
	codeBusyStuck  = plan.NewCode("busy-stuck", plan.Notice, "GitHub shows the runner as busy, and no job runs on the host", "none needed while no change needs an idle host; then cancel the job at GitHub, or: macfleet apply --force-busy NAME")
)
