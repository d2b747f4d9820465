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

// noDrift says that nothing drifted, and how much was compared.
func noDrift(p *plan.Plan, s plan.Summary) string {
	if p.Coverage().Limited() {
		return "No drift" + selected(p, s) + "."
	}
	return fmt.Sprintf("No drift. %s of %s compared.", all(s), ownerTitle(p))
}

// movedRow shows the found and the configured value of a field that changed.
func movedRow(f drift.Field, seen, wanted string) row {
	return row{depth: 2, text: fmt.Sprintf("%s: %s (wanted: %s)", f.Name, seen, wanted)}
}

func (t *Text) since(r drift.Report) {
	if r.Since == nil {
		return
	}
	c := r.Since
	t.sayf("Since the earlier report: %d new, %d unchanged, %d recovered, %d not compared.", len(c.New), len(c.Stays), len(c.Recovered), len(c.Kept))
	each := func(what string, items []drift.Item) {
		for _, i := range items {
			t.line(4, "", fmt.Sprintf("%s: %s %s (%s)", what, i.Host, i.Step, i.Code))
		}
	}
	each("new", c.New)
	each("recovered", c.Recovered)
	each("not compared", c.Kept)
}

// remarks says what to do about ignore blocks, and what else is worth knowing.
func (t *Text) remarks(r drift.Report) {
	for _, x := range r.Remarks {
		if x.Code == plan.CodeApplyInProgress {
			continue // it is among the warnings
		}
		sign := ""
		if x.Severity == plan.Warning {
			sign = signDrift
		}
		t.line(0, sign, fmt.Sprintf("%s: %s", x.Code, x.Text))
	}
}

// DriftDocument is a plan with its drift, as one JSON object.
type DriftDocument struct {
	wire.Plan
	Drift *drift.Report `json:"drift,omitempty"` // what alarms use; only in the document of drift
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
	owner []string // labels of every sample, so that the files of several configurations can be collected together
	name  string   // of the samples that follow
	seen  map[string]bool
}

func (m *metrics) gauge(name, help string) {
	m.name = name
	fmt.Fprintf(&m.out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
}

// sample adds one line; labels are names and values by turns. A duplicate is left out: Prometheus refuses a whole file for one
// duplicate series.
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
	m.gauge("macfleet_drift", "1 for each thing that changed outside macfleet and is not ignored.")
	items(r.Items)
	if r.Since != nil {
		m.gauge("macfleet_drift_kept", "1 for each drift item of the earlier report that could not be compared this time.")
		items(r.Since.Kept)
	}
	m.gauge("macfleet_drift_info", "1, labelled with the fingerprint of all drift that is not ignored, or with clean or unknown.")
	m.sample(1, "fingerprint", r.Fingerprint)
	m.gauge("macfleet_unknown", "1 for each host, or step of a host, that could not be compared. Without a host: all of them.")
	for _, u := range r.Unseen { // one step may have several answers that cannot be read
		m.sample(1, "host", u.Host, "fleet", u.Fleet, "step", u.Step, "code", u.Code.String(), "severity", string(u.Severity))
	}
	m.single("macfleet_left_out", "Hosts that --on and --exclude leave out; they were not contacted.", float64(r.Coverage.LeftOut))
	m.gauge("macfleet_hosts", "Hosts of a fleet by state; each is counted once.")
	for _, h := range r.Hosts {
		for _, s := range drift.HostStates() {
			m.sample(float64(*h.Of(s)), "fleet", h.Fleet, "state", string(s))
		}
	}
	m.single("macfleet_ignored", "Drift items that are ignored for now; apply fixes them anyway.", float64(len(r.Ignored)))
	m.gauge("macfleet_ignore", "1 for each ignore block, with its state: active, unused, expired or too-long.")
	for _, i := range r.Ignores {
		m.sample(1, "name", i.Name, "owner", i.Owner, "state", string(i.State))
	}
	m.gauge("macfleet_ignore_expires_timestamp_seconds", "When an ignore block expires, in seconds since 1970.")
	for _, i := range r.Ignores {
		m.sample(float64(i.Expires.Unix()), "name", i.Name, "owner", i.Owner)
	}
	truth := map[bool]float64{true: 1}
	applies := slices.ContainsFunc(r.Remarks, func(x drift.Remark) bool { return x.Code == plan.CodeApplyInProgress })
	m.single("macfleet_complete", "1 if everything could be compared, 0 if there may be drift that was not seen.", truth[r.Complete])
	m.single("macfleet_apply_in_progress", "1 while an apply is running: what was observed may be half done.", truth[applies])
	m.single("macfleet_orphans", "Orphaned members, ignored or not.", float64(r.Orphans))
	m.single("macfleet_pending", "Differences of configuration that was never applied; they are not drift.", float64(r.Pending))
	m.single("macfleet_drift_run_timestamp_seconds", "When the hosts were observed, in seconds since 1970.", float64(r.At.UnixMilli())/1000)
	if _, err := io.WriteString(out, m.out.String()); err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	return nil
}
