package view

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/plan"
)

// metrics writes the text format of Prometheus: all samples of a name together,
// under its help.
type metrics struct {
	out   strings.Builder
	owner []string // labels of every sample, so that files of several configurations may lie side by side
	seen  map[string]bool
}

func (m *metrics) gauge(name, help string) {
	fmt.Fprintf(&m.out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
}

// sample adds one line. Labels are names and values by turns. What comes twice is
// written once: a reader refuses a whole file for one series that is there twice.
func (m *metrics) sample(name string, value float64, labels ...string) {
	labels = append(m.owner[:len(m.owner):len(m.owner)], labels...)
	series := name
	for i := 0; i+1 < len(labels); i += 2 {
		series += map[bool]string{true: "{", false: ","}[i == 0]
		series += fmt.Sprintf(`%s="%s"`, labels[i], escapedLabel(labels[i+1]))
	}
	if m.seen[series] {
		return
	}
	m.seen[series] = true
	fmt.Fprintf(&m.out, "%s} %s\n", series, strings.TrimSuffix(fmt.Sprintf("%.3f", value), ".000"))
}

// escapedLabel writes a label's value: of what could end it or the line only three
// characters count, and the text must be UTF-8.
func escapedLabel(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(text, "\uFFFD"))
}

// WriteDriftMetrics prints a drift for the textfile collector of Prometheus.
func WriteDriftMetrics(out io.Writer, r drift.Report) error {
	m := &metrics{owner: []string{"configuration", r.Owner.Name, "environment", r.Owner.Environment}, seen: make(map[string]bool)}
	m.drift(r)
	m.hosts(r)
	m.ignores(r)
	m.gauge("macfleet_complete", "1 when everything could be compared, 0 when drift may be unseen.")
	m.sample("macfleet_complete", truth(r.Complete))
	m.gauge("macfleet_apply_in_progress", "1 while somebody applies: what is seen may be half done.")
	m.sample("macfleet_apply_in_progress", truth(slices.ContainsFunc(r.Remarks, func(x drift.Remark) bool { return x.Code == plan.CodeApplyInProgress })))
	m.gauge("macfleet_pending", "Differences of configuration that was never applied. They are no drift.")
	m.sample("macfleet_pending", float64(r.Pending))
	m.gauge("macfleet_drift_run_timestamp_seconds", "When it was looked, in seconds since 1970.")
	m.sample("macfleet_drift_run_timestamp_seconds", float64(r.At.UnixMilli())/1000)
	if _, err := io.WriteString(out, m.out.String()); err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	return nil
}

func (m *metrics) drift(r drift.Report) {
	labels := func(i drift.Item) []string {
		return []string{"host", i.Host, "fleet", i.Fleet, "step", i.Step, "code", i.Code.String(), "severity", string(i.Severity)}
	}
	m.gauge("macfleet_drift", "1 for each thing that changed behind our back and is not ignored.")
	for _, i := range r.Items {
		m.sample("macfleet_drift", 1, labels(i)...)
	}
	if r.Since != nil {
		m.gauge("macfleet_drift_kept", "1 for each drift of the look before that nobody can say whether it is still there.")
		for _, i := range r.Since.Kept {
			m.sample("macfleet_drift_kept", 1, labels(i)...)
		}
	}
	m.gauge("macfleet_drift_info", "1, with the fingerprint of all drift that is not ignored: clean and unknown are two.")
	m.sample("macfleet_drift_info", 1, "fingerprint", r.Fingerprint)
	m.gauge("macfleet_unknown", "1 for each host, or step of one, that could not be compared. Without a host: all.")
	for _, u := range r.Unseen { // one step may have several answers that cannot be read
		m.sample("macfleet_unknown", 1, "host", u.Host, "fleet", u.Fleet, "step", u.Step, "code", u.Code.String(), "severity", string(u.Severity))
	}
}

func (m *metrics) hosts(r drift.Report) {
	m.gauge("macfleet_hosts", "Hosts of a fleet by state; each is counted once.")
	for _, h := range r.Hosts {
		for _, s := range drift.HostStates() {
			m.sample("macfleet_hosts", float64(*h.Of(s)), "fleet", h.Fleet, "state", string(s))
		}
	}
}

func (m *metrics) ignores(r drift.Report) {
	m.gauge("macfleet_ignored", "Drift that is ignored for now. apply mends it all the same.")
	m.sample("macfleet_ignored", float64(len(r.Ignored)))
	m.gauge("macfleet_ignore", "1 for each ignore block, with what it is good for: active, unused, expired, too-long.")
	for _, i := range r.Ignores {
		m.sample("macfleet_ignore", 1, "name", i.Name, "owner", i.Owner, "state", string(i.State))
	}
	m.gauge("macfleet_ignore_expires_timestamp_seconds", "When an ignore block ends, in seconds since 1970.")
	for _, i := range r.Ignores {
		m.sample("macfleet_ignore_expires_timestamp_seconds", float64(i.Expires.Unix()), "name", i.Name, "owner", i.Owner)
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
