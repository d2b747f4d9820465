package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/fleet/load"
	"github.com/macfleet/macfleet/internal/adopt"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/wholefile"
	"github.com/macfleet/macfleet/plan"
)

// The files that a new configuration consists of.
const (
	mainFile  = "main.fleet.hcl"
	hostsFile = "hosts.fleet.hcl"
)

// InventoryOptions are the flags of init --from-inventory.
type InventoryOptions struct {
	From       bool // without it, init only lists its commands
	Name       string
	PoolPrefix string
	Zones      []string // empty: all known ones
	Context    string   // of the cluster that the hosts are Nodes of; empty: none
	NoSSH      bool
}

// InitFromInventory writes a configuration that adopts the servers of a project. It reads the provider's list and,
// unless forbidden, asks each host which macOS it runs; it changes nothing.
func InitFromInventory(ctx context.Context, env *Env, o InventoryOptions) error {
	if err := env.vacant(); err != nil {
		return err
	}
	stub := &fleet.Config{Owner: fleet.Owner{Name: "macfleet", Environment: env.Environment},
		Scaleway: fleet.Scaleway{Zones: o.Zones, PoolPrefix: cmp.Or(o.PoolPrefix, "pool-")}, SSH: fleet.SSH{User: "m1", Via: []string{"public"}}}
	if len(o.Zones) == 0 {
		stub.Scaleway.Zones = env.allZones()
	}
	var d adopt.Draft
	var settings adopt.Settings
	err := env.with(ctx, need{config: stub, readOnly: true}, func(looking context.Context, s *session) error {
		servers, err := s.engine.Servers.List(looking)
		if err != nil {
			return err
		}
		project := s.project()
		if len(servers) == 0 {
			return fmt.Errorf("project %s has no servers in %s; choose others with SCW_DEFAULT_PROJECT_ID and --zone", project, strings.Join(stub.Scaleway.Zones, ", "))
		}
		owner, prefix, err := env.ownerFor(servers, o)
		if err != nil {
			return err
		}
		seen, err := s.askHosts(looking, servers, prefix, o.NoSSH)
		if err != nil {
			return err
		}
		d = adopt.Plan(adopt.Request{Owner: owner, PoolPrefix: prefix, Servers: servers, All: servers, Seen: seen})
		settings = adopt.Settings{ProjectID: project, Zones: zonesOf(servers), PoolPrefix: prefix, Context: o.Context, Version: fleet.Version}
		return nil
	})
	if err != nil {
		return err
	}
	if d.Hosts() == 0 {
		env.errText().Draft(d)
		return errors.New("no server can be adopted; nothing was written")
	}
	return env.writeNew(d, map[string]string{mainFile: d.Main(settings), hostsFile: d.HostBlocks()})
}

