package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/github"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// runnerTroubles are the incidents of GitHub's runner on a host, which must have one.
func runnerTroubles() []trouble {
	return []trouble{
		{
			Incident: Incident{"runner-deregistered", "someone deleted the host's runner on GitHub's pages: its listener stops for good"},
			remember: rememberEntry, cause: onEntry(deregister), lasts: entryGone, cure: restoreEntry,
		},
		{
			Incident: Incident{"runner-stale-registration", "another machine replaced the host's runner: GitHub's entry of that name has another id"},
			remember: rememberEntry, cause: onEntry(supersede), lasts: entryGone, cure: restoreEntry,
		},
		{
			Incident: Incident{"runner-offline", "GitHub shows the runner as offline although its listener runs"},
			remember: rememberEntry, cause: editEntry(func(r *github.Runner) { r.Status = "offline" }),
			lasts: ofEntry(func(r github.Runner) bool { return r.Status != "" }), cure: editEntry(func(r *github.Runner) { r.Status = "" }),
		},
		{
			Incident: Incident{"runner-on-two-hosts", "the host has a copy of another host's registration: only one of them gets a session"},
			remember: rememberSecond, cause: copyRegistration, lasts: registrationCopied, cure: restoreOwn,
		},
		{
			Incident: Incident{"runner-below-floor", "someone installed a version of the runner that GitHub no longer accepts: its listener stops for good"},
			remember: rememberEntry, cause: onRunner(installOld), lasts: oldInstalled, cure: onRunner(installFormer),
		},
		{
			Incident: Incident{"runner-stopped-itself", "the listener found another one's session for four minutes, and stopped for good with exit code 0"},
			remember: rememberEntry, cause: onMac(func(m *mac.Machine) error { return m.EndListener(5) }), lasts: listenerAway, cure: onRunner(startRunner),
		},
		{
			Incident: Incident{"runner-session-conflict", "GitHub answers the listener that another one has its session"},
			remember: rememberEntry, cause: polled(editEntry(func(r *github.Runner) { r.Conflict = true })),
			lasts: ofEntry(func(r github.Runner) bool { return r.Conflict }), cure: inConflict,
		},
		{
			Incident: Incident{"runner-update-broken", "the listener's own update left an empty runsvc.sh: the runner works until its next start"},
			remember: rememberEntry, cause: onRunner(breakUpdate), lasts: serviceEmpty, cure: restoreService,
		},
		{
			Incident: Incident{"busy-false-while-running", "a job runs on the runner, and GitHub shows it as idle and would delete it"},
			remember: rememberEntry, cause: both(onMac(startWork), editEntry(func(r *github.Runner) { r.Busy = "no" })),
			lasts: ofEntry(func(r github.Runner) bool { return r.Busy == "no" }), cure: both(onMac(finishWork), editEntry(func(r *github.Runner) { r.Busy = "" })),
		},
		{
			Incident: Incident{"busy-stuck", "GitHub shows the runner as busy although no job runs"},
			remember: rememberEntry, cause: editEntry(func(r *github.Runner) { r.Busy = "yes" }),
			lasts: ofEntry(func(r github.Runner) bool { return r.Busy == "yes" }), cure: editEntry(func(r *github.Runner) { r.Busy = "" }),
		},
		{
			Incident: Incident{"runner-busy", "a workflow's job runs on the runner"},
			remember: rememberEntry, cause: onMac(startWork), lasts: workRuns, cure: onMac(finishWork),
		},
		{
			Incident: Incident{"labels-edited", "someone replaced the runner's labels on GitHub's pages"},
			remember: rememberEntry, cause: editEntry(func(r *github.Runner) { r.Labels = []string{editedLabel} }),
			lasts: ofEntry(func(r github.Runner) bool { return slices.Contains(r.Labels, editedLabel) }), cure: restoreLabels,
		},
	}
}

// gitHubTroubles are the incidents of the App, and of the runner's releases.
func gitHubTroubles() []trouble {
	return []trouble{
		{
			Incident: Incident{"newest-version-refused", "an outage of GitHub refuses the runner's newest version"}, place: GitHubAccount,
			remember: nothing, cause: refuseNewest(true), lasts: newestRefused, cure: refuseNewest(false),
		},
		{
			Incident: Incident{"app-key-revoked", "someone deleted the private key of the GitHub App: no request is accepted"}, place: GitHubAccount,
			remember: nothing, cause: revokeKey, lasts: keyRevoked, cure: acceptKey,
		},
	}
}

// GitHubAccount is the name that stands for GitHub in incidents that affect the App or the runner's releases.
const GitHubAccount = "github"

const (
	editedLabel = "edited-by-hand"
	workName    = "build"
)

// runnerFiles are the files of a registration.
func runnerFiles() []string { return []string{".runner", ".credentials", ".credentials_rsaparams"} }

