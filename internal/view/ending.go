package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/plan"
)

// Ending is the result of a run.
type Ending struct {
	What    string        // in a word or two, if the counts do not say it
	Changed bool          // something may have been changed
	Result  engine.Result // After is the plan itself if there was nothing to do
	Left    []runlog.LeftHost
	Took    time.Duration
	Exit    int
}

// Result prints the one line that ends a run, whatever its result.
func (t *Text) Result(e Ending) {
	r := e.Result
	hosts, nodes := unfinished(countOf(e.Left)), ""
	if r.After != nil {
		hosts = convergedCount(r.After, e.Left)
		if joining, late := nodesOf(r); joining > 0 {
			nodes = fmt.Sprintf("%d/%d Nodes Ready", joining-len(late), joining)
		}
	}
	text := listed(", ", e.What, hosts, nodes, given(r.Done > 0, "%s done", count(r.Done, "action")),
		given(!e.Changed && r.After == nil, "nothing was changed"), clock(e.Took), fmt.Sprintf("exit %d", e.Exit))
	t.resultLine(text)
}

// resultLine prints counts behind the word Result. It breaks only behind a comma.
func (t *Text) resultLine(text string) {
	lead, indent := t.strong.Render("Result")+"  ", len("Result  ")
	line := ""
	for _, part := range strings.SplitAfter(printable(text), ", ") {
		if t.width > 0 && line != "" && indent+lipgloss.Width(strings.TrimRight(line+part, " ")) > t.width {
			fmt.Fprintln(t.out, t.plain(lead+strings.TrimRight(line, " ")))
			lead, line = strings.Repeat(" ", indent), ""
		}
		line += part
	}
	fmt.Fprintln(t.out, t.plain(lead+line))
}

// Counts are how many things had which result, in the order in which they were added first.
type Counts struct {
	results []string
	n       map[string]int
}

// Add counts n more things with a result.
func (c *Counts) Add(result string, n int) {
	if n == 0 {
		return
	}
	if c.n == nil {
		c.n = make(map[string]int)
	}
	if c.n[result] == 0 {
		c.results = append(c.results, result)
	}
	c.n[result] += n
}

// Summed prints the line that ends a small command. The exit code is left out when it is 0.
func (t *Text) Summed(noun string, c Counts, exit int) {
	var parts []string
	for i, result := range c.results {
		if i == 0 {
			parts = append(parts, count(c.n[result], noun)+" "+result)
		} else {
			parts = append(parts, fmt.Sprintf("%d %s", c.n[result], result))
		}
	}
	if len(parts) == 0 {
		parts = []string{"nothing to do"}
	}
	t.resultLine(listed(", ", listed(", ", parts...), given(exit != 0, "exit %d", exit)))
}

// Cancelled says that nothing was done because a person did not approve it.
func (t *Text) Cancelled(err error) {
	first, rest, _ := strings.Cut(err.Error(), "; ")
	t.Say(strings.Join(mapped(nonempty(first, rest), func(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }), " "))
}

// convergedCount counts the hosts that are in sync at the end of a run, and the others by why they are not. A host on which
// something failed counts as failed, whatever the comparison found.
func convergedCount(p *plan.Plan, left []runlog.LeftHost) string {
	selected, in := given(p.Coverage().Limited(), "selected "), given(len(p.Steps) > 0, " in %s", stepsText(p.Steps, p.AdoptOnly))
	t := tallyOf(p)
	if len(left) == 0 {
		return t.result(selected, in)
	}
	states := make(map[string]runlog.State) // by host
	for _, l := range left {
		states[l.Host] = l.State
	}
	actions := byHost(p)
	for _, h := range p.Hosts {
		if states[h.Name] != "" && h.Verdict(actions[h.Server.ID]) == plan.InSync {
			t.InSync--
		}
	}
	of := countOf(left)
	parts := mapped(runlog.LeftStates, func(s runlog.State) string { return some(of(s), stateText(s)) })
	return listed(", ", fmt.Sprintf("%d/%d %shosts converged%s", t.InSync, t.Hosts, selected, in), listed(", ", parts...),
		given(t.NeedsAttention == 1, "1 needs attention"), given(t.NeedsAttention > 1, "%d need attention", t.NeedsAttention), t.others())
}
