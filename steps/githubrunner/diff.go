package githubrunner

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/launchd"
)

// diff compares a host's runner with the configuration.
type diff struct {
	step    githubRunner
	view    plan.View
	seen    state
	at      folder // the runner's folder as seen; zero: there is none
	root    string // its path, also if it is still to be made
	service inventory.AgentService
	entry   *inventory.Agent // of the id in the runner's settings; nil: GitHub has none
	said    said
	label   string
	plist   string
	job     launchd.Service // of the label, if it is loaded
	loads   bool            // it is loaded
	alive   launchd.Service // the job with a process that runs from the folder, whatever its label; zero: none
	former  []string        // other labels of jobs that run from the folder
}

func newDiff(g githubRunner, v plan.View, seen state) *diff {
	d := &diff{step: g, view: v, seen: seen, service: v.Peer(inventory.CIService).CI(), label: g.label()}
	d.at = seen.chosen(d.label, g.desired.Scope())
	d.root = cmp.Or(d.at.root, "/Users/"+g.host.User+"/actions-runner")
	_, d.plist = g.job(d.root)
	d.job, d.loads = seen.services[d.label]
	d.alive, d.said = d.job, lastSaid(seen.logs[d.label], d.at.version)
	for _, label := range seen.labels(d.root, "") {
		if label == d.label {
			continue
		}
		d.former = append(d.former, label)
		if other := seen.services[label]; d.alive.PID == 0 && other.PID != 0 {
			d.alive, d.said = other, lastSaid(seen.logs[label], d.at.version)
		}
	}
	if a, ok := d.service.Agent(d.at.settings.id()); ok && d.at.settings.at(g.desired.Scope()) {
		d.entry = &a
	}
	return d
}

// said is what the listener's last line means.
type said string

const (
	saidListens  said = "listens for jobs"
	saidDeleted  said = "GitHub deleted its registration"
	saidConflict said = "another runner has its session"
	saidRefused  said = "GitHub refuses its version"
	saidClock    said = "the host's clock is wrong"
	saidNothing  said = ""
)

// sayings are what lines of the listener contain.
var sayings = map[string]said{
	"Listening for Jobs":                        saidListens,
	"registration has been deleted":             saidDeleted,
	"no longer exists on the server":            saidDeleted,
	"Not configured":                            saidDeleted,
	"session for this runner already exists":    saidConflict,
	"SessionConflictException":                  saidConflict,
	"is deprecated and cannot receive messages": saidRefused,
	"clock may be out of sync":                  saidClock,
}

// lastSaid returns what the last line of the listener's output means for the installed version: an earlier one may have been
// refused.
func lastSaid(lines []string, version string) said {
	for _, line := range slices.Backward(lines) {
		if strings.Contains(line, ": Running job: ") || strings.Contains(line, ": Job ") { // a workflow's author chooses its name
			continue
		}
		for text, means := range sayings {
			if strings.Contains(line, text) {
				if means == saidRefused && version != "" && !strings.Contains(line, "v"+version+" ") {
					return saidNothing
				}
				return means
			}
		}
	}
	return saidNothing
}

// runs reports whether the runner has a process.
func (d *diff) runs() bool { return d.alive.PID != 0 }

// The names of settings.
const (
	nameProgram      = "runner"
	nameRegistration = "registration"
	nameLabels       = "labels"
	nameDefaults     = "GitHub's own labels"
	nameGroup        = "group"
	namePublic       = "public repositories"
	nameWork         = "work folder"
	nameMode         = "mode"
	nameLoaded       = "job in launchd"
	nameFile         = "job file"
	nameService      = "runsvc.sh"
	namePath         = "search path"
	nameProcess      = "process"
	nameOnline       = "status at GitHub"
	nameEarlier      = "earlier run"
	nameFence        = "fence"
)

