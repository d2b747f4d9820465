package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// Ending is what a run came to.
type Ending struct {
	What    string        // in a word or two, where the counts do not say it
	Changed bool          // something may have been changed
	Result  engine.Result // of the run, where it was performed; After is the plan alone where nothing was to be done
	Took    time.Duration
	Exit    int
}

// Result prints the one line that ends a run, whatever came of it.
func (t *Text) Result(e Ending) {
	r := e.Result
	hosts, nodes := "", ""
	if r.After != nil {
		hosts, nodes = convergedCount(r.After), ""
		if joining, late := nodesOf(r); joining > 0 {
			nodes = fmt.Sprintf("%d/%d Nodes Ready", joining-len(late), joining)
		}
	}
	text := listed(", ", e.What, hosts, nodes, given(r.Done > 0, "%s done", count(r.Done, "action")),
		given(!e.Changed && r.After == nil, "nothing was changed"), clock(e.Took), fmt.Sprintf("exit %d", e.Exit))
	t.behind(t.strong.Render("Result")+"  ", printable(text))
}

// Cancelled says that nothing was done because a person did not approve it.
func (t *Text) Cancelled(err error) {
	first, rest, _ := strings.Cut(err.Error(), "; ")
	t.Say(strings.Join(mapped(nonempty(first, rest), func(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }), " "))
}

// convergedCount says how many hosts are as they are wanted, and how the others are.
func convergedCount(p *plan.Plan) string {
	return tallyOf(p).result(given(p.Coverage().Limited(), "selected "), given(len(p.Steps) > 0, " in %s", strings.Join(words(p.Steps), ", ")))
}
