package fleet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Scale is a group whose number of servers is taken to be different from the configured one.
type Scale struct {
	Fleet, Group string
	From, To     int // replicas
}

// mostReplicas is the most that a group may have.
const mostReplicas = 1000

// WhatIf returns a copy of the configuration with other numbers of servers, and the groups that differ. Each text is
// FLEET=N or FLEET.GROUP=N. The configuration itself does not change.
func (c *Config) WhatIf(texts []string) (*Config, []Scale, error) {
	out := *c
	out.Fleets = slices.Clone(c.Fleets)
	var all []Scale
	for _, text := range texts {
		place, number, ok := strings.Cut(text, "=")
		if !ok || place == "" {
			return nil, nil, fmt.Errorf("%q is not FLEET=N or FLEET.GROUP=N", text)
		}
		to, err := strconv.Atoi(number)
		if err != nil || to < 0 || to > mostReplicas {
			return nil, nil, fmt.Errorf("%q: the number of servers must be from 0 to %d", text, mostReplicas)
		}
		f, g, err := out.scaled(place)
		if err != nil {
			return nil, nil, fmt.Errorf("%q: %w", text, err)
		}
		s := Scale{Fleet: out.Fleets[f].Name, Group: out.Fleets[f].Groups[g].Name, To: to}
		if slices.ContainsFunc(all, func(o Scale) bool { return o.Fleet == s.Fleet && o.Group == s.Group }) {
			return nil, nil, fmt.Errorf("%q: %s.%s is given twice", text, s.Fleet, s.Group)
		}
		groups := slices.Clone(out.Fleets[f].Groups)
		s.From, groups[g].Replicas = groups[g].Replicas, to
		out.Fleets[f].Groups = groups
		all = append(all, s)
	}
	return &out, all, nil
}

// scaled returns the indices of the fleet and the group that FLEET or FLEET.GROUP names.
func (c *Config) scaled(place string) (f, g int, err error) {
	name, group, of := strings.Cut(place, ".")
	var names []string
	for _, f := range c.Fleets {
		names = append(names, f.Name)
	}
	if f = slices.Index(names, name); f < 0 {
		return 0, 0, noSuch("fleet", name, names)
	}
	names = nil
	for _, g := range c.Fleets[f].Groups {
		names = append(names, g.Name)
	}
	switch g = slices.Index(names, group); {
	case of && g >= 0:
		return f, g, nil
	case of:
		return 0, 0, noSuch("group", group, names)
	case len(names) == 1:
		return f, 0, nil
	case len(names) == 0:
		return 0, 0, fmt.Errorf("the fleet %s has no group", name)
	}
	return 0, 0, fmt.Errorf("the fleet %s has several groups (%s): name one, such as %s.%s=N", name, strings.Join(names, ", "), name, names[0])
}

func noSuch(what, name string, names []string) error {
	hint := ""
	if near := Nearest(name, names); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	} else if len(names) > 0 {
		hint = "; there are " + strings.Join(names, ", ")
	}
	return fmt.Errorf("there is no %s %q%s", what, name, hint)
}
