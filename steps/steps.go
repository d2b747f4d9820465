// Package steps holds the concerns of a host, one file a step with its scripts
// beside it. A step parses what was seen, brings what is wanted into the same
// form, and compares the two with ==. It does no I/O.
package steps

import (
	"embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unique"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

//go:embed scripts/*.sh scripts/shared/*.sh
var scripts embed.FS

// For returns all steps of a host in the order in which they run. A step whose
// block the configuration lacks is there too, with a nil wish: what it wants is
// that nothing of it is on the host. The specification must have nothing left
// open (fleet.Spec.WithDefaults), as every one that was loaded.
func For(h fleet.Host) []plan.Step {
	return []plan.Step{
		sudo{wish: h.Spec.Sudo, user: h.User},
		hostname{wish: h.Spec.Hostname, name: h.Name},
		power{wish: h.Spec.Power},
		autoLogin{wish: h.Spec.AutoLogin, user: h.User},
		vmFirewall{wish: h.Spec.VMFirewall},
		tart{wish: h.Spec.Tart},
		tartKubelet{wish: h.Spec.TartKubelet, host: h},
		githubRunner{wish: h.Spec.GithubRunner, joins: h.Spec.JoinsCluster()},
	}
}

// texts are the embedded scripts by file name, read once: a fleet has one copy of
// a script and not one a host.
var texts = sync.OnceValue(func() map[string]string {
	out, err := readScripts("scripts")
	shared, serr := readScripts("scripts/shared")
	if err = errors.Join(err, serr); err != nil {
		panic(fmt.Sprintf("the embedded scripts cannot be read: %v", err))
	}
	for name, text := range out {
		out[name] = withShared(name, text, shared)
	}
	return out
})

func readScripts(folder string) (map[string]string, error) {
	files, err := scripts.ReadDir(folder)
	out := make(map[string]string, len(files))
	for _, f := range files {
		if f.IsDir() {
			continue
		}
		text, rerr := scripts.ReadFile(folder + "/" + f.Name())
		out[f.Name()], err = string(text), errors.Join(err, rerr)
	}
	return out, err
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
		functions, there := shared[word+".sh"]
		if !there {
			// The script is a file of this package.
			panic(fmt.Sprintf("%s uses %s, which is not embedded", name, word))
		}
		b.WriteString(functions)
	}
	return b.String() + text
}

// script returns an embedded script as a command.
func script(name string, as plan.User, args ...string) plan.Command {
	text, ok := texts()[name+".sh"]
	if !ok {
		// The name is a constant of this package and the file is embedded.
		panic(fmt.Sprintf("script %s is not embedded", name))
	}
	for i, arg := range args {
		args[i] = shared(arg)
	}
	return plan.Command{Name: name, Script: text, As: as, Args: args}
}

// shared returns a text of which there is one copy, whatever number of hosts has
// it: a fleet that gets a firewall at once gets the same few files everywhere.
func shared(text string) string {
	if len(text) < 64 { // what is short costs more to find than to keep
		return text
	}
	return unique.Make(text).Value()
}

// probe returns an embedded script as a question of a step.
func probe(step plan.StepID, name string, as plan.User, args ...string) plan.Probe {
	id := string(step) + "." + name
	return plan.Probe{ID: id, Command: script(string(step)+"-"+name, as, args...)}
}

// traces returns the question of a step that has no wish: its script ends early
// where macfleet has left nothing of the step, which it hears from its last
// argument, and says everything elsewhere. Most hosts are asked for nothing, and
// everything can be fifty tools.
func traces(full plan.Probe) plan.Probe {
	p := full
	p.ID, p.Unless = tracesID(full.ID), full.ID
	p.Script = "set -- \"$@\" traces\n" + full.Script
	return p
}

func tracesID(full string) string { return strings.Replace(full, ".state", ".traces", 1) }

// answered returns which question was asked of a host: the full one, or the one
// after traces.
func answered(facts plan.Facts, full string) string {
	if _, asked := facts[full]; asked {
		return full
	}
	return tracesID(full)
}

// setting is one value of a step: how a person calls it, and both sides in
// normal form.
type setting struct {
	name         string
	seen, wanted string
}

func (s setting) differs() bool { return s.seen != s.wanted }

// wanted is the side of settings that is wanted, as text.
func wanted(all []setting) string { return text(all, func(s setting) string { return s.wanted }) }

// facts is the side of settings that was seen, as text.
func facts(all []setting) string { return text(all, func(s setting) string { return s.seen }) }

// text is one side of settings, a line each.
func text(all []setting, side func(setting) string) string {
	size := 0
	for _, s := range all {
		size += len(s.name) + len(side(s)) + len(`=""`) + 1
	}
	var b strings.Builder
	b.Grow(size)
	for _, s := range all {
		writeLine(&b, s.name, side(s))
	}
	return b.String()
}

func writeLine(to *strings.Builder, name, value string) {
	to.WriteString(name)
	to.WriteByte('=')
	if plainText(value) { // nearly all are, and quoting is slow
		to.WriteByte('"')
		to.WriteString(value)
		to.WriteByte('"')
	} else {
		to.WriteString(strconv.Quote(value))
	}
	to.WriteByte('\n')
}

// plainText reports whether strconv.Quote would change nothing within a text.
func plainText(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// fields returns the settings that differ, for a person.
func fields(all ...setting) []plan.Field {
	n := 0
	for _, s := range all {
		if s.differs() {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	out := make([]plan.Field, 0, n)
	for _, s := range all {
		if s.differs() {
			out = append(out, plan.Field{Name: s.name, Before: s.seen, After: s.wanted})
		}
	}
	return out
}

// reader reads the answers of one step and collects what it cannot use.
type reader struct {
	facts  plan.Facts
	unread []plan.Unread
}

// answer returns a probe's answer; ok is false when there is none, which is
// then noted.
func (r *reader) answer(id string) (a plan.Answer, ok bool) {
	seen := r.facts.Get(id)
	a, ok = seen.Get()
	if !ok {
		r.unread = append(r.unread, plan.Unread{Probe: id, Why: seen.Why()})
	}
	return a, ok
}

// odd notes an answer that the step does not understand.
func (r *reader) odd(id, why string, a plan.Answer) {
	bytes := a.Stdout
	if a.Stderr != "" {
		bytes += a.Stderr
	}
	r.unread = append(r.unread, plan.Unread{Probe: id, Why: why, Bytes: bytes})
}

// refused is the finding of a difference that macfleet must not remove. The
// trouble is what was seen.
func refused(t *plan.Trouble) plan.Finding {
	return plan.Finding{Facts: facts([]setting{{name: t.Code.String(), seen: t.Text}}), Refused: t}
}
