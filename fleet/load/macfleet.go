package load

import (
	"github.com/Masterminds/semver/v3"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/macfleet/macfleet/fleet"
)

// ownerName is the configuration's name and where it stands.
type ownerName struct {
	text string // "" where it is faulty
	at   hcl.Range
}

// macfleet reads the block that names the configuration.
func (l *loader) macfleet(blocks []*hclsyntax.Block) ownerName {
	b := decodeOnly[macfleetBlock](l, blocks, &scope{closed: before})
	if b == nil {
		return ownerName{}
	}
	if b.RequiredVersion != nil {
		l.requiredVersion(*b.RequiredVersion, b.Place.at("required_version"))
	}
	if !b.Place.good["name"] || !l.name(b.Place.at("name"), "configuration", b.Name, fleet.CheckOwnerPart) {
		return ownerName{}
	}
	return ownerName{text: b.Name, at: b.Place.at("name")}
}

// requiredVersion compares macfleet's version with a constraint. A prerelease
// also counts as the release that it precedes: who tries 0.2.0-rc.1 may use
// what asks for 0.2.0.
func (l *loader) requiredVersion(text string, at hcl.Range) {
	const summary = "Unsupported version"
	constraint, err := semver.NewConstraint(text)
	if err != nil {
		l.fault(at, "Invalid version constraint", "%s is no version constraint. Write one such as \">= 0.1.0\" or \"~> 0.1\".", quoted(text))
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
