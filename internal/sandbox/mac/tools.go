package mac

import (
	"slices"
	"strings"
)

// Tools returns the names of everything that a simulated Mac can run: programs and the shell's
// builtins that are answered here, each once, in order.
func Tools() []string {
	var names []string
	for name := range toolbox() {
		if name == ownRefuse {
			continue
		}
		name = strings.TrimPrefix(name, "/builtin/")
		name, _, _ = strings.Cut(name, " ")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
