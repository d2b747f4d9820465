package load

import (
	"slices"

	"github.com/Masterminds/semver/v3"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/secret"
)

// macfleet reads the block that names the configuration; a faulty name is "".
func (l *loader) macfleet(blocks []*hclsyntax.Block) macfleetBlock {
	b := decodeOnly(l, blocks, &scope{closed: before}, macfleetBlock{})
	if b.Place.good["required_version"] {
		l.requiredVersion(b.RequiredVersion, b.Place.at("required_version"))
	}
	if !b.Place.good["name"] {
		b.Name = ""
	}
	return b
}

// requiredVersion compares macfleet's version with a constraint. A prerelease
// also counts as the release that it precedes: who tries 0.2.0-rc.1 may use
// what asks for 0.2.0.
func (l *loader) requiredVersion(text string, at hcl.Range) {
	const summary = "Unsupported version"
	constraint, err := semver.NewConstraint(text)
	if err != nil {
		l.fault(at, "Invalid version constraint", "%s is not a version constraint. Write one such as \">= 0.1.0\" or \"~> 0.1\".", quoted(text))
		return
	}
	if l.opts.Version == "" {
		return
	}
	own, err := semver.NewVersion(l.opts.Version)
	if err != nil {
		l.fault(at, summary, "The version of this macfleet, %s, cannot be compared with the constraint: it is not a semantic version.", quoted(l.opts.Version))
		return
	}
	release := semver.New(own.Major(), own.Minor(), own.Patch(), "", "")
	if !constraint.Check(own) && !constraint.Check(release) {
		l.fault(at, summary, "The configuration requires macfleet %s, and this is %s. Install a version that satisfies it.", text, l.opts.Version)
	}
}

// scaleway reads where the servers are rented. The owners are those of all
// environments: they share the project and therefore the pool.
func (l *loader) scaleway(blocks []*hclsyntax.Block, sc *scope, owners []fleet.Owner) fleet.Scaleway {
	b := decodeOnly(l, blocks, sc, scalewayBlock{})
	if b.Place.good["pool_prefix"] && !l.poolPrefix(b, owners) {
		b.PoolPrefix = "" // nothing is compared with a faulty one
	}
	l.offeredZones(b)
	return b.Scaleway
}

func (l *loader) poolPrefix(b scalewayBlock, owners []fleet.Owner) bool {
	const summary = "Invalid pool prefix"
	at := b.Place.at("pool_prefix")
	if b.PoolPrefix == "" {
		l.fault(at, summary, "The argument %q must not be empty: every server of the project would belong to the pool.", "pool_prefix")
		return false
	}
	for _, o := range owners {
		if why := o.PoolConflict(b.PoolPrefix); why != "" {
			l.fault(at, summary, "Servers whose name starts with %s are free to be claimed, and %s. Choose a prefix that does not begin like %q, for example \"free-macs-\".", quoted(b.PoolPrefix), why, o.String()+"-")
			return false
		}
	}
	return true
}

// owners returns the owner of every environment, or the one that has none.
func owners(name string, environments []string) []fleet.Owner {
	if name == "" {
		return nil
	}
	all := []fleet.Owner{{Name: name}}
	for _, env := range environments {
		all = append(all, fleet.Owner{Name: name, Environment: env})
	}
	return all[min(1, len(environments)):] // the bare name only where there is no environment
}

// ssh reads how hosts are reached.
func (l *loader) ssh(blocks []*hclsyntax.Block, sc *scope, k *fleet.Kubernetes) fleet.SSH {
	b := decodeOnly(l, blocks, sc, sshBlock{SSH: fleet.SSH{User: "m1", Via: []string{"public"}}})
	l.keys(b.Place, k, "key to all hosts", b.PrivateKey, b.PreviousPrivateKey)
	return b.SSH
}

// keys checks a private key and the one before its rotation.
func (l *loader) keys(at place, k *fleet.Kubernetes, what string, current, previous secret.Ref) {
	if at.block == nil {
		return
	}
	if !previous.IsZero() && current == previous {
		l.fault(at.at("previous_private_key"), "No new key", "The arguments %q and %q name the same key. The first is the new one, the second the one before the rotation.", "private_key", "previous_private_key")
	}
	l.readable(at.at("private_key"), k, "Key", what, current)
	l.readable(at.at("previous_private_key"), k, "Key", what, previous)
}

// readable refuses a secret in a namespace whose Secrets hosts can read.
func (l *loader) readable(at hcl.Range, k *fleet.Kubernetes, kind, what string, ref secret.Ref) {
	if k != nil && ref.Scheme == secret.Kubernetes && slices.Contains(k.PodNamespaces, ref.Parts()[0]) {
		l.fault(at, kind+" readable by hosts", "Pods for the hosts run in the namespace %s, so root on one host could read the %s there. Keep it in %s, or remove %[1]s from pod_namespaces in the kubernetes block.", quoted(ref.Parts()[0]), what, quoted(k.Namespace))
	}
}
