package view

import (
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/plan"
)

// Scripts prints the exact scripts that an explanation's actions would run, as
// one text of comments and shell. Lines are never broken: it is a script. With
// a step it prints that step's alone.
func (t *Text) Scripts(x doctor.Explanation, only plan.StepID) {
	for _, s := range x.Steps {
		switch {
		case only != "" && s.ID != only:
		case s.Wanted && !s.Compared():
			t.comment(fmt.Sprintf("%s: could not be compared, so nothing would run", s.ID))
		case s.Action == nil:
			t.comment(fmt.Sprintf("%s: no difference, so nothing would run", s.ID))
		case s.Action.Refusal != nil:
			t.comment(fmt.Sprintf("%s: refused (%s), so nothing would run; without that:", s.ID, s.Action.Refusal.Code))
			t.commands(x.Host, s.Action.Changes)
		default:
			t.commands(x.Host, s.Action.Changes)
		}
	}
}

func (t *Text) commands(h plan.Host, changes []plan.Change) {
	for _, c := range changes {
		t.comment(fmt.Sprintf("%s, as %s on %s", c.Command.Name, asWhom(h, c.Command), h.Name))
		for i, arg := range c.Command.Args {
			t.comment(fmt.Sprintf("$%d is %q", i+1, arg))
		}
		t.Print(script(c.Command))
		t.blank()
	}
}

func (t *Text) comment(text string) { fmt.Fprintln(t.out, "# "+printable(text)) }

func script(c plan.Command) string {
	return strings.TrimRight(hosts.ScriptText(c), "\n") + "\n"
}

// use is one script with the hosts that it would run on.
type use struct {
	name, as, text string
	runs           []string // a line for each host, or for all that get the same
}

// PlanScripts prints every script that a plan's steps would run, once, with the
// hosts and the arguments that it would get. Claims and markers are macfleet's
// own files under /etc/macfleet and no step's.
func (t *Text) PlanScripts(p *plan.Plan) {
	uses := scriptsOf(p)
	if len(uses) == 0 {
		return
	}
	t.blank()
	fmt.Fprintln(t.out, t.styles.strong.Render("Scripts"))
	for _, u := range uses {
		t.blank()
		t.comment(u.name + ", as " + u.as)
		for _, r := range u.runs {
			t.comment("  " + r)
		}
		t.Print(u.text)
	}
}

// scriptsOf gathers a plan's scripts in the order of their first use.
func scriptsOf(p *plan.Plan) []*use {
	var all []*use
	at := make(map[string]*use)
	hosts := make(map[string]plan.Host, len(p.Hosts))
	for _, h := range p.Hosts {
		hosts[h.Server.ID] = h
	}
	for _, a := range p.Actions {
		h := hosts[a.ServerID]
		if a.Refusal != nil {
			continue
		}
		for _, c := range a.Changes {
			as := asWhom(h, c.Command)
			key := c.Command.Name + " " + as + "\n" + c.Command.Script
			if at[key] == nil {
				at[key] = &use{name: c.Command.Name, as: as, text: script(c.Command)}
				all = append(all, at[key])
			}
			at[key].runs = append(at[key].runs, "on "+h.Name+arguments(c.Command))
		}
	}
	return all
}

func arguments(c plan.Command) string {
	if len(c.Args) == 0 {
		return ""
	}
	var quoted []string
	for _, arg := range c.Args {
		quoted = append(quoted, fmt.Sprintf("%q", arg))
	}
	return " with " + strings.Join(quoted, " ")
}
