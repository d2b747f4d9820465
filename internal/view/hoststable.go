package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// hostColumn is a column of the table of hosts.
type hostColumn struct {
	head  string
	wide  bool // only in the wide table
	agent bool // only where a host is a CI agent
	cell  func(HostRow) string
	order func(a, b HostRow) int // nil: by the cells' text
}

// whyColumn is the last column, whose text is shortened where it does not fit.
const whyColumn = "WHY"

// tableOfHosts returns all columns of the table of hosts.
func tableOfHosts(names plan.Names) []hostColumn {
	or := func(text string) string { return cmp.Or(text, "-") }
	rank := func(r HostRow) int { return slices.Index(HostStates(), r.State) }
	running := func(r HostRow) int {
		if r.PodsRunning == nil {
			return -1
		}
		return *r.PodsRunning
	}
	days := func(r HostRow) int {
		if r.Token == nil {
			return -1
		}
		return r.Token.Days
	}
	return []hostColumn{
		{head: "FLEET", cell: func(r HostRow) string { return r.Fleet }},
		{head: "HOST", cell: func(r HostRow) string { return shortestName(names, r.Name) }},
		{head: "SSH", cell: HostRow.ssh},
		{head: "STATE", cell: func(r HostRow) string { return r.State.String() }, order: func(a, b HostRow) int { return cmp.Compare(rank(a), rank(b)) }},
		{head: "NODE", cell: HostRow.node},
		{head: "PODS", cell: HostRow.pods, order: func(a, b HostRow) int { return cmp.Compare(running(a), running(b)) }},
		{head: "GROUP", wide: true, cell: func(r HostRow) string { return r.Group }},
		{head: "TYPE", wide: true, cell: func(r HostRow) string { return r.Type }},
		{head: "ZONE", wide: true, cell: func(r HostRow) string { return r.Zone }},
		{head: "ADDRESS", wide: true, cell: func(r HostRow) string { return or(r.Address) }},
		{head: "PATH", wide: true, cell: func(r HostRow) string { return or(r.Path) }},
		{head: "OS", wide: true, cell: func(r HostRow) string { return or(r.OS) }},
		{head: "KEY-SINCE", wide: true, cell: func(r HostRow) string {
			return or(given(!r.KeySince.IsZero(), "%s", r.KeySince.UTC().Format(time.DateOnly)))
		}},
		{head: "TOKEN-AGE", wide: true, cell: HostRow.tokenAge, order: func(a, b HostRow) int { return cmp.Compare(days(a), days(b)) }},
		{head: "RUNNER", wide: true, agent: true, cell: HostRow.agent},
		{head: "RUNNER-VERSION", wide: true, agent: true, cell: func(r HostRow) string { return or(r.listedEntry().Version) }},
		{head: "RUNNER-LABELS", wide: true, agent: true, cell: func(r HostRow) string {
			return or(strings.Join(r.listedEntry().Tags, ","))
		}},
		{head: "SERVER", wide: true, cell: func(r HostRow) string { return r.ServerID }},
		{head: whyColumn, cell: func(r HostRow) string { return r.Why }},
	}
}

// HostColumns are the heads of all columns.
func HostColumns() []string {
	return mapped(tableOfHosts(plan.Names{}), func(c hostColumn) string { return c.head })
}

// shortestName is the shortest form of a name that every command takes.
func shortestName(names plan.Names, name string) string {
	short := names.Short(name)
	_, end, found := strings.Cut(short, "/")
	if one, err := names.One(end); found && err == nil && one == name {
		return end
	}
	return short
}

func (r HostRow) ssh() string {
	switch r.Reachable {
	case "yes":
		return "ok"
	case plan.CodeUnreachable.String(), plan.CodeHostDown.String():
		return "down"
	case plan.CodePortUnreachable.String():
		return "blocked"
	case plan.CodeWrongHostKey.String(), plan.CodeHostKeyUnknown.String():
		return "key"
	}
	return "error"
}

