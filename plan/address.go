package plan

import (
	"cmp"
	"slices"
	"strings"
)

// Address names what an action is about, once in a plan: host.NAME.STEP, or
// host.NAME.KIND, or cluster.KIND.NAME for an object of the cluster.
func (a Action) Address() string {
	if o := a.Object; a.Kind == KeepObject && o != nil {
		parts := []string{"cluster", o.Kind, o.Namespace, o.Name}
		return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ".")
	}
	return "host." + a.Host + "." + cmp.Or(string(a.Step), string(a.Kind))
}
