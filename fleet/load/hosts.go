package load

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/macfleet/macfleet/fleet"
)

// A host block adopts a server under the name that it has, or overrides values
// of one host. A name that the grammar of names makes says environment, fleet
// and group by itself; of any other server the block must say them.

const (
	ownedName   = "Name of another place"
	missingArg  = "Missing argument"
	unknownHost = "Unknown host"
)

// roster reads the host blocks of a directory.
type roster struct {
	*loader
	owners []fleet.Owner // of all environments; empty where the name is faulty
	envs   environments
	pool   string // the pool's prefix; "" where it is faulty
	fleets []fleetBlock
	ids    map[string]hcl.Range
}

// groups are all groups, with their fleets' names, as written.
func (r *roster) groups() (all []fleetGroup) {
	for _, f := range r.fleets {
		for _, g := range f.Groups {
			all = append(all, fleetGroup{f.Name, g})
		}
	}
	return all
}

type fleetGroup struct {
	fleet string
	groupBlock
}

// seat is where a host belongs.
type seat struct{ environment, fleet, group string }

// hosts checks all host blocks and returns those of the chosen environment,
// each with its group's values beneath its own.
func (r *roster) hosts(blocks []hostBlock, cfg *fleet.Config) []fleet.Listed {
	var all []fleet.Listed
	adopted := map[seat][]hostBlock{}
	r.ids = map[string]hcl.Range{}
	for _, b := range blocks {
		s, ok := r.seat(b)
		if !ok || !r.envs.settled {
			continue
		}
		if s.environment != r.envs.chosen.Name {
			if b.ServerID != "" {
				cfg.Elsewhere = append(cfg.Elsewhere, b.ServerID)
			}
			continue
		}
		_, g, _ := cfg.Group(s.fleet, s.group) // exists: seat looked
		own := r.layerOf(fleet.InHost, b.Place, b.Spec).over(layer{g.Spec, g.Sources})
		all = append(all, fleet.Listed{Name: b.Name, ServerID: b.ServerID, Fleet: s.fleet, Group: s.group, Password: b.Password,
			Spec: own.spec.WithDefaults(), Sources: own.sources})
		if b.ServerID != "" {
			adopted[s] = append(adopted[s], b)
		}
	}
	r.room(adopted)
	return all
}

// seat checks a block and says where its host belongs. It reports false where
// that is not known.
func (r *roster) seat(b hostBlock) (seat, bool) {
	labelOK, idOK := r.label(b), r.serverID(b)
	environment, envOK := r.environment(b)
	fleetName, group, groupOK := r.group(b)
	if !labelOK || !idOK || !envOK || !groupOK || len(r.owners) == 0 {
		return seat{}, false
	}
	written := seat{environment, fleetName, group}
	for _, o := range r.owners {
		if at, owned := o.Parse(b.Name); owned {
			return r.owned(b, seat{o.Environment, at.Fleet, at.Group}, at.Suffix, written)
		}
	}
	return written, r.foreign(b)
}

// label reports whether a host's name is sound.
func (r *roster) label(b hostBlock) bool {
	sound := !b.Place.twice && fleet.IsDNSLabel(b.Name)
	if r.pool != "" && strings.HasPrefix(b.Name, r.pool) {
		sound = false
		r.fault(b.Place.label(), "Host in the pool", "Servers whose name starts with %s are free to be claimed, so a fleet cannot own %s. Rename the server first, or choose another pool_prefix.", quoted(r.pool), quoted(b.Name))
	}
	return sound
}

// serverID checks a server's id. It reports true where none is written.
func (r *roster) serverID(b hostBlock) bool {
	at, other := b.Place.at("server_id"), r.ids[b.ServerID]
	switch {
	case b.ServerID == "":
		return !b.Place.written("server_id")
	case other != (hcl.Range{}):
		r.fault(at, "Duplicate server", "Two host blocks have the server_id %s; the other is at %s. Remove one block.", quoted(b.ServerID), where(other))
		return false
	}
	r.ids[b.ServerID] = at
	return b.Place.good["server_id"]
}

