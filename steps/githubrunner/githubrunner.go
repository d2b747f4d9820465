// Package githubrunner is the step that makes a host a builder: its kubelet does not garbage-collect virtual machines, no
// Pod may run on its Node, and GitHub's runner takes jobs on it.
package githubrunner

import (
	"cmp"
	"embed"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/lists"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/launchd"
)

//go:embed scripts
var files embed.FS

var scripts = kit.ScriptsOf(files)

// githubRunner compares a host's runner in three places at once: its files, its job in launchd, and its entry at GitHub.
// A runner that works is not touched: it updates itself, so the bytes of its programs are never compared.
type githubRunner struct {
	desired *fleet.GithubRunner
	host    fleet.Host
}

var _ plan.AgentKeeper = githubRunner{}

// New returns the step for a host.
func New(h fleet.Host) plan.Step { return githubRunner{h.Spec.GithubRunner, h} }

func (githubRunner) ID() plan.StepID { return "github_runner" }

// registers reports whether macfleet registers the runner.
func (g githubRunner) registers() bool { return g.desired != nil && g.desired.Registers() }

// Agent returns the runner that the host should be.
// Service is GitHub.
func (githubRunner) Service() plan.Service {
	return plan.Service{ID: inventory.CIService, Entry: "CI agent", Noun: "agent", Field: "entry", Idle: "offline", LeftOver: codeLeftOver, Works: true}
}

// Realm returns where the host's runner registers.
func (g githubRunner) Realm() (string, bool) {
	if !g.registers() {
		return "", false
	}
	return g.desired.Scope(), true
}

func (g githubRunner) Agent() (plan.AgentSpec, bool) {
	if !g.registers() {
		return plan.AgentSpec{}, false
	}
	return plan.AgentSpec{Scope: g.desired.Scope(), Name: g.host.Name, Labels: g.desired.OwnLabels(),
		Group: value(g.desired.RunnerGroup), FenceGroup: value(g.desired.FenceGroup)}, true
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// label returns the name of the job, which is also svc.sh's.
func (g githubRunner) label() string {
	if !g.registers() {
		return ""
	}
	_, path, _ := strings.Cut(strings.TrimPrefix(g.desired.Scope(), "https://"), "/")
	part := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, path)
	return "actions.runner." + part + "." + g.host.Name
}

// stateID is the probe's id: its answer depends on the login user.
func (g githubRunner) stateID() string { return "github_runner.state/" + g.host.User }

// Probes reads the runner as the login user, whose files they are: a program that root started would leave logs that the
// runner cannot write.
func (g githubRunner) Probes() []plan.Probe {
	p := scripts.Probe(g.ID(), "state", plan.Login, g.host.User)
	p.ID = g.stateID()
	return kit.ProbeOrTraces(g.registers(), p)
}

// Said returns where the host's runner is registered, and the id of its entry there.
func (g githubRunner) Said(facts plan.Facts) (lists.Said, bool) {
	s := read(&kit.Reader{Facts: facts}, kit.AnsweredProbe(facts, g.stateID()))
	label, scope := g.label(), ""
	if g.registers() {
		scope = g.desired.Scope()
	}
	f := s.chosen(cmp.Or(label, s.receipt.label), cmp.Or(scope, s.receipt.scope))
	return lists.Said{ID: f.settings.id(), Realm: f.settings.scope()}, f.settings.AgentID != 0
}

// Job returns the label of the runner's job, if macfleet made it.
func (g githubRunner) Job(facts plan.Facts) string {
	return read(&kit.Reader{Facts: facts}, kit.AnsweredProbe(facts, g.stateID())).receipt.label
}

func (g githubRunner) Wanted() string {
	var all []kit.Setting
	if g.desired != nil && g.host.Spec.JoinsCluster() {
		all = append(all, noPods(nil))
	}
	if g.registers() {
		all = append(all, (&diff{step: g, view: plan.View{Host: g.host}}).settings()...)
	}
	return kit.Wanted(all)
}