func (r HostRow) node() string {
	ready, cordoned, _ := strings.Cut(r.Ready, ",")
	switch {
	case ready == "True" && cordoned != "":
		return "cordoned"
	case ready == "True":
		return "Ready"
	case ready == "False":
		return "not Ready"
	case ready == "Unknown":
		return "unknown"
	}
	return cmp.Or(given(ready == "no-node", "none"), "-")
}

func (r HostRow) pods() string {
	if r.PodsRunning == nil {
		return "-"
	}
	return strconv.Itoa(*r.PodsRunning) + func() string {
		if r.PodsMost == nil {
			return ""
		}
		return "/" + strconv.Itoa(*r.PodsMost)
	}()
}

// listedEntry is what the service lists; zero: nothing.
func (r HostRow) listedEntry() inventory.Entry {
	if x, is := r.listed(); is {
		return *x.Entry
	}
	return inventory.Entry{}
}

// listed is the entry through which a service gives work to the host; nil: none.
func (r HostRow) listed() (x plan.HostPeer, is bool) {
	i := slices.IndexFunc(r.Peers, func(p plan.HostPeer) bool { return p.Works && p.Entry != nil })
	if i < 0 {
		return x, false
	}
	return r.Peers[i], true
}

// agent says what the CI service shows of the host's agent: its id, and what it does.
func (r HostRow) agent() string {
	switch x, is := r.listed(); {
	case !is:
		return "-"
	case x.Fenced:
		return x.Entry.ID + " fenced"
	case !x.Entry.Online:
		return x.Entry.ID + " offline"
	case x.Entry.Busy:
		return x.Entry.ID + " busy"
	default:
		return x.Entry.ID + " online"
	}
}

func (r HostRow) tokenAge() string {
	if r.Token == nil {
		return "-"
	}
	return strconv.Itoa(r.Token.Days) + " d"
}

// isNotReady reports whether the host's Node, which its fleet wants, is not known to be Ready.
func (r HostRow) isNotReady() bool {
	return r.joins && r.Ready != "-" && !strings.HasPrefix(r.Ready, string(inventory.Ready))
}

// isHeld reports whether a hold keeps changes from the host.
func (r HostRow) isHeld() bool { return r.Hold != nil && !r.Hold.Expired }

// Hosts prints the members as a table, below a heading that counts them.
func (t *Text) Hosts(p *plan.Plan, o HostsOptions) {
	rows := o.rows(p)
	if len(rows) == 0 && !o.Bare {
		if c := p.Coverage(); c.LeftOut > 0 {
			t.Say(fmt.Sprintf("No host matches%s; %s left out.", flags(shortened(c.On), shortened(c.Exclude), nil, plan.Decisions{}), count(c.LeftOut, "host")))
		} else {
			t.Say("No hosts. macfleet plan shows what apply would claim.")
		}
		return
	}
	names := p.Names()
	table := t.hostTable(p, rows, names, o)
	if o.Bare {
		t.columns(0, table[1:])
		return
	}
	t.hostsHeading(p, rows, names, o.Now)
	c := p.Coverage() // each row says itself what of it was not compared
	c.NotCompared, c.Partly = nil, nil
	t.uncovered(c)
	t.keyRotation(p)
	t.Table(table, "SERVER", "OS", "PATH", "ZONE", "TYPE", "GROUP", "KEY-SINCE", "TOKEN-AGE", "ADDRESS", "PODS", "FLEET", "NODE")
	t.absent(p)
	t.styled(0, "", t.faint.Render("-o wide|json|yaml|name  --sort-by COLUMN  -w (watch)  macfleet explain HOST"))
}