// owned checks what a block says against what its name says.
func (r *roster) owned(b hostBlock, named seat, suffix string, written seat) (seat, bool) {
	faults := len(r.diags)
	if b.Environment != nil && written.environment != named.environment {
		r.fault(b.Environment.Range(), ownedName, "The name %s belongs to the environment %s, not to %s. Leave the argument out, or correct the name.", quoted(b.Name), quoted(named.environment), quoted(written.environment))
	}
	switch is := groupReference(named.fleet, named.group); {
	case b.Group != nil && (written.fleet != named.fleet || written.group != named.group):
		r.fault(b.Group.Range(), ownedName, "The name %s belongs to the group %s, not to %s. Leave the argument out, or correct the name.", quoted(b.Name), is, groupReference(written.fleet, written.group))
	case b.Group == nil && !r.exists(b.Place.label(), named.fleet, named.group, "The name "+quoted(b.Name)+" belongs to "+is+". "):
		return seat{}, false
	}
	if id := b.ServerID; id != "" && !strings.HasPrefix(id, suffix) {
		r.fault(b.Place.at("server_id"), ownedName, "The name %s belongs to a server whose id begins with %q, but this is a different server. Correct the id or the name.", quoted(b.Name), suffix)
	}
	body := b.Place.block.Body
	if !b.Place.written("server_id") && !b.Place.written("password") && len(body.Blocks) == 0 && len(body.Attributes) == len(b.Place.attrs) {
		r.fault(b.Place.header(), "Empty block", "This block has no effect: the name of the host already says where it belongs. Write what only this host has, such as power { … }, or remove the block.")
	}
	return named, len(r.diags) == faults
}

// foreign reports whether the block of a server with a foreign name says
// which server it is, and where it belongs.
func (r *roster) foreign(b hostBlock) bool {
	if !b.Place.written("server_id") {
		if !r.mayStand("server_id") && !r.mayStand("environment") {
			r.fault(b.Place.label(), unknownHost, "%s is not a name that macfleet gives to a host of this configuration, such as %q.%s To adopt a server under this name, write its server_id.", quoted(b.Name), r.sample(), didYouMean(r.correct(b.Name)))
		}
		return false
	}
	placeless, homeless := b.Group == nil, len(r.envs.all) > 0 && b.Environment == nil
	if placeless && !r.mayStand("group") {
		r.fault(b.Place.header(), missingArg, "The name %s does not say which group the host belongs to. Write it: group = %s.", quoted(b.Name), r.example(""))
	}
	if homeless && !r.mayStand("environment") {
		r.fault(b.Place.header(), missingArg, "An adopted host belongs to one environment, and its name does not say which. Write environment = %q.", r.envs.all[0].Name)
	}
	return !placeless && !homeless
}

// sample returns a name as the grammar makes it.
func (r *roster) sample() string {
	groups := append(r.groups(), fleetGroup{"runners", groupBlock{Name: "m2"}})
	return r.owners[0].HostName(groups[0].fleet, groups[0].Name, "8f1c2")
}

// correct returns a misspelled name with the right beginning, or "".
func (r *roster) correct(name string) string {
	parts := strings.Split(name, "-")
	if len(parts) < 4 {
		return ""
	}
	begin, end := strings.Join(parts[:len(parts)-3], "-"), "-"+strings.Join(parts[len(parts)-3:], "-")
	var begins []string
	for _, o := range r.owners {
		if _, owned := o.Parse(o.String() + end); owned {
			begins = append(begins, o.String())
		}
	}
	if best := fleet.Nearest(begin, begins); best != "" {
		return best + end
	}
	return ""
}

// room reports groups that want fewer servers than are adopted into them: the
// next plan would have to release one.
func (r *roster) room(adopted map[seat][]hostBlock) {
	for _, g := range r.groups() {
		blocks := adopted[seat{r.envs.chosen.Name, g.fleet, g.Name}]
		if !g.Place.good["replicas"] || len(blocks) <= g.Replicas {
			continue
		}
		r.fault(blocks[g.Replicas].Place.label(), "Too many adopted hosts", "Adopted hosts count among the replicas of their group, and %s has %d adopted hosts and replicas = %d. Write at least %d at %s, or remove a block.",
			groupReference(g.fleet, g.Name), len(blocks), g.Replicas, len(blocks), where(g.Place.at("replicas")))
	}
}

// unchanging is the scope of what may not differ from one environment to the
// next: the same server in two of them would have two masters.
const unchanging = "a host belongs to the same environment whichever is chosen. Write the environment's name in quotes"

