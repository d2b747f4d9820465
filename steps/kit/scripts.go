// Package kit has what all steps use: settings and their comparison, the reading of
// answers, scripts, the receipts of what a step installed, and the work on a host. It does
// no I/O.
package kit

import (
	"embed"
	"fmt"
	"path"
	"strings"
	"sync"
	"unique"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// common are functions in sh that scripts of several steps share.
//
//go:embed shared
var common embed.FS

// Scripts is the scripts of a package: the files scripts/*.sh. The functions that
// several of them share stand in scripts/shared, those that several packages share in
// this one.
type Scripts struct{ texts func() map[string]string }

// ScriptsOf returns the scripts of a package. They are read once: a fleet has one copy
// of a script and not one a host.
func ScriptsOf(files embed.FS) Scripts {
	return Scripts{sync.OnceValue(func() map[string]string {
		shared := readScripts(common, "shared")
		for name, text := range readScripts(files, "scripts/shared") {
			shared[name] = text
		}
		out := readScripts(files, "scripts")
		for name, text := range out {
			out[name] = withShared(name, text, shared)
		}
		return out
	})}
}

// readScripts returns the scripts of a folder, which need not be there, by their names.
func readScripts(files embed.FS, folder string) map[string]string {
	out := make(map[string]string)
	entries, _ := files.ReadDir(folder) // what is not embedded is no script
	for _, f := range entries {
		if name, ok := strings.CutSuffix(f.Name(), ".sh"); ok {
			text, err := files.ReadFile(path.Join(folder, f.Name()))
			if err != nil {
				panic(fmt.Sprintf("the embedded script %s cannot be read: %v", name, err))
			}
			out[name] = string(text)
		}
	}
	return out
}

// usesMark begins the first line of a script that calls functions which several
// scripts share: those of the files that the line names stand in front of it.
const usesMark = "# Uses: "

func withShared(name, text string, shared map[string]string) string {
	line, _, _ := strings.Cut(text, "\n")
	used, ok := strings.CutPrefix(line, usesMark)
	if !ok {
		return text
	}
	var b strings.Builder
	for _, word := range strings.Fields(used) {
		functions, there := shared[word]
		if !there {
			// The script is a file of this package.
			panic(fmt.Sprintf("%s uses %s, which is not embedded", name, word))
		}
		b.WriteString(functions)
	}
	return b.String() + text
}

// Command returns a script as a command.
func (s Scripts) Command(name string, as plan.User, args ...string) plan.Command {
	text, ok := s.texts()[name]
	if !ok {
		// The name is a constant of the package and the file is embedded.
		panic(fmt.Sprintf("script %s is not embedded", name))
	}
	for i, arg := range args {
		args[i] = oneCopy(arg)
	}
	return plan.Command{Name: name, Script: text, As: as, Args: args}
}

// oneCopy returns a text of which there is one copy, whatever number of hosts has
// it: a fleet that gets a firewall at once gets the same few files everywhere.
func oneCopy(text string) string {
	if len(text) < 64 { // what is short costs more to find than to keep
		return text
	}
	return unique.Make(text).Value()
}

// Probe returns a script as a question of a step.
func (s Scripts) Probe(step plan.StepID, name string, as plan.User, args ...string) plan.Probe {
	id := string(step) + "." + name
	return plan.Probe{ID: id, Command: s.Command(string(step)+"-"+name, as, args...)}
}

// Asked returns the question of a step. Without a wish its script ends early where
// macfleet has left nothing of the step, which it hears from its last argument, and says
// everything elsewhere: most hosts are asked for nothing, and everything can be fifty tools.
func Asked(wished bool, full plan.Probe) []plan.Probe {
	if !wished {
		full.ID, full.Unless = tracesID(full.ID), full.ID
		full.Script = "set -- \"$@\" traces\n" + full.Script
	}
	return []plan.Probe{full}
}

func tracesID(full string) string { return strings.Replace(full, ".state", ".traces", 1) }

// Answered returns which question was asked of a host: the full one, or the one
// after traces.
func Answered(facts plan.Facts, full string) string {
	if _, asked := facts[full]; asked {
		return full
	}
	return tracesID(full)
}

// Restarter is a step with a job of its own, which a person may want to start anew.
type Restarter interface {
	plan.Step
	// Restart returns the change that does it. The view is of a host that has no
	// difference in this step.
	Restart(v plan.View) plan.Change
}

// SecretReader is a step with a script that reads a secret on its standard input.
type SecretReader interface {
	plan.Step
	// Reads reports whether a script of the step reads this kind of input.
	Reads(plan.InputKind) bool
	// Render returns what the script reads. Its errors hold no part of the secret.
	Render(in InputFor, secret string) (string, error)
}

// InputFor is what an input is for, beside the secret in it.
type InputFor struct {
	Kind plan.InputKind
	Host fleet.Host
	Join inventory.Join // of a Kubeconfig
	// Refused says that the secret is a password which the host has refused, of AutoLoginCheck.
	Refused bool
}
