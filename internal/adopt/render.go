package adopt

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/macfleet/macfleet/fleet"
)

// Settings are what a new configuration says besides its fleets.
type Settings struct {
	ProjectID  string // of the environment; unused without one
	Zones      []string
	PoolPrefix string
	Context    string // of the cluster; empty: there is none
	Version    string // macfleet's own
}

// Main returns the file of a new configuration that holds everything but the hosts.
func (d Draft) Main(s Settings) string {
	var b strings.Builder
	b.WriteString(`# Written by macfleet init --from-inventory. It adopts the servers that exist, each under its present name.
# macfleet plan shows what that does; macfleet apply --adopt-only writes markers and pins host keys, nothing else.
# The names of fleets and groups come from the names and types of servers: rename them as you like.

macfleet {
`)
	fmt.Fprintf(&b, "  required_version = %s\n  name = %s\n}\n\n", quote(">= "+s.Version), quote(d.Owner.Name))
	if d.Owner.Environment != "" {
		fmt.Fprintf(&b, "environment %s {\n  project_id = %s\n}\n\n", quote(d.Owner.Environment), quote(s.ProjectID))
	}
	zones := make([]string, len(s.Zones))
	for i, z := range s.Zones {
		zones[i] = quote(z)
	}
	fmt.Fprintf(&b, "scaleway {\n  zones = [%s]\n  pool_prefix = %s # servers named so are free to be claimed\n}\n\n", strings.Join(zones, ", "), quote(s.PoolPrefix))
	if s.Context != "" {
		fmt.Fprintf(&b, "kubernetes {\n  context = %s\n}\n\n", quote(s.Context))
	}
	b.WriteString("# Without private_key, macfleet offers your own SSH keys.\nssh {}\n")
	d.fleets(&b)
	return b.String()
}

// Import returns what adds the draft's servers to a configuration that exists: new fleets and host blocks.
func (d Draft) Import() string {
	var b strings.Builder
	d.fleets(&b)
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	b.WriteString(d.HostBlocks())
	return strings.TrimLeft(b.String(), "\n")
}

// fleets renders the new fleets.
func (d Draft) fleets(b *strings.Builder) {
	for _, f := range d.Fleets {
		if f.Exists {
			continue
		}
		fmt.Fprintf(b, "\nfleet %s {\n  os = %s\n", quote(f.Name), quote(f.OS))
		for _, g := range f.Groups {
			fmt.Fprintf(b, "\n  group %s {\n    type = %s\n    replicas = %d # adopted hosts count\n  }\n", quote(g.Name), quote(g.Type), len(g.Servers))
		}
		b.WriteString("}\n")
	}
}

// HostBlocks returns the host blocks, in the order of fleets, groups and names.
func (d Draft) HostBlocks() string {
	var blocks []string
	for _, f := range d.Fleets {
		for _, g := range f.Groups {
			for _, s := range g.Servers {
				text := fmt.Sprintf("host %s {\n", quote(s.Name))
				if d.Owner.Environment != "" {
					text += fmt.Sprintf("  environment = %s\n", quote(d.Owner.Environment))
				}
				blocks = append(blocks, text+fmt.Sprintf("  server_id = %s\n  group = %s\n}\n", quote(s.ID), reference(f.Name, g.Name)))
			}
		}
	}
	return strings.Join(blocks, "\n")
}

// reference writes a reference to a group. A name that begins with a digit cannot follow a dot.
func reference(fleetName, group string) string {
	step := func(name string) string {
		if unicode.IsDigit(rune(name[0])) {
			return "[" + quote(name) + "]"
		}
		return "." + name
	}
	return "fleet" + step(fleetName) + ".group" + step(group)
}

// Reference returns the reference to a group, as a host block writes it.
func Reference(at fleet.Place) string { return reference(at.Fleet, at.Group) }

// quote writes a text as a string of HCL.
func quote(text string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(strconv.Quote(text))
}
