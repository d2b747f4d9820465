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
	return "host." + a.Host + "." + a.what()
}

// what names what an action does to its host: its step, or its kind.
func (a Action) what() string { return cmp.Or(string(a.Step), string(a.Kind)) }
