// Package steps lists the concerns of a host, and holds those of one file with their
// scripts; the others have packages below it. A step parses what was seen, brings what is wanted into the same
// form, and compares the two with ==. It does no I/O.
package steps

import (
	"embed"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/autologin"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/tartkubelet"
	"github.com/macfleet/macfleet/steps/vmfirewall"
)

//go:embed scripts/*.sh
var files embed.FS

var scripts = kit.ScriptsOf(files)

// For returns all steps of a host in the order in which they run. A step whose
// block the configuration lacks is there too, with a nil wish: what it wants is
// that nothing of it is on the host. The specification must have nothing left
// open (fleet.Spec.WithDefaults), as every one that was loaded.
func For(h fleet.Host) []plan.Step {
	return []plan.Step{
		sudo{wish: h.Spec.Sudo, user: h.User},
		hostname{wish: h.Spec.Hostname, name: h.Name},
		power{wish: h.Spec.Power},
		autologin.New(h),
		vmfirewall.New(h),
		tart{wish: h.Spec.Tart},
		tartkubelet.New(h),
		githubRunner{wish: h.Spec.GithubRunner, joins: h.Spec.JoinsCluster()},
	}
}