func (g githubRunner) Diff(v plan.View) plan.Finding {
	r := &kit.Reader{Facts: v.Facts}
	seen := read(r, kit.AnsweredProbe(v.Facts, g.stateID()))
	f := g.compare(v, seen, r)
	if seen.workRead {
		f.Running = kit.AllTasks(seen.work)
	}
	return f
}

func (g githubRunner) compare(v plan.View, seen state, r *kit.Reader) plan.Finding {
	pods, trouble, unread := g.pods(v)
	service := v.Peer(inventory.CIService)
	switch {
	case !g.registers():
		left := g.leave(v, seen, r)
		if len(left.Changes)+len(left.Unread) > 0 || g.desired == nil {
			return left
		}
		return plan.Finding{Facts: kit.Facts(pods), Refused: trouble, Unread: unread}
	case len(r.Unread)+len(unread) > 0:
		return plan.Finding{Unread: append(r.Unread, unread...)}
	case service == nil:
		return unlisted("it was not read")
	case service.Trouble != nil:
		return unlisted(plan.ServiceUnread + " (" + service.Trouble.Code.String() + ")")
	}
	d := newDiff(g, v, seen)
	f := d.finding()
	f.Facts = kit.Facts(pods) + f.Facts
	if trouble != nil {
		f.Refused = trouble
	}
	return f
}

// unlisted is the finding without an answer of GitHub: nothing about the runner is a difference then.
func unlisted(why string) plan.Finding {
	return plan.Finding{Unread: []plan.Unread{{Probe: "GitHub's list", Why: why}}}
}

// Leave ends the runner of a host that leaves.
func (g githubRunner) Leave(v plan.View) plan.Finding {
	r := &kit.Reader{Facts: v.Facts}
	return g.leave(v, read(r, kit.AnsweredProbe(v.Facts, g.stateID())), r)
}

// leave removes a runner that macfleet set up, as its receipt shows.
func (g githubRunner) leave(v plan.View, seen state, r *kit.Reader) plan.Finding {
	if f, blind := r.Unreadable(v); blind {
		return f
	}
	if seen.receipt.root == "" && !v.Pending {
		return plan.Finding{}
	}
	at := seen.chosen(seen.receipt.label, seen.receipt.scope)
	all := []kit.Setting{
		kit.Compare("runner", kit.Choose(at.settings.AgentID != 0, at.settings.AgentName+" at "+at.settings.GitHubURL, "set up by macfleet"), ""),
		kit.Compare("earlier run", kit.Choose(v.Pending, "unfinished", "finished"), "finished"),
	}
	why := plan.Reason{Code: codeNotWanted, Text: "the configuration no longer has a github_runner block that registers a runner on this host"}
	change := func(c plan.Change) plan.Change {
		c.Reason, c.Removes = why, true
		return c
	}
	stop := change(plan.Change{Fields: kit.Fields(all...), Command: scripts.Command("github_runner-remove", plan.Root,
		append([]string{g.host.User, kit.Forced(v)}, seen.labels(at.root, seen.receipt.label)...)...)})
	if seen.services[seen.receipt.label].PID != 0 || len(seen.work) > 0 {
		stop.Disruption = plan.Drain
	}
	f := plan.Finding{Facts: kit.Facts(all), Busy: kit.Tasks(seen.work), Changes: []plan.Change{stop}}
	service := v.Peer(inventory.CIService)
	if service != nil {
		f.Refused = service.Trouble // GitHub may know of a job, and would keep the entry
	}
	if service.Read() {
		scope := cmp.Or(seen.receipt.scope, at.settings.scope())
		for _, entry := range entriesOf(v, service.CI(), g.host.Name, scope, at.settings) {
			f.Changes = append(f.Changes, change(plan.Change{Peer: g.at(inventory.DeleteEntry, scope, entry),
				Fields: []plan.Field{{Name: "entry at GitHub", Before: "id " + entry.ID, After: "deleted"}}}))
		}
	} else if service == nil && at.settings.AgentID != 0 {
		f.Warnings = append(f.Warnings, *codeEntryStays.Trouble("macfleet cannot delete the entry " + at.settings.AgentName + " (id " + at.settings.id() + ") at " +
			at.settings.GitHubURL + ": no fleet has credentials for it"))
	}
	f.Changes = append(f.Changes, change(plan.Change{Fields: []plan.Field{{Name: "folder", Before: at.root, After: "deleted"}},
		Command: scripts.Command("github_runner-forget", plan.Root, kit.Choose(at.root != "", at.root, "/Users/"+g.host.User+"/actions-runner"),
			kit.Choose(seen.receipt.made, "whole", ""))}))
	return f
}

