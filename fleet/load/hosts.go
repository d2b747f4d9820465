package load

import (
	"strings"

	"github.com/hashicorp/hcl/v2"

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
	names  map[string]hcl.Range
	ids    map[string]hcl.Range
}

// seat is where a host belongs.
type seat struct{ environment, fleet, group string }

// hosts checks all host blocks and returns those of the chosen environment,
// each with its group's values beneath its own.
func (r *roster) hosts(blocks []hostBlock, cfg *fleet.Config) []fleet.Listed {
	var all []fleet.Listed
	adopted := map[seat][]hostBlock{}
	r.names, r.ids = map[string]hcl.Range{}, map[string]hcl.Range{}
	for _, b := range blocks {
		s, ok := r.seat(b)
		if !ok || !r.envs.settled {
			continue
		}
		if s.environment != r.envs.name() {
			if b.ServerID != nil {
				cfg.Elsewhere = append(cfg.Elsewhere, *b.ServerID)
			}
			continue
		}
		_, g, _ := cfg.Group(s.fleet, s.group) // exists: seat looked
		own := layerOf(fleet.InHost, b.Place, b.Spec).over(layer{g.Spec, g.Sources})
		all = append(all, fleet.Listed{Name: b.Name, ServerID: deref(b.ServerID), Fleet: s.fleet, Group: s.group, Password: b.Password,
			Spec: own.spec.WithDefaults(), Sources: own.sources})
		if b.ServerID != nil {
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
	if owner, at, owned := r.owner(b.Name); owned {
		return r.owned(b, seat{owner.Environment, at.Fleet, at.Group}, at.Suffix, written)
	}
	return written, r.foreign(b)
}

// owner returns whose name it is, and what it says.
func (r *roster) owner(name string) (fleet.Owner, fleet.Place, bool) {
	for _, o := range r.owners {
		if at, ok := o.Parse(name); ok {
			return o, at, true
		}
	}
	return fleet.Owner{}, fleet.Place{}, false
}

// label checks a host's name.
func (r *roster) label(b hostBlock) bool {
	const why = "it becomes the name of a Node, so it must be at most 63 lower-case letters, digits and hyphens, and begin and end with a letter or digit. Rename the server first"
	at := b.Place.label()
	sound := r.name(at, "host", b.Name, func(name string) string {
		if fleet.IsDNSLabel(name) {
			return ""
		}
		return why
	})
	if r.pool != "" && strings.HasPrefix(b.Name, r.pool) {
		sound = false
		r.fault(at, "Host in the pool", "Servers whose name starts with %s are free to be claimed, so no fleet can hold %s. Rename the server first, or choose another pool_prefix.", quoted(r.pool), quoted(b.Name))
	}
	return r.unique(r.names, "host", b.Name, at) && sound
}

// serverID checks a server's id. It reports true where none is written.
func (r *roster) serverID(b hostBlock) bool {
	if b.ServerID == nil {
		return true
	}
	at := b.Place.at("server_id")
	if other, twice := r.ids[*b.ServerID]; twice {
		r.fault(at, "Duplicate server", "Two host blocks name the server %s: the other is at %s. A server has one name: remove one block.", quoted(*b.ServerID), where(other))
		return false
	}
	r.ids[*b.ServerID] = at
	return r.uuid(b.Place, "server_id", b.ServerID)
}

// owned checks what a block says beside what its name says.
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
	if id := deref(b.ServerID); id != "" && !strings.HasPrefix(id, suffix) {
		r.fault(b.Place.at("server_id"), ownedName, "The name %s belongs to a server whose id begins with %q, and this is another one. Correct the id or the name.", quoted(b.Name), suffix)
	}
	if b.ServerID == nil && !b.Place.written("server_id") && !b.Place.written("password") && b.empty() {
		r.fault(b.Place.header(), "Empty block", "This block says nothing: the name of the host already says where it belongs. Write what the host has of its own, such as power { … }, or remove the block.")
	}
	return named, len(r.diags) == faults
}

// empty reports whether nothing stands in the block but where it belongs,
// however faulty.
func (b hostBlock) empty() bool {
	body := b.Place.block.Body
	return len(body.Blocks) == 0 && len(body.Attributes) == len(b.Place.attrs)
}

// foreign reports whether the block of a server with a name of its own says
// which server it is, and where it belongs.
func (r *roster) foreign(b hostBlock) bool {
	at := b.Place.header()
	sound := true
	missing := func(name, detail string, args ...any) {
		sound = false
		if !r.mayStand(name) {
			r.fault(at, missingArg, detail, args...)
		}
	}
	if !b.Place.written("server_id") {
		if !r.mayStand("server_id") && !r.mayStand("environment") {
			r.fault(b.Place.label(), unknownHost, "%s is not a name that macfleet gives to a host of this configuration, such as %q.%s To adopt a server under this name, write its server_id.", quoted(b.Name), r.sample(), didYouMean(r.correct(b.Name)))
		}
		return false
	}
	if b.Group == nil {
		missing("group", "The name %s does not say where the host belongs. Write the group that the server joins: group = %s.", quoted(b.Name), r.exampleGroup())
	}
	if len(r.envs.all) > 0 && b.Environment == nil {
		missing("environment", "An adopted host belongs to one environment, and this name does not say to which. Write environment = %q.", r.envs.all[0].Name)
	}
	return sound
}

// sample returns a name as the grammar makes it.
func (r *roster) sample() string {
	o := r.owners[0]
	for _, f := range r.fleets {
		for _, g := range f.Groups {
			return o.HostName(f.Name, g.Name, "8f1c2")
		}
	}
	return o.HostName("runners", "m2", "8f1c2")
}

// correct returns a misspelled name with the right beginning, or "".
func (r *roster) correct(name string) string {
	parts := strings.Split(name, "-")
	if len(parts) < 4 {
		return ""
	}
	var begins []string
	for _, o := range r.owners {
		begins = append(begins, o.String())
	}
	end := len(parts) - 3
	best := fleet.Nearest(strings.Join(parts[:end], "-"), begins)
	if better := best + "-" + strings.Join(parts[end:], "-"); best != "" {
		if _, _, owned := r.owner(better); owned {
			return better
		}
	}
	return ""
}

// room reports groups that want fewer servers than are adopted into them: the
// next plan would have to give one back.
func (r *roster) room(adopted map[seat][]hostBlock) {
	for _, f := range r.fleets {
		for _, g := range f.Groups {
			blocks := adopted[seat{r.envs.name(), f.Name, g.Name}]
			if !g.Place.good["replicas"] || len(blocks) <= g.Replicas {
				continue
			}
			r.fault(blocks[g.Replicas].Place.label(), "Too many adopted hosts", "Adopted hosts count among the replicas of their group, and %s has %d adopted hosts and replicas = %d. Write at least %d at %s, or remove a block.",
				groupReference(f.Name, g.Name), len(blocks), g.Replicas, len(blocks), where(g.Place.at("replicas")))
		}
	}
}