// vacant refuses a directory that has a configuration, or is missing.
func (env *Env) vacant() error {
	names, err := load.FileNames(os.DirFS(env.Dir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the directory %s is missing; create it: mkdir -p %s", env.Dir, Quoted(env.Dir))
	case err != nil:
		return fmt.Errorf("read %s: %w; name another directory with -C", env.Dir, err)
	case len(names) > 0:
		return fmt.Errorf("%s already has a configuration (%s); to add servers to it: macfleet import", env.Dir, strings.Join(names, ", "))
	}
	return nil
}

// allZones returns the zones in which servers may be.
func (env *Env) allZones() []string {
	if env.Sandbox == "" || !sandbox.Exists(env.sandboxDir()) {
		return fleet.Zones()
	}
	w, err := sandbox.Open(env.sandboxDir(), sandbox.Seed{})
	if err != nil {
		return fleet.Zones() // the session reports the error
	}
	defer w.Close()
	return w.Zones()
}

// project returns the id of the provider's project.
func (s *session) project() string {
	if c, ok := s.engine.Servers.(interface{ Project() string }); ok {
		return c.Project()
	}
	return s.config.ProjectID
}

func zonesOf(servers []inventory.Server) []string {
	return slices.Compact(slices.Sorted(slices.Values(mapped(servers, func(s inventory.Server) string { return s.Zone }))))
}

// ownerFor chooses the name of a new configuration and the prefix of its pool.
func (env *Env) ownerFor(servers []inventory.Server, o InventoryOptions) (fleet.Owner, string, error) {
	prefixes := adopt.Pools(servers)
	if o.PoolPrefix == "" && len(prefixes) > 1 {
		return fleet.Owner{}, "", fmt.Errorf("server names begin with several pool prefixes: %s; choose one with --pool-prefix", strings.Join(prefixes, ", "))
	}
	if why := fleet.CheckText("owner", o.Name); o.Name != "" && why != "" {
		return fleet.Owner{}, "", fmt.Errorf("--name is %q: %s", o.Name, why)
	}
	names := []string{o.Name}
	if o.Name == "" {
		names = adopt.Names(servers, filepath.Base(env.directory()))
	}
	prefix := cmp.Or(o.PoolPrefix, strings.Join(prefixes, ""))
	for _, name := range names {
		owner := fleet.Owner{Name: name, Environment: env.Environment}
		p := cmp.Or(prefix, "pool-"+name+"-")
		if adopt.Fits(owner, p, servers) {
			return owner, p, nil
		}
	}
	return fleet.Owner{}, "", fmt.Errorf("the name %s does not fit the servers' names or the pool prefix %q; choose others with --name and --pool-prefix",
		strings.Join(names, " or "), prefix)
}

// askHosts asks the hosts of servers outside the pool which macOS they run and who owns them. It reads only.
func (s *session) askHosts(ctx context.Context, servers []inventory.Server, prefix string, never bool) (map[string]adopt.Seen, error) {
	out := make(map[string]adopt.Seen)
	if never {
		return out, nil
	}
	snap, err := s.engine.Lists(ctx)
	if err != nil {
		return nil, err
	}
	var asked []inventory.Server
	for _, x := range servers {
		if x.Usable() && !strings.HasPrefix(x.Name, prefix) {
			asked = append(asked, x)
		}
	}
	if _, err = showing(s, s.env.Err, nil, func() (struct{}, error) {
		return struct{}{}, s.engine.ObserveServers(ctx, &snap, asked)
	}); err != nil {
		return nil, err
	}
	for id, seen := range snap.Hosts {
		out[id] = seenOf(seen)
	}
	return out, nil
}

func seenOf(h plan.HostSeen) adopt.Seen {
	version, _ := h.OSVersion.Get()
	out := adopt.Seen{OSFamily: fleet.OSFamily(version)}
	if m, marked := h.Marker.Get(); marked {
		out.Owner = m.Owner().String()
	}
	if h.Trouble != nil {
		out.Trouble = h.Trouble.Text
	}
	return out
}

// writeNew writes the files of a new configuration, after they were read as one. No file is replaced.
func (env *Env) writeNew(d adopt.Draft, files map[string]string) error {
	all := ""
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text, diags := load.Format(name, []byte(files[name]))
		if diags.HasErrors() {
			return fmt.Errorf("%s cannot be written: %w", name, diags)
		}
		files[name] = string(text)
		all += files[name] + "\n"
	}
	if err := env.readable(added{mainFile, []byte(all)}); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(env.Dir, name)
		if err := wholefile.Create(path, 0o644, wholefile.Text(files[name])); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		env.outText().Say("Wrote " + path + ".")
	}
	env.outText().Draft(d)
	env.outText().AdoptNext()
	return nil
}

// readable reads the configuration with one more file, and shows its faults.
func (env *Env) readable(a added) error {
	_, err := env.config(reading{added: a, unlocked: true})
	return err
}

// ImportOptions are the flags of import.
type ImportOptions struct {
	To    string // file that is created; empty: the blocks are printed
	Group string // reference to the group that all servers join; empty: found by their names
	NoSSH bool
}

