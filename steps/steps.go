// Package steps lists the concerns of a host, and holds those of one file with their
// scripts; the others have packages below it. A step parses what was seen, brings what is wanted into the same
// form, and compares the two with ==. It does no I/O.
package steps

import (
	"embed"
	"fmt"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/autologin"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/tartkubelet"
	"github.com/macfleet/macfleet/steps/vmfirewall"
)

var codeRestartAsked = plan.NewCode("restart-asked", plan.Notice, "somebody asks for a restart")

//go:embed scripts
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

// InputFor is what an input is for, beside the secret in it.
type InputFor = kit.InputFor

// Input renders what a change's script reads on its standard input: from the login
// user's password, or from the token of the host's identity. Its errors hold no
// part of the secret.
func Input(in InputFor, value secret.Value) (secret.Value, error) {
	for _, s := range For(in.Host) {
		if r, has := s.(kit.SecretReader); has && r.Reads(in.Kind) {
			text, err := r.Render(in, value.Reveal())
			if err != nil {
				return secret.Value{}, err
			}
			return secret.New(text)
		}
	}
	return secret.Value{}, fmt.Errorf("no script reads the input %q", in.Kind)
}

// Jobs returns the steps that have a job to restart.
func Jobs() []plan.StepID {
	var out []plan.StepID
	for _, s := range For(fleet.Host{}) {
		if _, ok := s.(kit.Restarter); ok {
			out = append(out, s.ID())
		}
	}
	return out
}

// Restart returns the change that starts a step's job anew on a host. It proves
// itself: the process is a new one, and the same some seconds later. ok is false
// where the host has no such job.
func Restart(id plan.StepID, v plan.View) (c plan.Change, ok bool) {
	for _, s := range For(v.Host) {
		r, has := s.(kit.Restarter)
		if !has || s.ID() != id || s.Wanted() == "" {
			continue
		}
		c = r.Restart(v)
		c.Reason = plan.Reason{Code: codeRestartAsked, Text: "somebody asks for it"}
		return c, true
	}
	return plan.Change{}, false
}
