package load

import (
	"reflect"
	"slices"

	"github.com/macfleet/macfleet/fleet"
)

// joining checks what shows only when all levels are merged: whether a host that
// becomes a Node has all that this takes. What many groups inherit from one place
// is one fault, reported at that place.
func (l *loader) joining(cfg *fleet.Config) {
	for _, of := range cfg.Specs() {
		for _, step := range of.Spec.WithoutArtifact() {
			if _, written := of.Sources[step+".artifact"]; written || l.mayStand("artifact") {
				continue // its value is faulty
			}
			l.fault(l.lines[of.Sources.Of(step)], missingArg, "The argument \"artifact\" is required in a %s block, or in a level above. Write artifact = artifact.NAME, with the name of an artifact block.", step)
		}
		switch {
		case !of.Spec.JoinsCluster():
		case cfg.Kubernetes != nil:
			for _, key := range sortedKeys(of.Spec.TartKubelet.Labels) {
				if fleet.Under(key, cfg.Kubernetes.LabelPrefix) {
					l.fault(l.lines[of.Sources.Of(kubelet+".labels")], invalidValue, "The argument \"labels\" must not contain %s: labels under %s belong to macfleet. Choose another domain, or another label_prefix in the kubernetes block.", quoted(key), cfg.Kubernetes.LabelPrefix)
				}
			}
		case !l.mayStand("kubernetes"):
			l.fault(l.lines[of.Sources.Of(kubelet)], "Missing block", "A host with %s becomes a Node, but the configuration has no kubernetes block. Write one, or remove this block.", kubelet)
		}
	}
}

// The steps that need more than their own block.
var (
	kubelet   = stepOf[fleet.TartKubelet]()  // makes a host a Node
	runner    = stepOf[fleet.GithubRunner]() // makes it a builder
	tailscale = stepOf[fleet.Tailscale]()    // makes it a device of the tailnet
	exporter  = stepOf[fleet.NodeExporter]() // serves its metrics there
)

// stepOf returns the id of the step whose block is decoded into T.
func stepOf[T any]() string {
	return steps.members[slices.IndexFunc(steps.members, func(m member) bool { return m.typ == reflect.TypeFor[T]() })].name
}

// lengths checks that no server's name can become too long, under whichever
// environment of the directory.
func (l *loader) lengths(own macfleetBlock, envs []environmentBlock, fleets []fleetBlock) {
	const summary = "Name too long"
	if own.Name == "" {
		return
	}
	owner, at := fleet.Owner{Name: own.Name}, own.Place.at("name")
	for _, e := range envs {
		if len(e.Name) > len(owner.Environment) {
			owner.Environment, at = e.Name, e.Place.label()
		}
	}
	if shortest := owner.HostName("x", "x", serverID); len(shortest) > fleet.MaxName {
		if len(own.Name) > len(owner.Environment) {
			at = own.Place.at("name")
		}
		l.fault(at, summary, "Server names begin with the names of configuration and environment, here %d characters, and have at most %d characters: too few remain for fleet, group and id. Shorten one of the two.", len(owner.String()), fleet.MaxName)
		return
	}
	for _, f := range fleets {
		for _, g := range f.Groups {
			host := owner.HostName(f.Name, g.Name, serverID)
			if len(host) > fleet.MaxName && wrong("part", f.Name) == "" && wrong("part", g.Name) == "" {
				l.fault(g.Place.label(), summary, "Servers of this group have names such as %q with %d characters; the limit is %d. Shorten the fleet's or the group's name.", host, len(host), fleet.MaxName)
			}
		}
	}
}

// serverID stands for the characters of a server's id that end its name.
const serverID = "00000"