// Import writes host blocks, and fleets where none fits, for servers that have no place in the configuration. It
// reads and changes nothing.
func Import(ctx context.Context, env *Env, o ImportOptions) error {
	if err := cmp.Or(refuse(o.To != "" && !strings.HasSuffix(o.To, ".fleet.hcl"), "--to %s: the name of a configuration file ends in .fleet.hcl", o.To),
		refuse(o.To != "" && filepath.Base(o.To) != o.To, "--to %s: name a file without a directory; it is written next to the configuration (-C)", o.To)); err != nil {
		return err
	}
	if o.To != "" {
		if _, err := os.Lstat(filepath.Join(env.Dir, o.To)); err == nil {
			return fmt.Errorf("--to %s: the file exists, and import never replaces one; name another file", o.To)
		}
	}
	var d adopt.Draft
	err := env.with(ctx, need{readOnly: true, Selection: env.Selection}, func(looking context.Context, s *session) (err error) {
		d, err = s.imported(looking, env.Args, o)
		return err
	})
	if err != nil {
		return err
	}
	if d.Hosts() == 0 {
		env.errText().Draft(d)
		return refuse(len(d.Left) > 0, "no server can be imported; nothing was written")
	}
	text, diags := load.Format(cmp.Or(o.To, "import.fleet.hcl"), []byte(d.Import()))
	if diags.HasErrors() {
		return fmt.Errorf("the blocks cannot be written: %w", diags)
	}
	if err := env.readable(added{cmp.Or(o.To, "~import.fleet.hcl"), text}); err != nil {
		return err
	}
	if o.To == "" {
		env.outText().Print(string(text))
		env.errText().Draft(d)
		return nil
	}
	path := filepath.Join(env.Dir, o.To)
	if err := wholefile.Create(path, 0o644, wholefile.Text(text)); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	env.outText().Say("Wrote " + path + ".")
	env.outText().Draft(d)
	env.outText().AdoptNext()
	return nil
}

// imported drafts the import of the named servers, or of all that have no place.
func (s *session) imported(ctx context.Context, names []string, o ImportOptions) (adopt.Draft, error) {
	snap, p, err := s.observe(ctx)
	if err != nil {
		return adopt.Draft{}, err
	}
	servers, err := s.placeless(snap, p, names)
	if err != nil {
		return adopt.Draft{}, err
	}
	r := adopt.Request{Owner: s.config.Owner, PoolPrefix: s.config.Scaleway.PoolPrefix, Servers: servers, All: snap.Servers, Fleets: s.config.Fleets, Room: plan.Room(s.config, snap)}
	if r.Group, err = s.groupNamed(o.Group); err != nil {
		return adopt.Draft{}, err
	}
	if r.Seen, err = s.askHosts(ctx, servers, r.PoolPrefix, o.NoSSH); err != nil {
		return adopt.Draft{}, err
	}
	d := adopt.Plan(r)
	if room := r.Room[r.Group]; o.Group != "" && d.Hosts() > room {
		_, g, _ := s.config.Group(r.Group.Fleet, r.Group.Group)
		return adopt.Draft{}, fmt.Errorf("%s has room for %d of %d hosts; set its replicas to %d, then import again", adopt.Reference(r.Group), room, d.Hosts(), g.Replicas+d.Hosts()-room)
	}
	return d, nil
}

// placeless returns the servers that have no place, or those of them that are named.
func (s *session) placeless(snap plan.Snapshot, p *plan.Plan, names []string) ([]inventory.Server, error) {
	free := slices.DeleteFunc(slices.Clone(p.Strays), func(x inventory.Server) bool { return slices.Contains(s.config.Elsewhere, x.ID) })
	if len(names) == 0 {
		return free, nil
	}
	var out []inventory.Server
	for _, name := range names {
		is := func(x inventory.Server) bool { return x.Name == name || x.ID == name }
		switch i := slices.IndexFunc(free, is); {
		case i >= 0:
			out = append(out, free[i])
		case slices.ContainsFunc(snap.Servers, is):
			return nil, fmt.Errorf("%s is not an unmanaged server; macfleet explain %s says what it is", name, Quoted(name))
		default:
			return nil, fmt.Errorf("no server has the name or id %s; macfleet hosts lists the members, macfleet plan the unmanaged servers", name)
		}
	}
	return out, nil
}

// groupNamed reads a reference to a group: fleet.NAME.group.NAME, or FLEET.GROUP as plans write it.
func (s *session) groupNamed(text string) (fleet.Place, error) {
	if text == "" {
		return fleet.Place{}, nil
	}
	parts := strings.Split(text, ".")
	if len(parts) == 4 && parts[0] == "fleet" && parts[2] == "group" {
		parts = []string{parts[1], parts[3]}
	}
	if len(parts) == 2 {
		if _, _, ok := s.config.Group(parts[0], parts[1]); ok {
			return fleet.Place{Fleet: parts[0], Group: parts[1]}, nil
		}
	}
	var known []string
	for _, f := range s.config.Fleets {
		for _, g := range f.Groups {
			known = append(known, adopt.Reference(fleet.Place{Fleet: f.Name, Group: g.Name}))
		}
	}
	return fleet.Place{}, fmt.Errorf("--group %s: the configuration has no such group; it has %s", text, strings.Join(known, ", "))
}