// rememberEntry records the host's runner: its folder, its job, and GitHub's entry.
func rememberEntry(_ context.Context, v *victim) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	state, err := machine.Runner()
	if err != nil {
		return fmt.Errorf("%w; fix: apply a fleet with github_runner to it first", err)
	}
	entry, found, err := v.entry(state.ID)
	if err != nil {
		return err
	}
	if !found || state.Target == "" {
		return fmt.Errorf("%w that is registered and loaded; fix: apply a fleet with github_runner to it first", mac.ErrNoRunner)
	}
	v.record.Settings = map[string]string{"id": strconv.FormatInt(state.ID, 10), "root": state.Root, "job": state.Target, "version": state.Installed}
	if v.record.File, err = store.Encode(entry); err != nil {
		return err
	}
	v.record.Planted, err = machine.ReadFile(state.Root + "/runsvc.sh")
	return err
}

// entry returns the entry of a runner with an id.
func (v *victim) entry(id int64) (github.Runner, bool, error) {
	all, err := v.world.github.Runners()
	i := slices.IndexFunc(all, func(r github.Runner) bool { return r.ID == id })
	if i < 0 {
		return github.Runner{}, false, err
	}
	return all[i], true, err
}

func (v *victim) entryID() int64 {
	id, _ := strconv.ParseInt(v.record.Settings["id"], 10, 64) // rememberEntry wrote it
	return id
}

// editEntry changes the entry of the host's runner, if it still exists.
func editEntry(change func(*github.Runner)) func(context.Context, *victim) error {
	return func(_ context.Context, v *victim) error {
		_, err := v.world.github.Edit(v.entryID(), change)
		return err
	}
}

// ofEntry reports whether the entry of the host's runner still has a property.
func ofEntry(has func(github.Runner) bool) func(context.Context, *victim) (bool, error) {
	return func(_ context.Context, v *victim) (bool, error) {
		entry, found, err := v.entry(v.entryID())
		return found && has(entry), err
	}
}

// both does two things one after the other.
func both(first, second func(context.Context, *victim) error) func(context.Context, *victim) error {
	return func(ctx context.Context, v *victim) error {
		if err := first(ctx, v); err != nil {
			return err
		}
		return second(ctx, v)
	}
}

// polled does something, and lets the host's listener notice it.
func polled(do func(context.Context, *victim) error) func(context.Context, *victim) error {
	return func(ctx context.Context, v *victim) error {
		if err := do(ctx, v); err != nil {
			return err
		}
		machine, err := v.machine()
		if err != nil {
			return err
		}
		if state, err := machine.Runner(); err != nil || state.PID == 0 {
			return err // nothing runs that could notice it
		}
		return settled(ctx, machine, machine.PollRunner())
	}
}

// onEntry changes GitHub's entry, and lets the host's listener notice it.
func onEntry(do func(*victim, github.Runner) error) func(context.Context, *victim) error {
	return polled(func(_ context.Context, v *victim) error {
		entry, found, err := v.entry(v.entryID())
		if err != nil || !found {
			return err
		}
		return do(v, entry)
	})
}

func deregister(v *victim, entry github.Runner) error { return v.world.github.Delete(entry.ID) }

// supersede replaces an entry by one with another id, as a registration from elsewhere does.
func supersede(v *victim, entry github.Runner) error {
	entry.ID, entry.Client, entry.Key, entry.Created = entry.ID+1000, "elsewhere", "elsewhere", time.Now().UTC()
	return errors.Join(v.world.github.Delete(v.entryID()), v.world.github.Put(entry))
}

func entryGone(_ context.Context, v *victim) (bool, error) {
	_, found, err := v.entry(v.entryID())
	if err != nil || found {
		return false, err
	}
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	state, err := machine.Runner()
	return err == nil && state.ID == v.entryID(), nil
}

// restoreEntry restores the entry, unless the host was registered again since.
func restoreEntry(ctx context.Context, v *victim) error {
	gone, err := entryGone(ctx, v)
	if err != nil || !gone {
		return err
	}
	var entry github.Runner
	if err := json.Unmarshal(v.record.File, &entry); err != nil {
		return err
	}
	if err := errors.Join(v.world.github.Delete(entry.ID+1000), v.world.github.Put(entry)); err != nil {
		return err
	}
	return onRunner(startRunner)(ctx, v)
}

// onRunner adapts a function of the Mac and its runner.
func onRunner(do func(context.Context, *victim, *mac.Machine) error) func(context.Context, *victim) error {
	return func(ctx context.Context, v *victim) error {
		machine, err := v.machine()
		if err != nil {
			return err
		}
		return do(ctx, v, machine)
	}
}

