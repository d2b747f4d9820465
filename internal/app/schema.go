package app

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/load"
	"github.com/macfleet/macfleet/internal/view"
)

// APath completes to the path of a block or an attribute of the configuration language.
var APath = kind(func(*Env) []string { return load.Schema().Paths() })

// explainSchema shows the configuration language, or the part of it at a path such as fleet.group.type.
func (env *Env) explainSchema(o ExplainOptions) error {
	if err := cmp.Or(refuse(len(env.Args) > 1, "--schema takes one PATH, for example fleet.group.type"),
		refuse(o.JSON || o.Script || o.Snapshot != "", "--schema prints text about the language and goes with no other flag of explain")); err != nil {
		return err
	}
	top := load.Schema()
	path := strings.Trim(strings.Join(env.Args, ""), ".")
	block, attribute := top.Find(path)
	switch {
	case path == "":
		block = &top
	case block == nil && attribute == nil:
		return unknownPath(top, path)
	}
	return env.answer(false, func(io.Writer) error { return nil }, func(t *view.Text) {
		if attribute != nil {
			t.SchemaAttribute(*attribute)
		} else {
			t.Schema(*block)
		}
	})
}

// unknownPath is the error of a path that the language does not have.
func unknownPath(top fleet.SchemaBlock, path string) error {
	paths := top.Paths()
	near, last := "", path[strings.LastIndex(path, ".")+1:]
	for _, p := range paths {
		if near == "" && strings.HasSuffix(p, "."+last) {
			near = p // the right name without the blocks around it
		}
	}
	near = cmp.Or(near, fleet.Nearest(path, paths))
	if near == "" {
		return fmt.Errorf("the configuration has no %q; macfleet explain --schema lists all blocks", path)
	}
	return fmt.Errorf("the configuration has no %q; did you mean %s?", path, near)
}
