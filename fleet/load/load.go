// Package load reads a configuration: all *.fleet.hcl files of a directory,
// evaluated for one environment, as a fleet.Config. It reads files through an
// fs.FS and does nothing else; the same input gives the same output.
//
// It collects every fault it can find. What a fault leaves without a value is
// unknown from there on, and unknown values cause no diagnostics: so one fault
// is one diagnostic and hides none elsewhere.
package load

import (
	"io/fs"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/macfleet/macfleet/fleet"
)

// Options is what a configuration is evaluated with. The zero Options chooses
// no environment and sets no variable.
type Options struct {
	Dir         string             // of the configuration, for messages; "" = this directory
	Environment string             // "" = none chosen
	Env         map[string]string  // values of MACFLEET_VAR_<name>, by that name
	VarFiles    []VarFile          // a later one wins
	Vars        []string           // "name=value"; a later one wins
	Version     string             // macfleet's own, for required_version; "" = not checked
	Unlocked    bool               // an artifact may be in use without its sha256
	Evaluating  func(place string) // receives the place of each expression before it is evaluated; may be nil
}

// VarFile is a file of variables: attributes in HCL, read by the caller.
type VarFile struct {
	Name    string // for messages
	Content []byte
}

// Result is what a directory holds.
type Result struct {
	Config *fleet.Config // nil when there is any error
	// Files holds everything a diagnostic can point into, by the name it uses:
	// the configuration's files, the variable files, and the texts of variables
	// from --var and from the environment.
	Files map[string]*hcl.File
	// Ends are the places of the until attributes of ignore blocks, by their names. The caller knows
	// the date and judges them.
	Ends map[string]hcl.Range
}

// Dir reads the *.fleet.hcl files directly in fsys, in the order of their
// names. The diagnostics are sorted by file and position, those without a place
// first; Config is nil exactly when one of them is an error.
func Dir(fsys fs.FS, opts Options) (Result, hcl.Diagnostics) {
	l := &loader{opts: opts, files: map[string]*hcl.File{}, ends: map[string]hcl.Range{}, lines: map[fleet.Source]hcl.Range{},
		maybe: map[string]bool{}, args: map[hcl.Range]argument{}}
	l.functions = l.budget.functions()
	cfg := l.config(fsys)
	diags := l.finish()
	if diags.HasErrors() {
		cfg = nil
	}
	return Result{Config: cfg, Files: l.files, Ends: l.ends}, diags
}

// config takes the steps in the order in which each gives the next its values.
func (l *loader) config(fsys fs.FS) *fleet.Config {
	bodies := l.parse(fsys)
	if bodies == nil {
		return nil
	}
	blocks := l.collect(bodies)
	envs := l.environments(blocks["environment"])
	sc := &scope{chosen: envs.chosen.Name,
		values: map[string]map[string]cty.Value{"var": l.variables(blocks["variable"], envs), "env": envs.values()}}
	l.locals(blocks["locals"], sc)

	cfg := &fleet.Config{Environments: envs.names}
	own := l.macfleet(blocks["macfleet"])
	cfg.Owner = fleet.Owner{Name: own.Name, Environment: envs.chosen.Name}
	cfg.ProjectID, cfg.ClusterUID = envs.chosen.ProjectID, envs.chosen.ClusterUID
	all := owners(own.Name, cfg.Environments)
	cfg.Scaleway = l.scaleway(blocks["scaleway"], sc, all)
	cfg.Kubernetes = l.kubernetes(blocks["kubernetes"], sc)
	cfg.SSH = l.ssh(blocks["ssh"], sc, cfg.Kubernetes)

	artifacts := decodeAll(l, blocks["artifact"], sc, artifactBlock{})
	cfg.Artifacts = l.artifacts(artifacts, sc)
	cfg.GitHubApps = l.githubApps(blocks["github_app"], sc, cfg.Kubernetes)
	var tailnetAt place
	cfg.Tailnet, tailnetAt = l.tailnet(blocks["tailnet"], sc, cfg.Kubernetes)
	cfg.Guardrails = l.guardrails(blocks["guardrails"], sc)
	cfg.Ignores = l.ignores(blocks["ignore"], sc)
	fleets := decodeAll(l, blocks["fleet"], sc, fleetBlock{Rollout: fleet.DefaultRollout()})
	defaults := decodeOnly(l, blocks["defaults"], sc, defaultsBlock{})
	cfg.Fleets = l.fleets(fleets, defaults)
	l.offered(defaults, fleets)
	l.lengths(own, envs.all, fleets)
	r := &roster{loader: l, owners: all, envs: envs, pool: cfg.Scaleway.PoolPrefix, fleets: fleets}
	cfg.Hosts = r.hosts(decodeAll(l, blocks["host"], sc, hostBlock{}), cfg)
	cfg.Moves = r.moves(decodeAll(l, blocks["moved"], sc, movedBlock{}))
	l.onTailnet(cfg, tailnetAt)
	l.joining(cfg)
	l.runners(cfg)
	l.locked(cfg, artifacts)
	return cfg
}

// loader holds what one call of Dir gathers.
type loader struct {
	opts      Options
	files     map[string]*hcl.File
	ends      map[string]hcl.Range       // of ignore blocks
	lines     map[fleet.Source]hcl.Range // the range that a value of a step comes from
	args      map[hcl.Range]argument     // by the places of their names
	functions map[string]function.Function
	budget    budget
	diags     hcl.Diagnostics
	// lost are texts that were not understood, such as a file with a syntax
	// fault, and maybe are names that a misspelled one probably stands for:
	// what is missing elsewhere may stand there.
	lost  [][]byte
	maybe map[string]bool
	// unknown is set when a value was skipped because it is unknown.
	unknown bool
}

// source returns the text at rng, or nil.
func (l *loader) source(rng hcl.Range) []byte {
	file := l.files[rng.Filename]
	if file == nil || !rng.CanSliceBytes(file.Bytes) {
		return nil
	}
	return rng.SliceBytes(file.Bytes)
}

// lose remembers a block that is not read, because names may be declared in it.
func (l *loader) lose(block *hclsyntax.Block) {
	l.lost = append(l.lost, l.source(block.Range()))
}

// suspect remembers a name that a misspelled one probably stands for.
func (l *loader) suspect(name string) {
	if name != "" {
		l.maybe[name] = true
	}
}

// mayStand reports whether the thing of that name may stand in what was not
// understood: then its absence is not a fault.
func (l *loader) mayStand(name string) bool {
	if l.maybe[name] {
		return true
	}
	for _, text := range l.lost {
		if hasWord(text, name) {
			return true
		}
	}
	return false
}