// at is a change of an entry at GitHub.
func (g githubRunner) at(verb inventory.Verb, scope string, entry inventory.Agent) *plan.PeerChange {
	return &plan.PeerChange{Peer: inventory.CIService, Realm: scope, Verb: verb, Entry: entry.Entry()}
}

// noPods compares the Pods on the Node of a builder.
func noPods(names []string) kit.Setting {
	return kit.Compare("Pods", kit.ListOr(names, "none"), "none")
}

// pods compares the Pods on a builder's Node: each would take CPU and one of the two virtual machines from an image build.
func (g githubRunner) pods(v plan.View) (all []kit.Setting, refused *plan.Trouble, unread []plan.Unread) {
	if g.desired == nil || !g.host.Spec.JoinsCluster() {
		return nil, nil, nil
	}
	seen, known := v.Pods.Get()
	if !known && v.Pods.IsUnread() {
		return nil, nil, []plan.Unread{{Probe: "the Pods of the Node", Why: kit.Choose(v.Pods.Why() != "", v.Pods.Why(), "the cluster was not read")}}
	}
	var names, commands []string
	for _, p := range seen {
		if p.Works() {
			names = append(names, p.Namespace+"/"+p.Name)
			commands = append(commands, "kubectl -n "+p.Namespace+" delete pod "+p.Name)
		}
	}
	all = []kit.Setting{noPods(names)}
	if len(names) > 0 {
		refused = &plan.Trouble{Code: codePodOnBuilder,
			Text: kit.Count(len(names), "Pod") + " on a builder's Node, which macfleet does not evict: " + strings.Join(names, ", "),
			Remedy: "give the workload a nodeSelector for another fleet" + kit.Choose(v.Host.LabelPrefix != "", " ("+v.Host.LabelPrefix+"/fleet)", "") +
				", then: " + strings.Join(commands, "; ")}
	}
	return all, refused, nil
}

// What the jobs of all hosts have. The runner's own service ends with 0 when it stops for good; to restart it then would loop,
// and hide why.
var (
	jobEnvironment = map[string]string{"ACTIONS_RUNNER_SVC": "1"}
	jobKeepAlive   = map[string]bool{"SuccessfulExit": false}
	jobLimits      = map[string]int{"NumberOfFiles": 65536}
)

// job renders the runner's job: the stock shape, without which its own update breaks.
func (g githubRunner) job(root string) (label, text string) {
	label = g.label()
	logs := "/Users/" + g.host.User + "/Library/Logs/" + label
	return label, launchd.AgentPlist(launchd.Agent{Label: label, Arguments: []string{root + "/runsvc.sh"}, User: g.host.User, Folder: root,
		Environment: jobEnvironment, RunAtLoad: true, KeepAlive: jobKeepAlive,
		ExitTimeOut: exitTimeout, Limits: jobLimits, ProcessType: "Interactive", Session: true,
		Stdout: logs + "/stdout.log", Stderr: logs + "/stderr.log"})
}

// searchPath is what jobs find programs by: config.sh would leave the one of its caller.
const searchPath = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin:/usr/sbin:/sbin\n"

// sortedLower returns texts in lower case, sorted, each once.
func sortedLower(all []string) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = strings.ToLower(s)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
