package load

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/hashicorp/hcl/v2"

	"github.com/macfleet/macfleet/fleet"
)

// builder is a specification whose hosts are builders.
type builder struct {
	*loader
	fleet.GithubRunner
	of fleet.Specified
}

// runners checks what shows only when all levels are merged: whether a runner can be registered, and whose jobs it gets.
func (l *loader) runners(cfg *fleet.Config) {
	var before []builder
	for _, of := range cfg.Specs() {
		if of.Spec.GithubRunner == nil {
			continue
		}
		b := builder{l, *of.Spec.GithubRunner, of}
		if !b.registers() {
			continue
		}
		b.credentials(cfg.Kubernetes)
		b.groups()
		b.versions()
		b.jobs()
		if !b.good(deciding...) {
			continue
		}
		if i := slices.IndexFunc(before, b.mixesWith); i >= 0 {
			b.mixed(before[i])
		}
		if of.Host == "" {
			b.everywhere(cfg)
			before = append(before, b)
		}
	}
}

// deciding are the arguments that decide which jobs a runner gets.
var deciding = []string{"host", "organization", "repository", "labels", "default_labels", "runner_group"}

// written reports whether a level has the argument, however faulty.
func (b builder) written(name string) bool {
	_, ok := b.of.Sources[runner+"."+name]
	return ok
}

// at returns the place of an argument, or the block's.
func (b builder) at(name string) hcl.Range {
	if !b.written(name) {
		return b.lines[b.of.Sources.Of(runner)]
	}
	return b.lines[b.of.Sources.Of(runner+"."+name)]
}

// good reports whether none of the arguments is faulty.
func (b builder) good(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return b.written(name) && !b.args[b.at(name)].good })
}

// exclusive reports two arguments of which only one may be written.
func (b builder) exclusive(name, other string) {
	if b.written(name) && b.written(other) {
		b.fault(b.at(other), "Conflicting arguments", "The arguments %q and %q exclude each other, and %[1]q is written at %[3]s. Remove one.", name, other, where(b.at(name)))
	}
}

// registers reports whether macfleet registers the runner, and refuses arguments that then have no effect.
func (b builder) registers() bool {
	b.exclusive("organization", "repository")
	if b.written("organization") || b.written("repository") {
		return true
	}
	var idle []string
	for _, m := range steps.member(runner).members() {
		if b.written(m.name) {
			idle = append(idle, m.name)
		}
	}
	if len(idle) > 0 && !b.mayStand("organization") && !b.mayStand("repository") {
		b.fault(b.at(idle[0]), missingArg, "Without organization or repository macfleet does not register the runner, so this has no effect: %s. Write organization, or remove what has no effect.", listed(idle))
	}
	return false
}

// credentials checks by what the runner is registered.
func (b builder) credentials(k *fleet.Kubernetes) {
	b.exclusive("app", "token")
	if !b.written("app") && !b.written("token") && !b.mayStand("app") && !b.mayStand("token") {
		b.fault(b.at(""), missingArg, "The argument \"app\" or \"token\" is required to register the runner. Write app = github_app.NAME, with the name of a github_app block.")
	}
	if b.Token != nil {
		b.readable(b.at("token"), k, "Token", "token", *b.Token)
	}
}

// groups checks the runner groups, which only organizations have.
func (b builder) groups() {
	for _, name := range []string{"runner_group", "fence_group"} {
		if b.written(name) && !b.written("organization") {
			b.fault(b.at(name), "No runner groups", "The argument %q needs organization: a repository has no runner groups. Write organization in place of repository, or remove %[1]q.", name)
		}
	}
	if b.FenceGroup != nil && strings.EqualFold(*b.FenceGroup, b.group()) {
		b.fault(b.at("fence_group"), "Fence without effect", "The runner is in the group %s already, so fence_group must be another one. Create a group without repositories for it.", quoted(*b.FenceGroup))
	}
}

// group returns the name of the runner's group.
func (b builder) group() string {
	if b.RunnerGroup == nil {
		return fleet.DefaultRunnerGroup
	}
	return *b.RunnerGroup
}

