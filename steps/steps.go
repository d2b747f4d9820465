// Package steps lists all steps and holds the small ones with their scripts; larger steps
// have their own packages below it. A step parses the answers of its probes, brings the
// configuration into the same normal form, and compares the two with ==. It does no I/O.
package steps

import (
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/autologin"
	"github.com/macfleet/macfleet/steps/buildtools"
	"github.com/macfleet/macfleet/steps/githubrunner"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/nodeexporter"
	"github.com/macfleet/macfleet/steps/tailscale"
	"github.com/macfleet/macfleet/steps/tartkubelet"
	"github.com/macfleet/macfleet/steps/vmfirewall"
)

var codeRestartAsked = plan.NewCode("restart-asked", plan.Notice, "a restart was requested")

//go:embed scripts
var files embed.FS

var scripts = kit.ScriptsOf(files)

// For returns all steps of a host in the order in which they run. A step without a block in
// the configuration is included without a desired state: it removes what macfleet set up before. The
// specification must be complete (fleet.Spec.WithDefaults), as every loaded one is.
func For(h fleet.Host) []plan.Step {
	joins, leaves := []plan.Step{tailscale.New(h), nodeexporter.New(h)}, []plan.Step(nil)
	if h.Spec.Tailscale == nil { // what uses the tailnet is changed first
		joins, leaves = nil, []plan.Step{nodeexporter.New(h), tailscale.New(h)}
	}
	return slices.Concat([]plan.Step{
		sudo{desired: h.Spec.Sudo, user: h.User},
		hostname{desired: h.Spec.Hostname, name: h.Name},
		power{desired: h.Spec.Power},
		system{desired: h.Spec.System},
		autologin.New(h),
		localNetwork{h.Spec.LocalNetwork, h.User},
		vmfirewall.New(h),
	}, joins, []plan.Step{
		buildtools.New(h),
		tart{desired: h.Spec.Tart},
		disk{h.Spec.Disk},
		tartkubelet.New(h),
		githubrunner.New(h),
	}, leaves)
}

// InputFor describes an input, without the secret in it.
type InputFor = kit.InputFor

// Input renders the standard input of a change's script from the login password, the token of the host's identity, or what a service admits
// it with, which is a line. Its errors hold no part of the secret.
func Input(in InputFor, value secret.Value) (secret.Value, error) {
	if in.Kind == plan.Admission {
		text := value.Reveal()
		if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return secret.Value{}, errors.New("what the service admits the host with has spaces or characters that cannot be printed")
		}
		return secret.New(text + "\n")
	}
	for _, s := range For(in.Host) {
		if r, has := s.(kit.SecretReader); has && r.Reads(in.Kind) {
			text, err := r.Render(in, value.Reveal())
			if err != nil {
				return secret.Value{}, err
			}
			return secret.New(text)
		}
	}
	return secret.Value{}, fmt.Errorf("no step reads the input %q", in.Kind)
}

// Jobs returns the steps with a job that can be restarted.
func Jobs() []plan.StepID {
	var out []plan.StepID
	for _, s := range For(fleet.Host{}) {
		if _, ok := s.(kit.Restarter); ok {
			out = append(out, s.ID())
		}
	}
	return out
}

// Restart returns the change that restarts a step's job on a host. Its script verifies the
// restart: a new process that is still the same some seconds later. ok is false if the host
// has no such job.
func Restart(id plan.StepID, v plan.View) (c plan.Change, ok bool) {
	for _, s := range For(v.Host) {
		r, has := s.(kit.Restarter)
		if !has || s.ID() != id || s.Wanted() == "" {
			continue
		}
		c = r.Restart(v)
		c.Reason = plan.Reason{Code: codeRestartAsked, Text: "restart requested"}
		return c, true
	}
	return plan.Change{}, false
}
