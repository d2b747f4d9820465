package load

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/macfleet/macfleet/fleet"
)

// environments is what a directory defines and which one is chosen.
type environments struct {
	all    []environmentBlock // without duplicates, in order
	names  []string           // of all
	chosen environmentBlock   // the zero block: none, or the choice is faulty
	// settled is false when it is unknown which environment is meant.
	settled bool
}

// environments reads the environment blocks and chooses one.
func (l *loader) environments(blocks []*hclsyntax.Block) environments {
	envs := environments{all: slices.DeleteFunc(decodeAll(l, blocks, &scope{closed: before}, environmentBlock{}),
		func(e environmentBlock) bool { return e.Place.twice })}
	want := l.opts.Environment
	for _, e := range envs.all {
		envs.names = append(envs.names, e.Name)
		if e.Name == want {
			envs.chosen, envs.settled = e, true
		}
	}
	switch {
	case envs.settled:
	case want != "":
		l.unknownEnvironment(nil, want, envs, fmt.Sprintf("The configuration defines no environments, so -e %s does not apply. Leave out -e, or write environment %[1]s { … }.", quoted(want)))
	case len(envs.names) == 0:
		envs.settled = !l.mayStand("environment")
	default:
		l.faultOutside("No environment chosen", "The configuration defines environments. Choose one with -e: %s.", listed(envs.names))
	}
	return envs
}

// unknownEnvironment reports that no environment has a name, unless it may stand in what
// was not understood; none is the sentence for a configuration without any.
func (l *loader) unknownEnvironment(at *hcl.Range, name string, envs environments, none string) {
	names, detail := envs.names, none
	switch {
	case l.mayStand(name) || len(names) == 0 && l.mayStand("environment"):
		return
	case len(names) > 0:
		detail = fmt.Sprintf("No environment is named %s.%s The configuration defines %s.", quoted(name), didYouMean(fleet.Nearest(name, names)), listed(names))
	}
	if strings.Contains(name, "=") {
		detail += " To set a variable, use --var " + name + "."
	}
	l.report(hcl.DiagError, at, "Unknown environment", "%s", []any{detail})
}

// values returns what env.… refers to; nil without any environment.
func (e environments) values() map[string]cty.Value {
	switch {
	case e.chosen.Name != "":
		values := map[string]cty.Value{"name": cty.StringVal(e.chosen.Name)}
		for name, value := range map[string]string{"cluster_uid": e.chosen.ClusterUID, "project_id": e.chosen.ProjectID} {
			if e.chosen.Place.good[name] {
				values[name] = cty.StringVal(value)
			} else if e.chosen.Place.written(name) {
				values[name] = cty.DynamicVal // it is faulty
			}
		}
		return values
	case e.settled:
		return nil
	}
	return map[string]cty.Value{"name": cty.DynamicVal, "cluster_uid": cty.DynamicVal, "project_id": cty.DynamicVal}
}

// unique reports whether name is the first of its kind, and says where the
// other one is.
func (l *loader) unique(first map[string]hcl.Range, kind, name string, at hcl.Range) bool {
	key := kind + " " + name
	if other, twice := first[key]; twice {
		l.fault(at, "Duplicate "+kind, "The %s %s is already defined at %s. Rename or remove one.", kind, quoted(name), where(other))
		return false
	}
	first[key] = at
	return true
}