// hostTable is the head and the cells, with reasons that fit.
func (t *Text) hostTable(p *plan.Plan, rows []HostRow, names plan.Names, o HostsOptions) [][]string {
	pods := slices.ContainsFunc(rows, func(r HostRow) bool { return r.PodsRunning != nil })
	agents := slices.ContainsFunc(rows, func(r HostRow) bool { _, is := r.listed(); return is })
	var columns []hostColumn
	for _, c := range tableOfHosts(names) {
		if c.head == "HOST" && o.Wide {
			c.cell = func(r HostRow) string { return r.Name }
		}
		if c.wide && !o.Wide || c.agent && !agents || c.head == "PODS" && !pods || c.head == "NODE" && !p.Cluster {
			continue
		}
		columns = append(columns, c)
	}
	table := [][]string{mapped(columns, func(c hostColumn) string { return c.head })}
	for _, r := range rows {
		table = append(table, mapped(columns, func(c hostColumn) string { return c.cell(r) }))
	}
	last := len(columns) - 1
	room := max(t.width-before(columnWidths(table)), lastColumn)
	for i, r := range rows {
		if t.width > 0 {
			table[i+1][last] = fitting(room, append([]string{r.Why}, r.brief...))
		}
	}
	return table
}

// fitting returns the first text that fits a width, or the first one shortened.
func fitting(width int, texts []string) string {
	for _, text := range texts {
		if lipgloss.Width(printable(text)) <= width {
			return text
		}
	}
	return shortenTo(texts[0], width)
}

// shortenTo shortens a text to a width.
func shortenTo(text string, width int) string {
	text = printable(text)
	if lipgloss.Width(text) <= width {
		return text
	}
	runes := []rune(text)
	for len(runes) > 0 && lipgloss.Width(string(runes)) >= width {
		runes = runes[:len(runes)-1]
	}
	return strings.TrimRight(string(runes), " ") + "…"
}

// hostsHeading says what all names begin with, how many hosts are in which state, and when that was.
func (t *Text) hostsHeading(p *plan.Plan, rows []HostRow, names plan.Names, now time.Time) {
	title := ownerTitle(p)
	if names.Prefix() != "" {
		title = names.Prefix() + "*"
	}
	of := make(map[string]int)
	for _, r := range rows {
		switch {
		case r.ssh() == "down" && r.State != leaves:
			of["down"]++
		case r.State != held:
			of[r.State.String()]++
		}
		if r.isHeld() {
			of[held.String()]++
		}
		if r.isNotReady() {
			of["not Ready"]++
		}
	}
	parts := []string{count(len(rows), "host")}
	for _, state := range []string{inSync.String(), toUpdate.String(), leaves.String(), drifted.String(), blocked.String(), orphaned.String(), unknown.String(), "down", "not Ready", held.String()} {
		parts = append(parts, some(of[state], state))
	}
	at := now.UTC().Format("15:04Z")
	lines := joinWithin(t.width-len(at)-2, title+"  ", nonempty(parts...))
	gap := max(2, t.width-lipgloss.Width(lines[0])-len(at))
	fmt.Fprintln(t.out, t.strong.Render(printable(lines[0]))+strings.Repeat(" ", gap)+t.faint.Render(at))
	for _, line := range lines[1:] {
		fmt.Fprintln(t.out, t.strong.Render(printable(line)))
	}
}

// joinWithin joins parts behind a lead, and breaks between parts where a line gets wider than width; 0 or less breaks nothing.
func joinWithin(width int, lead string, parts []string) []string {
	lines := []string{lead}
	for i, part := range parts {
		last := &lines[len(lines)-1]
		sep := given(i > 0, " · ")
		if width > 0 && i > 0 && lipgloss.Width(*last+sep+part) > width {
			lines = append(lines, "  "+part)
			continue
		}
		*last += sep + part
	}
	return lines
}

// absent says which hosts have no row in the table: those to claim, those that no server is left for, and lost ones.
func (t *Text) absent(p *plan.Plan) {
	claims, missing := 0, 0
	for _, h := range p.Hosts {
		if !h.Member {
			claims++
		}
	}
	for _, s := range p.Shortages {
		missing += s.Missing
	}
	for _, l := range p.Lost {
		t.line(0, signUnknown, fmt.Sprintf("%s: %s (%s)", l.Name, l.Text, l.Code))
		t.line(4, "", "fix: "+l.Remedy)
	}
	if claims > 0 {
		t.sayf("%s to claim from the pool: macfleet apply", count(claims, "more host"))
	}
	if missing > 0 {
		t.sayf("%s wanted, and the pool has none: macfleet plan shows which type", count(missing, "more host"))
	}
}
