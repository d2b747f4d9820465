// Package kit holds what all steps share: settings and their comparison, parsing of answers,
// scripts, receipts of installed artifacts, and running virtual machines. It does no I/O.
package kit

import (
	"embed"
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// common holds sh functions shared by the scripts of several steps.
//
//go:embed shared
var common embed.FS

// Scripts are a package's scripts/*.sh files. Functions shared within the package are in its
// scripts/shared, functions shared between packages in this package's shared folder.
type Scripts struct{ texts func() map[string]string }

// ScriptsOf returns the scripts of a package. They are read once, so all hosts share one copy.
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

// readScripts returns the scripts of a folder by name; the folder may be missing.
func readScripts(files embed.FS, folder string) map[string]string {
	out := make(map[string]string)
	entries, _ := files.ReadDir(folder) // a missing folder has no scripts
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

// usesMark starts the first line of a script that needs shared functions: the named files
// are prepended to it.
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
			// A programming error: the script is a file of this package.
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
		// A programming error: the name is a constant and the file is embedded.
		panic(fmt.Sprintf("script %s is not embedded", name))
	}
	for i, arg := range args {
		args[i] = oneCopy(arg)
	}
	return plan.Command{Name: name, Script: text, As: as, Args: args}
}

// copies are the latest long texts in commands.
var copies Memo[string]

// oneCopy returns the copy of a long text that an earlier host has: hosts of a fleet get the same few files.
func oneCopy(text string) string {
	if len(text) < 64 { // short texts cost more to look up than to keep
		return text
	}
	return copies.Of(text, func(text string) string { return text })
}

// Probe returns a script as a probe of a step.
func (s Scripts) Probe(step plan.StepID, name string, as plan.User, args ...string) plan.Probe {
	id := string(step) + "." + name
	return plan.Probe{ID: id, Command: s.Command(string(step)+"-"+name, as, args...)}
}

// ProbeOrTraces returns the probe of a step. When the step is not configured, the script gets the
// argument "traces" and stops early on a host where macfleet left nothing: the full probe can
// run fifty tools.
func ProbeOrTraces(configured bool, full plan.Probe) []plan.Probe {
	if !configured {
		full.ID, full.Unless = tracesID(full.ID), full.ID
		full.Script = "set -- \"$@\" traces\n" + full.Script
	}
	return []plan.Probe{full}
}

func tracesID(full string) string { return strings.Replace(full, ".state", ".traces", 1) }

// AnsweredProbe returns the id of the probe that a host answered: the full one or the one for traces.
func AnsweredProbe(facts plan.Facts, full string) string {
	if _, asked := facts[full]; asked {
		return full
	}
	return tracesID(full)
}

// Restarter is a step with a job that macfleet restart can restart.
type Restarter interface {
	plan.Step
	// Restart returns the change that restarts the job. The host has no difference in this step.
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

// InputFor describes an input, without the secret in it.
type InputFor struct {
	Kind plan.InputKind
	Host fleet.Host
	Join inventory.Join // of a Kubeconfig
	// Refused marks a password that the host has refused (AutoLoginCheck).
	Refused bool
}