// versions checks the versions against each other and against what GitHub registers.
func (b builder) versions() {
	oldest := semver.MustParse(fleet.OldestRunner)
	parsed := map[string]*semver.Version{}
	for name, text := range map[string]*string{"min_version": b.MinVersion, "version": b.Version} {
		if text != nil {
			parsed[name] = semver.MustParse(*text) // it was checked
		}
	}
	for _, name := range sortedKeys(parsed) {
		if v := parsed[name]; b.good("host") && cloud(*b.Host) && v.LessThan(oldest) {
			b.fault(b.at(name), "Version too old", "The argument %q is %s, and %s registers no runner older than %s. Write a newer version.", name, v, *b.Host, oldest)
		}
	}
	if v, least := parsed["version"], parsed["min_version"]; v != nil && least != nil && v.LessThan(least) {
		b.fault(b.at("version"), "Version too old", "The version %s is older than min_version, which is %s. Correct one of them.", v, least)
	}
	if b.written("sha256") && !b.written("version") && !b.mayStand("version") {
		b.fault(b.at("sha256"), missingArg, "The argument \"sha256\" needs version: a digest belongs to one version. Write the version, or remove \"sha256\".")
	}
}

// cloud reports whether GitHub itself runs a host, and not a company that bought the software.
func cloud(host string) bool { return host == "github.com" || strings.HasSuffix(host, ".ghe.com") }

// jobs checks which jobs the runner gets.
func (b builder) jobs() {
	all := b.labels()
	standard := func(label string) bool { return slices.Contains(fleet.DefaultRunnerLabels(), label) }
	switch {
	case !b.good("labels", "default_labels"):
	case len(all) == 0:
		b.fault(b.at("default_labels"), missingArg, "A runner needs a label: with default_labels = false, write at least one in \"labels\".")
	case !slices.ContainsFunc(all, func(label string) bool { return !standard(label) }):
		b.warn(b.at("labels"), "Only default labels", "The runner has only the labels that every runner for macOS has, so it gets every job with runs-on: self-hosted. Write another one, such as labels = [\"vm-image-builder\"].")
	}
	if b.AllowPublicRepositories != nil && *b.AllowPublicRepositories {
		b.warn(b.at("allow_public_repositories"), "Public repositories allowed", "Anyone who can open a pull request in a public repository may be able to run programs on these hosts. Remove this line, unless the hosts hold nothing of value.")
	}
}

// labels returns all labels of the runner, in lower case and sorted.
func (b builder) labels() []string {
	all := b.OwnLabels()
	if b.DefaultLabels != nil && *b.DefaultLabels {
		all = append(all, fleet.DefaultRunnerLabels()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// mixesWith reports whether jobs for a's hosts may run on b's, though they are meant for one of them. Groups of one fleet
// whose labels come from one place are meant for the same jobs, and so is a host that overrides nothing of this.
func (b builder) mixesWith(a builder) bool {
	own := func(name string) bool { return b.of.Sources.Of(runner+"."+name).Level == fleet.InHost }
	switch {
	case b.of.Host != "" && !slices.ContainsFunc(deciding, own),
		a.of.Fleet == b.of.Fleet && (a.of.Group == b.of.Group || a.at("labels") == b.at("labels")):
		return false
	}
	return strings.EqualFold(a.Scope(), b.Scope()) && strings.EqualFold(a.group(), b.group()) && slices.Equal(a.labels(), b.labels())
}

func (b builder) mixed(a builder) {
	pair := fmt.Sprintf("fleets %q and %q", a.of.Fleet, b.of.Fleet)
	if a.of.Fleet == b.of.Fleet {
		pair = fmt.Sprintf("groups %q and %q", a.of.Group, b.of.Group)
	}
	b.warn(b.at("labels"), "Same labels", "The runners of the %s register at %s with the same labels, so jobs for one may run on the other. Give one of them another label or another runner_group.", pair, b.Scope())
}

// everywhere warns of hosts that every environment has with the same labels. It can be known only of values that refer to
// nothing, because one environment is evaluated at a time.
func (b builder) everywhere(cfg *fleet.Config) {
	_, g, _ := cfg.Group(b.of.Fleet, b.of.Group)
	varies := func(name string) bool { return b.written(name) && b.args[b.at(name)].varies }
	if len(cfg.Environments) < 2 || g.Replicas == 0 || b.args[b.lines[g.Sources.Of("replicas")]].varies || slices.ContainsFunc(deciding, varies) {
		return
	}
	b.warn(b.at("labels"), "Same labels in all environments", "Every environment registers these runners at %s with the same labels, so jobs for one environment may run in another. Write the environment in a label or in runner_group, such as \"builder-${env.name}\".", b.Scope())
}