// startRunner starts the runner's job if it is loaded and has no process.
func startRunner(ctx context.Context, v *victim, m *mac.Machine) error {
	job, ok, err := m.Job(v.record.Settings["job"])
	if err != nil || !ok || job.PID != 0 {
		return err
	}
	return settled(ctx, m, m.RestartJob(v.record.Settings["job"]))
}

func listenerAway(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	job, ok, err := machine.Job(v.record.Settings["job"])
	return ok && job.PID == 0, err
}

// installOld installs the newest version that GitHub no longer accepts, and restarts the runner.
func installOld(ctx context.Context, v *victim, m *mac.Machine) error {
	all, err := v.world.github.Releases()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, expired)
	if i < 0 {
		return errors.New("GitHub accepts every version; fix: give a release in github/releases.json the field runs_until")
	}
	if err := m.UpdateRunner(ctx, all[i].Version, false); err != nil {
		return err
	}
	return settled(ctx, m, m.RestartJob(v.record.Settings["job"]))
}

func expired(r github.Release) bool {
	return !r.RunsUntil.IsZero() && r.RunsUntil.Before(time.Now())
}

func oldInstalled(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	state, err := machine.Runner()
	if err != nil {
		return false, err
	}
	all, err := v.world.github.Releases()
	return slices.ContainsFunc(all, func(r github.Release) bool { return r.Version == state.Installed && expired(r) }), err
}

func installFormer(ctx context.Context, v *victim, m *mac.Machine) error {
	old, err := oldInstalled(ctx, v)
	if err != nil || !old {
		return err
	}
	if err := m.UpdateRunner(ctx, v.record.Settings["version"], false); err != nil {
		return err
	}
	return startRunner(ctx, v, m)
}

func inConflict(ctx context.Context, v *victim) error {
	return both(polled(editEntry(func(r *github.Runner) { r.Conflict = false })), onRunner(startRunner))(ctx, v)
}

func breakUpdate(ctx context.Context, v *victim, m *mac.Machine) error {
	all, err := v.world.github.Releases()
	if err != nil || len(all) == 0 {
		return err
	}
	return m.UpdateRunner(ctx, all[0].Version, true)
}

func serviceEmpty(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	data, err := machine.ReadFile(v.record.Settings["root"] + "/runsvc.sh")
	return err == nil && len(data) == 0, nil
}

// restoreService restores the empty files of the service.
func restoreService(ctx context.Context, v *victim) error {
	empty, err := serviceEmpty(ctx, v)
	if err != nil || !empty {
		return err
	}
	machine, err := v.machine()
	if err != nil {
		return err
	}
	for _, name := range []string{"runsvc.sh", "bin/runsvc.sh"} {
		if err := machine.WriteFile(path.Join(v.record.Settings["root"], name), v.record.Planted, 501, 20, 0o755); err != nil {
			return err
		}
	}
	return startRunner(ctx, v, machine)
}

func startWork(m *mac.Machine) error { return m.StartWork(workName) }

// finishWork ends the job that an incident started, if it still runs.
func finishWork(m *mac.Machine) error {
	state, err := m.Runner()
	if err != nil || state.Job != workName {
		return err
	}
	return m.FinishWork()
}

func workRuns(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	state, err := machine.Runner()
	return state.Job != "", err
}

func restoreLabels(ctx context.Context, v *victim) error {
	var before github.Runner
	if err := json.Unmarshal(v.record.File, &before); err != nil {
		return err
	}
	return editEntry(func(r *github.Runner) {
		if slices.Contains(r.Labels, editedLabel) {
			r.Labels = before.Labels
		}
	})(ctx, v)
}

// refuseNewest sets whether GitHub refuses the newest version.
func refuseNewest(refuse bool) func(context.Context, *victim) error {
	return func(_ context.Context, v *victim) error {
		return v.world.github.SetReleases(func(all []github.Release) []github.Release {
			if len(all) > 0 {
				all[0].Refused = refuse
			}
			return all
		})
	}
}

func newestRefused(_ context.Context, v *victim) (bool, error) {
	all, err := v.world.github.Releases()
	return len(all) > 0 && all[0].Refused, err
}

// appKey is the name of the App's first key.
var appKey = strings.TrimPrefix(GitHubKeyRef, "file://")

func revokeKey(_ context.Context, v *victim) error {
	if err := v.world.github.Revoke(); err != nil {
		return err
	}
	return v.world.github.Set(func(s *github.Settings) { s.RevokedKeys = append(s.RevokedKeys, appKey) })
}

func keyRevoked(_ context.Context, v *victim) (revoked bool, err error) {
	err = v.world.github.Set(func(s *github.Settings) { revoked = slices.Contains(s.RevokedKeys, appKey) })
	return revoked, err
}

func acceptKey(_ context.Context, v *victim) error {
	return v.world.github.Set(func(s *github.Settings) {
		s.RevokedKeys = slices.DeleteFunc(s.RevokedKeys, func(name string) bool { return name == appKey })
	})
}