// settings compares everything. Without a host only the wanted side means something.
func (d *diff) settings() []kit.Setting {
	g := d.step.desired
	program, _ := d.program()
	registration, _ := d.registration()
	all := append(make([]kit.Setting, 0, 16), // all there are
		kit.Compare(nameProgram, program, d.accepted()),
		kit.Compare(nameRegistration, registration, d.registered()),
		d.labels(),
		kit.Compare(nameDefaults, d.defaults(), kit.Choose(*g.DefaultLabels, "set", "not set")),
		kit.Compare(namePublic, d.public(), kit.Choose(*g.AllowPublicRepositories, "allowed", "refused")),
		kit.Compare(nameWork, cmp.Or(d.at.settings.WorkFolder, "none"), *g.WorkFolder),
		kit.Compare(nameMode, d.at.settings.mode(), *g.Mode))
	if value(g.Organization) != "" {
		all = append(all, d.group())
	}
	process, _ := d.process()
	return append(all,
		kit.Compare(nameLoaded, d.loaded(), kit.AsRendered),
		kit.Compare(nameFile, d.file(), kit.AsRendered),
		kit.Compare(nameService, d.script(), "complete"),
		kit.Compare(namePath, kit.Choose(d.at.path == strings.TrimSpace(searchPath), kit.AsRendered, cmp.Or(d.at.path, "none")), kit.AsRendered),
		kit.Compare(nameProcess, process, "runs"),
		kit.Compare(nameOnline, d.online(), "online"),
		kit.Compare(nameEarlier, kit.Choose(d.view.Pending, "unfinished", "finished"), "finished"),
		kit.Compare(nameFence, d.fence(), "none"))
}

func (d *diff) accepted() string {
	if least := value(d.step.desired.MinVersion); least != "" {
		return "installed, " + least + " or newer"
	}
	return "installed"
}

// soon is how long before GitHub's date a runner that has not updated itself is updated by macfleet.
const soon = 7 * 24 * time.Hour

