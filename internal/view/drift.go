package view

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// noDrift says that everything that was looked for was compared, and has not drifted.
func noDrift(p *plan.Plan, s plan.Summary) string {
	if p.Coverage().Limited() {
		return "No drift" + selected(p, s) + "."
	}
	return fmt.Sprintf("No drift. %s of %s compared.", all(s), ownerTitle(p))
}

// movedRow says of a value that moved what was seen and what is wanted.
func movedRow(f drift.Field, seen, wanted string) row {
	return row{depth: 2, text: fmt.Sprintf("%s: %s (wanted: %s)", f.Name, seen, wanted)}
}

func (t *Text) since(r drift.Report) {
	if r.Since == nil {
		return
	}
	c := r.Since
	t.sayf("Since the look before: %d new, %d as before, %d recovered, %d not known now.", len(c.New), len(c.Stays), len(c.Recovered), len(c.Kept))
	each := func(what string, items []drift.Item) {
		for _, i := range items {
			t.line(4, "", fmt.Sprintf("%s: %s %s (%s)", what, i.Host, i.Step, i.Code))
		}
	}
	each("new", c.New)
	each("recovered", c.Recovered)
	each("not known now", c.Kept)
}

// remarks says what is to be done about ignore blocks, and what else is worth knowing.
func (t *Text) remarks(r drift.Report) {
	for _, x := range r.Remarks {
		if x.Code == plan.CodeApplyInProgress {
			continue // it stands among the warnings
		}
		sign := ""
		if x.Severity == plan.Warning {
			sign = signDrift
		}
		t.line(0, sign, fmt.Sprintf("%s: %s", x.Code, x.Text))
	}
}

// DriftDocument is a plan with the drift in it, as one JSON object.
type DriftDocument struct {
	wire.Plan
	Drift *drift.Report `json:"drift,omitempty"` // what alarms go by; of drift alone
}

// WriteDrift prints a drift as one JSON object: the plan, and the report on it.
func WriteDrift(out io.Writer, p *plan.Plan, r drift.Report) error {
	d := DriftDocument{Plan: wire.PlanOf(p), Drift: &r}
	if r.Blind != "" {
		d.Complete, d.Summary.Unread = false, 1
		d.Unread = []wire.UnreadStep{{Address: "inventory", StepUnread: plan.StepUnread{Unread: plan.Unread{Probe: "inventory", Why: r.Blind}}}}
	}
	return wire.Write(out, d)
}

// metrics writes the text format of Prometheus: the samples of a name under its help.
type metrics struct {
	out   strings.Builder
	owner []string // labels of every sample, so that files of several configurations may lie side by side
	name  string   // of the samples that follow
	seen  map[string]bool
}

func (m *metrics) gauge(name, help string) {
	m.name = name
	fmt.Fprintf(&m.out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
}

// sample adds one line. Labels are names and values by turns. What comes twice is written
// once: a reader refuses a whole file for one series that is there twice.
func (m *metrics) sample(value float64, labels ...string) {
	var pairs []string
	for label := range slices.Chunk(slices.Concat(m.owner, labels), 2) {
		pairs = append(pairs, fmt.Sprintf(`%s="%s"`, label[0], labelEscapes.Replace(strings.ToValidUTF8(label[1], "\uFFFD"))))
	}
	series := m.name + "{" + strings.Join(pairs, ",") + "}"
	if !m.seen[series] {
		m.seen[series] = true
		fmt.Fprintf(&m.out, "%s %s\n", series, strings.TrimSuffix(fmt.Sprintf("%.3f", value), ".000"))
	}
}

func (m *metrics) single(name, help string, value float64) {
	m.gauge(name, help)
	m.sample(value)
}

// labelEscapes are for what could end a label's value or the line.
var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// WriteDriftMetrics prints a drift for the textfile collector of Prometheus.
func WriteDriftMetrics(out io.Writer, r drift.Report) error {
	m := &metrics{owner: []string{"configuration", r.Owner.Name, "environment", r.Owner.Environment}, seen: make(map[string]bool)}
	items := func(all []drift.Item) {
		for _, i := range all {
			m.sample(1, "host", i.Host, "fleet", i.Fleet, "step", i.Step, "code", i.Code.String(), "severity", string(i.Severity))
		}
	}
	m.gauge("macfleet_drift", "1 for each thing that changed behind our back and is not ignored.")
	items(r.Items)
	if r.Since != nil {
		m.gauge("macfleet_drift_kept", "1 for each drift of the look before that nobody can say whether it is still there.")
		items(r.Since.Kept)
	}
	m.gauge("macfleet_drift_info", "1, with the fingerprint of all drift that is not ignored: clean and unknown are two.")
	m.sample(1, "fingerprint", r.Fingerprint)
	m.gauge("macfleet_unknown", "1 for each host, or step of one, that could not be compared. Without a host: all.")
	for _, u := range r.Unseen { // one step may have several answers that cannot be read
		m.sample(1, "host", u.Host, "fleet", u.Fleet, "step", u.Step, "code", u.Code.String(), "severity", string(u.Severity))
	}
	m.single("macfleet_left_out", "Hosts that --on and --exclude leave out: nobody looked at them.", float64(r.Coverage.LeftOut))
	m.gauge("macfleet_hosts", "Hosts of a fleet by state; each is counted once.")
	for _, h := range r.Hosts {
		for _, s := range drift.HostStates() {
			m.sample(float64(*h.Of(s)), "fleet", h.Fleet, "state", string(s))
		}
	}
	m.single("macfleet_ignored", "Drift that is ignored for now. apply mends it all the same.", float64(len(r.Ignored)))
	m.gauge("macfleet_ignore", "1 for each ignore block, with what it is good for: active, unused, expired, too-long.")
	for _, i := range r.Ignores {
		m.sample(1, "name", i.Name, "owner", i.Owner, "state", string(i.State))
	}
	m.gauge("macfleet_ignore_expires_timestamp_seconds", "When an ignore block ends, in seconds since 1970.")
	for _, i := range r.Ignores {
		m.sample(float64(i.Expires.Unix()), "name", i.Name, "owner", i.Owner)
	}
	truth := map[bool]float64{true: 1}
	applies := slices.ContainsFunc(r.Remarks, func(x drift.Remark) bool { return x.Code == plan.CodeApplyInProgress })
	m.single("macfleet_complete", "1 when everything could be compared, 0 when drift may be unseen.", truth[r.Complete])
	m.single("macfleet_apply_in_progress", "1 while somebody applies: what is seen may be half done.", truth[applies])
	m.single("macfleet_orphans", "Hosts of ours without a place in the configuration, ignored or not.", float64(r.Orphans))
	m.single("macfleet_pending", "Differences of configuration that was never applied. They are no drift.", float64(r.Pending))
	m.single("macfleet_drift_run_timestamp_seconds", "When it was looked, in seconds since 1970.", float64(r.At.UnixMilli())/1000)
	if _, err := io.WriteString(out, m.out.String()); err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	return nil
}
