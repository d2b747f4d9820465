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

// sample is one line. Labels are names and values by turns.
type sample struct {
	value  float64
	labels []string
}

func labelled(value float64, labels ...string) sample { return sample{value, labels} }

// gauge adds the samples of a name. What comes twice is written once: a reader refuses a
// whole file for one series that is there twice.
func (m *metrics) gauge(name, help string, samples ...sample) {
	fmt.Fprintf(&m.out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
	for _, s := range samples {
		labels := slices.Concat(m.owner, s.labels)
		var pairs []string
		for i := 0; i+1 < len(labels); i += 2 {
			pairs = append(pairs, fmt.Sprintf(`%s="%s"`, labels[i], escapedLabel(labels[i+1])))
		}
		series := name + "{" + strings.Join(pairs, ",") + "}"
		if m.seen[series] {
			continue
		}
		m.seen[series] = true
		fmt.Fprintf(&m.out, "%s %s\n", series, strings.TrimSuffix(fmt.Sprintf("%.3f", s.value), ".000"))
	}
}

// escapedLabel writes a label's value: of what could end it or the line only three
// characters count, and the text must be UTF-8.
func escapedLabel(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(text, "\uFFFD"))
}

// WriteDriftMetrics prints a drift for the textfile collector of Prometheus.
func WriteDriftMetrics(out io.Writer, r drift.Report) error {
	m := &metrics{owner: []string{"configuration", r.Owner.Name, "environment", r.Owner.Environment}, seen: make(map[string]bool)}
	ofItem := func(i drift.Item) sample {
		return labelled(1, "host", i.Host, "fleet", i.Fleet, "step", i.Step, "code", i.Code.String(), "severity", string(i.Severity))
	}
	m.gauge("macfleet_drift", "1 for each thing that changed behind our back and is not ignored.", mapped(r.Items, ofItem)...)
	if r.Since != nil {
		m.gauge("macfleet_drift_kept", "1 for each drift of the look before that nobody can say whether it is still there.", mapped(r.Since.Kept, ofItem)...)
	}
	m.gauge("macfleet_drift_info", "1, with the fingerprint of all drift that is not ignored: clean and unknown are two.", labelled(1, "fingerprint", r.Fingerprint))
	// One step may have several answers that cannot be read.
	m.gauge("macfleet_unknown", "1 for each host, or step of one, that could not be compared. Without a host: all.", mapped(r.Unseen, func(u drift.Unseen) sample {
		return labelled(1, "host", u.Host, "fleet", u.Fleet, "step", u.Step, "code", u.Code.String(), "severity", string(u.Severity))
	})...)
	var hosts []sample
	for _, h := range r.Hosts {
		for _, s := range drift.HostStates() {
			hosts = append(hosts, labelled(float64(*h.Of(s)), "fleet", h.Fleet, "state", string(s)))
		}
	}
	m.gauge("macfleet_hosts", "Hosts of a fleet by state; each is counted once.", hosts...)
	m.gauge("macfleet_ignored", "Drift that is ignored for now. apply mends it all the same.", labelled(float64(len(r.Ignored))))
	m.gauge("macfleet_ignore", "1 for each ignore block, with what it is good for: active, unused, expired, too-long.", mapped(r.Ignores, func(i drift.IgnoreState) sample {
		return labelled(1, "name", i.Name, "owner", i.Owner, "state", string(i.State))
	})...)
	m.gauge("macfleet_ignore_expires_timestamp_seconds", "When an ignore block ends, in seconds since 1970.", mapped(r.Ignores, func(i drift.IgnoreState) sample {
		return labelled(float64(i.Expires.Unix()), "name", i.Name, "owner", i.Owner)
	})...)
	m.gauge("macfleet_complete", "1 when everything could be compared, 0 when drift may be unseen.", labelled(truth(r.Complete)))
	applies := slices.ContainsFunc(r.Remarks, func(x drift.Remark) bool { return x.Code == plan.CodeApplyInProgress })
	m.gauge("macfleet_apply_in_progress", "1 while somebody applies: what is seen may be half done.", labelled(truth(applies)))
	m.gauge("macfleet_pending", "Differences of configuration that was never applied. They are no drift.", labelled(float64(r.Pending)))
	m.gauge("macfleet_drift_run_timestamp_seconds", "When it was looked, in seconds since 1970.", labelled(float64(r.At.UnixMilli())/1000))
	if _, err := io.WriteString(out, m.out.String()); err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	return nil
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