// program says whether the programs are installed and accepted, and why not. Their version does not matter as long as
// GitHub and min_version accept it: the runner updates itself.
func (d *diff) program() (string, plan.Reason) {
	has := d.at.version
	newest, _ := d.service.Newest.Get()
	sunset, dated := d.service.Sunsets[has]
	switch least := value(d.step.desired.MinVersion); {
	case !d.at.has(listenerFile):
		return "missing", plan.Reason{Code: codeMissing, Text: "GitHub's runner is not installed in " + d.root}
	case d.at.sizes[newServiceFile] == 0:
		return "damaged by an update", plan.Reason{Code: codeUpdateBroken, Text: d.root + "/bin/runsvc.sh is empty or missing, so the runner does not start again"}
	case before(has, least):
		return has + ", below " + least, plan.Reason{Code: codeBelowFloor, Text: "the runner is " + has + ", and min_version is " + least}
	case d.said == saidRefused && d.better():
		return has + ", refused by GitHub", plan.Reason{Code: codeBelowFloor, Text: "GitHub no longer accepts runner " + has}
	case dated && !sunset.Running.IsZero() && !d.view.Taken.IsZero() && d.view.Taken.After(sunset.Running):
		return has + ", refused by GitHub", plan.Reason{Code: codeBelowFloor, Text: "GitHub no longer accepts runner " + has + " since " + day(sunset.Running)}
	case dated && !sunset.Running.IsZero() && !d.view.Taken.IsZero() && d.view.Taken.After(sunset.Running.Add(-soon)) && before(has, newest.Version):
		return has + ", accepted until " + day(sunset.Running), plan.Reason{Code: codeExpires,
			Text: "GitHub accepts runner " + has + " until " + day(sunset.Running) + ", and it has not updated itself"}
	}
	return d.accepted(), plan.Reason{}
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

func (d *diff) registered() string { return "under the host's name at " + d.step.desired.Scope() }

// registration says how the runner is registered, and why it must be registered again. The host's files and GitHub's list
// decide together: each looks right by itself in some incident.
func (d *diff) registration() (string, plan.Reason) {
	own, name, scope := d.at.settings, d.step.host.Name, d.step.desired.Scope()
	shown := own.AgentName + " (id " + own.id() + ")"
	because := func(seen string, code plan.Code, format string, args ...any) (string, plan.Reason) {
		return seen, plan.Reason{Code: code, Text: fmt.Sprintf(format, args...)}
	}
	named := d.service.Named(name)
	switch {
	case d.at.half():
		return because("half made", codeHalfRegistered, "a registration in %s was interrupted", d.root)
	case own.AgentID == 0:
		return because("none", codeNotRegistered, "the runner is not registered")
	case d.view.CopiedRegistration(own.AgentName, name):
		return because("of "+own.AgentName, codeOnTwoHosts, "the host has the registration of %s, which is another host", shown)
	case !strings.EqualFold(own.AgentName, name):
		return because("as "+own.AgentName, codeRenamed, "the runner is registered as %s", shown)
	case !own.at(scope):
		return because("under the host's name at "+own.scope(), codeElsewhere, "the runner is registered at %s", own.scope())
	case d.entry == nil && len(named) > 0:
		return because("replaced", codeStale, "GitHub has no runner with the id %s; its entry %s has the id %s", own.id(), named[0].Name, named[0].ID)
	case d.entry == nil, d.said == saidDeleted && !d.runs():
		return because("deleted at GitHub", codeDeregistered, "GitHub no longer has the runner %s", shown)
	case d.said == saidConflict:
		return because("in conflict", codeConflict, "GitHub answers the runner that another one has its session: a copy of its registration, or a listener that was killed")
	case d.defaults() != kit.Choose(*d.step.desired.DefaultLabels, "set", "not set"): // the settings of the options differ, and not this one
		return because(d.registered(), codeOptions, "GitHub's own labels of the runner are %s", d.defaults())
	case own.WorkFolder != *d.step.desired.WorkFolder:
		return because(d.registered(), codeOptions, "the runner's work folder is %s", own.WorkFolder)
	case own.mode() != *d.step.desired.Mode:
		return because(d.registered(), codeOptions, "the runner is registered as %s", own.mode())
	}
	return d.registered(), plan.Reason{}
}

// labels compares the labels that can be changed.
func (d *diff) labels() kit.Setting {
	want := kit.ListOr(d.step.desired.OwnLabels(), "none")
	seen := "none"
	if d.entry != nil {
		seen = kit.ListOr(sortedLower(d.entry.Labels), "none")
	}
	if d.view.Fenced {
		seen = want
	}
	return kit.Compare(nameLabels, seen, want)
}

// defaults says whether the entry has the labels that GitHub sets by itself.
func (d *diff) defaults() string {
	if d.entry == nil {
		return "no entry"
	}
	return kit.Choose(len(d.entry.Fixed) > 0, "set", "not set")
}

// wantedGroup returns the group that the runner should be in; ok is false if GitHub has no such group, or its groups are
// not known.
func (d *diff) wantedGroup() (inventory.AgentGroup, bool) {
	return d.service.GroupNamed(value(d.step.desired.RunnerGroup))
}

// group compares the runner's group. Where the groups are not known, it is not compared.
func (d *diff) group() kit.Setting {
	want := cmp.Or(value(d.step.desired.RunnerGroup), "default")
	wanted, known := d.wantedGroup()
	seen := want
	switch {
	case d.entry == nil && d.view.Peer(inventory.CIService) != nil:
		seen = "no entry"
	case d.view.Fenced, !known, d.entry == nil, d.entry.Group == wanted.ID:
	default:
		seen = "id " + d.entry.Group
		groups, _ := d.service.Groups.Get()
		if i := slices.IndexFunc(groups, func(g inventory.AgentGroup) bool { return g.ID == d.entry.Group }); i >= 0 {
			seen = kit.Choose(groups[i].Default, "default", groups[i].Name)
		}
	}
	return kit.Compare(nameGroup, seen, want)
}

// public says whether public repositories may use the group in which the runner should be.
func (d *diff) public() string {
	switch g, known := d.wantedGroup(); {
	case *d.step.desired.AllowPublicRepositories:
		return "allowed"
	case known && g.Public:
		return "may use the group " + g.Name
	case d.ofEveryone():
		return "registered at one"
	}
	return "refused"
}

// ofEveryone reports whether the runner registers at a public repository.
func (d *diff) ofEveryone() bool {
	public, _ := d.service.Public.Get()
	return public
}

func (d *diff) loaded() string {
	logs := "/Users/" + d.step.host.User + "/Library/Logs/" + d.label
	want := launchd.Job{Arguments: []string{d.root + "/runsvc.sh"}, Stdout: logs + "/stdout.log", Stderr: logs + "/stderr.log"}
	differs := d.job
	differs.User = ""
	switch {
	case !d.loads:
		return "not loaded"
	case len(differs.Differs(want)) > 0:
		return "other " + strings.Join(differs.Differs(want), ", ")
	case d.job.ExitTimeout != 0 && d.job.ExitTimeout != exitTimeout:
		return fmt.Sprintf("ends after %d s", d.job.ExitTimeout)
	}
	return kit.AsRendered
}

func (d *diff) file() string {
	l, there := d.seen.listOf(d.label)
	switch {
	case !there:
		return "missing"
	case l.sha != digest(d.plist):
		return "edited"
	case l.access != d.step.host.User+":staff:644":
		return "owner and mode " + l.access
	}
	return kit.AsRendered
}

func digest(text string) string {
	var short [2 << 10]byte // most texts fit, so nothing is allocated
	sum := sha256.Sum256(append(short[:0], text...))
	return hex.EncodeToString(sum[:])
}

// script says whether the script that launchd starts is complete.
func (d *diff) script() string {
	size, there := d.at.sizes[serviceFile]
	switch {
	case !there:
		return "missing"
	case size == 0:
		return "empty"
	case size != d.at.sizes[newServiceFile]:
		return "of another version"
	}
	return "complete"
}

// process says whether the runner runs, and why not.
func (d *diff) process() (string, plan.Reason) {
	cause := string(d.said)
	if d.said == saidListens {
		cause = ""
	}
	switch {
	case !d.loads:
		return "none", plan.Reason{Code: codeNotLoaded, Text: "launchd has no job " + d.label}
	case !d.runs() && d.said == saidRefused: // an outage refused the newest version once; only another start shows that it is over
		return "stopped: " + cause, plan.Reason{Code: codeNewestRefused,
			Text: "GitHub refused runner " + d.at.version + ", and offers no newer one: nothing is installed, and the runner is started again"}
	case !d.runs() && d.job.Crashed():
		return "failed, exit code " + d.job.LastExit, plan.Reason{Code: codeCrashed, Text: "the runner's job failed with exit code " + d.job.LastExit}
	case !d.runs():
		return "stopped" + kit.Choose(cause != "", ": "+cause, ""), plan.Reason{Code: codeStopped,
			Text: "the runner stopped for good: " + cmp.Or(cause, "its output does not say why")}
	}
	return "runs", plan.Reason{}
}

// online compares GitHub's view of a runner that works as far as the host can tell.
func (d *diff) online() string {
	switch {
	case d.entry == nil:
		return "no entry"
	case !d.entry.Online:
		return "offline"
	}
	return "online"
}

func (d *diff) fence() string {
	if f := d.view.Fence; f != nil {
		return "left by run " + f.Run
	}
	return "none"
}

// exitTimeout is how many seconds launchd gives the runner to end: a listener that is killed leaves its session at GitHub,
// and cannot connect again for minutes.
const exitTimeout = 60

// goal returns the version to install; ok is false if there is none that is better than the installed one.
func (d *diff) goal() (fleet.Artifact, bool) {
	g := d.step.desired
	newest, offered := d.service.Newest.Get()
	a := fleet.Artifact{Name: "actions-runner", Fetch: fleet.FetchHost}
	switch want := value(g.Version); {
	case want != "" && !before(want, value(g.MinVersion)) && (d.at.version == "" || before(d.at.version, want) || want == d.at.version && d.damaged()):
		a.Version, a.SHA256 = want, value(g.SHA256)
		a.Source = "https://github.com/actions/runner/releases/download/v" + want + "/actions-runner-osx-arm64-" + want + ".tar.gz"
		if offered && newest.Version == want {
			a.Source, a.SHA256 = newest.URL, cmp.Or(a.SHA256, newest.SHA256)
		}
	case offered:
		a.Version, a.SHA256, a.Source = newest.Version, newest.SHA256, newest.URL
	default:
		return a, false
	}
	return a, d.at.version == "" || d.damaged() || before(d.at.version, a.Version)
}

// better reports whether GitHub offers a version to install instead of the present one.
func (d *diff) better() bool { _, ok := d.goal(); return ok }

// damaged reports whether the installed programs cannot be started again.
func (d *diff) damaged() bool { return d.at.sizes[newServiceFile] == 0 }