// environment reads which environment a host belongs to, "" where the
// block does not say. It reports false for a fault.
func (r *roster) environment(b hostBlock) (string, bool) {
	attr := b.Place.attrs["environment"]
	if attr == nil {
		return "", true
	}
	var name string
	if !r.assign(attr, &scope{closed: unchanging}, "", reflect.ValueOf(&name).Elem()) {
		return "", false
	}
	if slices.Contains(r.envs.names, name) {
		return name, true
	}
	at := attr.Expr.Range()
	r.unknownEnvironment(&at, name, r.envs, "The configuration defines no environment. Leave the argument out, or write environment "+quoted(name)+" { … }.")
	return "", false
}

// group reads the reference fleet.NAME.group.NAME, "" where the block has none.
// It reports false for a fault. The reference is not evaluated: fleets are not
// values.
func (r *roster) group(b hostBlock) (fleetName, group string, ok bool) {
	if b.Group == nil {
		return "", "", true
	}
	const summary = "Invalid group"
	at := b.Group.Range()
	parts := path(b.Group)
	switch text, isText := literal(b.Group); {
	case isText:
		r.fault(at, summary, "The group is a reference, not a string. Write it without quotes: group = %s.", r.example(text))
	case len(parts) != 4 || parts[0] != "fleet" || parts[2] != "group":
		r.fault(at, summary, "The group must have the form fleet.NAME.group.NAME, such as group = %s.", r.example(""))
	case r.exists(at, parts[1], parts[3], ""):
		return parts[1], parts[3], true
	}
	return "", "", false
}

// exists reports whether there is that fleet with that group, and says what is
// missing; context is put before it.
func (r *roster) exists(at hcl.Range, fleetName, group, context string) bool {
	var fleets, groups []string
	for _, f := range r.fleets {
		fleets = append(fleets, f.Name)
		if f.Name == fleetName {
			for _, g := range f.Groups {
				groups = append(groups, g.Name)
			}
		}
	}
	switch {
	case slices.Contains(groups, group):
		return true
	case !slices.Contains(fleets, fleetName):
		if !r.mayStand(fleetName) {
			r.fault(at, "Unknown fleet", "%sNo fleet is named %s.%s", context, quoted(fleetName), offer("fleet.", fleet.Nearest(fleetName, fleets), fleets))
		}
	case !r.mayStand(group):
		prefix := groupReference(fleetName, "")
		r.fault(at, "Unknown group", "%sThe fleet %q has no group %s.%s", context, fleetName, quoted(group), offer(prefix, fleet.Nearest(group, groups), groups))
	}
	return false
}

// example returns the reference that a text probably means, or that to any group.
func (r *roster) example(text string) string {
	first := ""
	for _, g := range r.groups() {
		ref := groupReference(g.fleet, g.Name)
		if ref == strings.TrimSpace(text) {
			return ref
		}
		first = cmp.Or(first, ref)
	}
	return cmp.Or(first, "fleet.runners.group.m2")
}

// groupReference writes a reference to a group. A name that begins with a digit
// cannot stand behind a dot.
func groupReference(fleetName, group string) string {
	step := func(name string) string {
		if name != "" && !hclsyntax.ValidIdentifier(name) {
			return "[" + quoted(name) + "]"
		}
		return "." + name
	}
	return "fleet" + step(fleetName) + ".group" + step(group)
}

// path returns the names of a reference, or nil.
func path(expr hclsyntax.Expression) []string {
	tr, _ := hcl.AbsTraversalForExpr(expr)
	if len(tr) == 0 {
		return nil
	}
	names := []string{tr.RootName()}
	for _, step := range tr[1:] {
		name, ok := stepName(step)
		if !ok {
			return nil
		}
		names = append(names, name)
	}
	return names
}

// literal returns the text of an expression that is one and refers to nothing.
func literal(expr hclsyntax.Expression) (text string, ok bool) {
	if _, isTemplate := expr.(*hclsyntax.TemplateExpr); !isTemplate {
		return "", false
	}
	return constant(expr)
}

// constant returns the text that an expression is without variables and functions.
func constant(expr hclsyntax.Expression) (text string, ok bool) {
	new(budget).meter(expr)
	sound := guarded(func() {
		val, diags := expr.Value(nil)
		if ok = !diags.HasErrors() && val.Type() == cty.String && val.IsKnown() && !val.IsNull(); ok {
			text = val.AsString()
		}
	})
	return text, ok && sound
}
