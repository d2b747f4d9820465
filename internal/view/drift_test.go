package view_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/internal/schematest"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// driftDay is when the hosts of these tests were compared.
func driftDay() time.Time { return time.Date(2026, 11, 21, 7, 30, 0, 0, time.UTC) }

func reported(p *plan.Plan, ignores ...fleet.Ignore) drift.Report {
	r, err := drift.Of(p, ignores, driftDay())
	if err != nil {
		panic(err)
	}
	return r
}

// ignores are one block in each state.
func ignores() []fleet.Ignore {
	day := func(text string) time.Time {
		t, err := time.Parse(time.DateOnly, text)
		if err != nil {
			panic(err)
		}
		return t
	}
	return []fleet.Ignore{
		{Name: "vendor", Step: "power", Code: "sleep-enabled", On: "name=*-00002", Owner: "team-ci", Reason: "the vendor's test runs until Christmas", Until: day("2026-12-31")},
		{Name: "old", Code: "sleep-enabled", Owner: "team-ci", Reason: "it was \"so\" | <b>last</b> month", Until: day("2026-11-20")},
		{Name: "typo", Code: "sleep-enabeld", Owner: "team-ci", Reason: "the code is misspelt", Until: day("2026-12-01")},
		{Name: "forever", Code: "hostname-edited", Owner: "team-x", Reason: "because", Until: day("2027-11-21")},
	}
}

// hostile is a plan in which hosts say what would break tables and metrics.
func hostile() *plan.Plan {
	p := clean()
	a := power(p.Hosts[0])
	a.Fields = []plan.Field{{Name: "sleep", Before: "1 | @acme/ops <img src=x> --> `x` [a](https://evil.example)\nnext \x1b[31m\xff", After: "never"}}
	a.Changes[0].Fields = a.Fields
	p.Actions = []plan.Action{a}
	p.Lost = []plan.Lost{{Name: "a\"b\\c\nd", Fleet: "runners", Trouble: plan.Trouble{Code: plantest.Code("server-vanished"), Text: "<!-- -->", Remedy: "none"}}}
	return p
}

// drifts are the reports that are shown in every format.
func drifts() map[string]func() (*plan.Plan, drift.Report) {
	of := func(p *plan.Plan, all ...fleet.Ignore) (*plan.Plan, drift.Report) { return p, reported(p, all...) }
	return map[string]func() (*plan.Plan, drift.Report){
		"clean":      func() (*plan.Plan, drift.Report) { return of(clean()) },
		"everything": func() (*plan.Plan, drift.Report) { return of(everything(), ignores()...) },
		"joining":    func() (*plan.Plan, drift.Report) { return of(joining()) },
		"hostile":    func() (*plan.Plan, drift.Report) { return of(hostile()) },
		"unused":     func() (*plan.Plan, drift.Report) { return of(clean(), ignores()...) },
		"since": func() (*plan.Plan, drift.Report) {
			p, r := of(everything())
			before := reported(clean()).Items
			gone := drift.Item{Host: "acme-production-runners-m2-00003", Fleet: "runners", Step: "hostname", Code: plantest.Code("hostname-edited"), Severity: plan.Warning, Fields: []drift.Field{}, Fingerprint: "0011223344556677"}
			kept := drift.Item{Host: "acme-production-runners-m2-00004", Fleet: "runners", Step: "power", Code: plantest.Code("sleep-enabled"), Severity: plan.Warning, Fields: []drift.Field{}, Fingerprint: "8899aabbccddeeff"}
			return p, r.After(append(before, r.Items[0], gone, kept))
		},
		"busy": func() (*plan.Plan, drift.Report) { // someone applies
			p := clean()
			p.Warnings = append(p.Warnings, plan.Trouble{Code: plan.CodeApplyInProgress, Text: "ann@desk applies since 07:29 UTC (run abcd2345)"})
			return of(p)
		},
		"unproven": func() (*plan.Plan, drift.Report) { // a difference that is not known to be drift
			p := clean()
			h := p.Hosts[0]
			gone := plan.Action{Kind: plan.CreateMarker, Host: h.Name, Fleet: h.Fleet, Group: h.Group, ServerID: h.Server.ID,
				Reason: plan.Reason{Code: plantest.Code("marker-missing"), Text: "the server has a managed name and the host has no marker"}, Origin: plan.Origin{Drift: true}}
			a := power(h)
			a.Origin = plan.Origin{NotKnown: true}
			p.Actions = []plan.Action{gone, a}
			return of(p)
		},
		"limited": func() (*plan.Plan, drift.Report) { return of(limited(clean())) },
		"silent":  func() (*plan.Plan, drift.Report) { return of(silent()) },
		"blind": func() (*plan.Plan, drift.Report) {
			cfg := &fleet.Config{Owner: fleet.Owner{Name: "acme", Environment: "production"}, Fleets: []fleet.Fleet{{Name: "runners"}}, Ignores: ignores()}
			why := "scaleway did not answer: 503 Service Unavailable"
			return &plan.Plan{Owner: cfg.Owner, Fleets: []string{"runners"}}, drift.Blind(cfg, why, driftDay())
		},
	}
}

// TestDriftFormats keeps each report in each format for programs, and looks whether
// it can be read back. Of the document only what drift adds is kept: the rest is what
// plan --json prints.
func TestDriftFormats(t *testing.T) {
	t.Parallel()
	for name, make := range drifts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, r := make()
			var doc, md, prom bytes.Buffer
			must(t, errors.Join(view.WriteDrift(&doc, p, r), view.WriteDriftMarkdown(&md, r), view.WriteDriftMetrics(&prom, r)))
			if err := schematest.Validate("plan", doc.Bytes()); err != nil {
				t.Error(err)
			}
			rest, added := without(t, doc.Bytes(), "drift")
			if name == "blind" { // there is no plan
				golden(t, filepath.Join("driftreport", "blind-plan.json"), rest)
			} else if diff := cmp.Diff(document(t, p), rest); diff != "" {
				t.Errorf("the plan in it differs from that of plan --json:\n%s", diff)
			}
			golden(t, filepath.Join("driftreport", name+".json"), added)
			golden(t, filepath.Join("driftreport", name+".md"), md.String())
			golden(t, filepath.Join("driftreport", name+".prom"), prom.String())
			checkMarkdown(t, r, md.String())
			checkMetrics(t, r, prom.String())
		})
	}
}

// checkMetrics reads the metrics back and compares them with the report.
func checkMetrics(t *testing.T, r drift.Report, text string) {
	t.Helper()
	all, err := parseMetrics(text)
	must(t, err)
	var got []string
	for _, s := range all {
		if s.labels["configuration"] != r.Owner.Name || s.labels["environment"] != r.Owner.Environment {
			t.Errorf("%s does not name its owner: %v", s.name, s.labels)
		}
		if s.name == "macfleet_drift" {
			got = append(got, s.labels["host"]+"|"+s.labels["fleet"]+"|"+s.labels["step"]+"|"+s.labels["code"]+"|"+s.labels["severity"])
		}
		if s.name == "macfleet_drift_info" && s.labels["fingerprint"] != r.Fingerprint {
			t.Errorf("fingerprint %q, want %q", s.labels["fingerprint"], r.Fingerprint)
		}
		if s.name == "macfleet_drift_run_timestamp_seconds" && s.value != float64(r.At.Unix()) {
			t.Errorf("the time of the run is %v, want %d", s.value, r.At.Unix())
		}
		if s.name == "macfleet_complete" && (s.value == 1) != r.Complete {
			t.Errorf("complete is %v", s.value)
		}
	}
	var want []string
	for _, i := range r.Items {
		want = append(want, i.Host+"|"+i.Fleet+"|"+i.Step+"|"+i.Code.String()+"|"+string(i.Severity))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("drift (-want +got):\n%s", diff)
	}
}

var driftComment = regexp.MustCompile(`(?m)^<!-- macfleet-drift fingerprint=([0-9a-z]+) complete=(true|false) -->$`)

func checkMarkdown(t *testing.T, r drift.Report, text string) {
	t.Helper()
	found := driftComment.FindAllStringSubmatch(text, -1)
	if len(found) != 1 || found[0][1] != r.Fingerprint || (found[0][2] == "true") != r.Complete {
		t.Errorf("the comment says %q, want %s and %t", found, r.Fingerprint, r.Complete)
	}
	if strings.Count(text, "<") != 1 || strings.Count(text, "-->") != 1 {
		t.Errorf("what a host says makes markup:\n%s", text)
	}
	if !strings.HasPrefix(text, "# ") {
		t.Errorf("it begins with no title:\n%s", text)
	}
	for line := range strings.Lines(text) {
		outside := regexp.MustCompile("`[^`]*`").ReplaceAllString(line, "")
		for _, sign := range []string{"@a", "http:", "https:", "](", "\x1b"} {
			if strings.Contains(outside, sign) {
				t.Errorf("%q is outside code: %s", sign, line)
			}
		}
	}
}

// TestMetricsOnce: a duplicate series would make a reader refuse the whole file.
func TestMetricsOnce(t *testing.T) {
	t.Parallel()
	r := reported(everything())
	r.Items, r.Unseen = append(r.Items, r.Items...), append(r.Unseen, r.Unseen...)
	r = r.After(append(r.Items, drift.Item{Host: "x", Fingerprint: "1"}, drift.Item{Host: "x", Fingerprint: "2"}))
	var b bytes.Buffer
	must(t, view.WriteDriftMetrics(&b, r))
	if _, err := parseMetrics(b.String()); err != nil {
		t.Error(err)
	}
}

// TestDriftMarkdownIsBounded shows a thousand drifted hosts: those that do not fit are
// counted, and the fingerprint is kept.
func TestDriftMarkdownIsBounded(t *testing.T) {
	t.Parallel()
	p := clean()
	p.Hosts = nil
	for n := range 1000 {
		h := member(n, "runners")
		a := power(h)
		a.Changes[0].Fields = []plan.Field{{Name: "sleep", Before: strings.Repeat("ü", 5000), After: "never"}}
		p.Hosts, p.Actions = append(p.Hosts, h), append(p.Actions, a)
	}
	r := reported(p)
	var b bytes.Buffer
	must(t, view.WriteDriftMarkdown(&b, r))
	text := b.String()
	left := regexp.MustCompile(`\n_Not shown, because the size is limited: (\d+) rows, and everything below`)
	if len(text) > 60_000 || !left.MatchString(text) {
		t.Errorf("it has %d bytes and ends with %q", len(text), text[max(0, len(text)-200):])
	}
	checkMarkdown(t, r, text)
}

// TestDriftFoldsWhatWasNotCompared: a host whose Node cannot be judged is named once, and the steps of one host that could not be
// read share a line.
func TestDriftFoldsWhatWasNotCompared(t *testing.T) {
	t.Parallel()
	settling, silent := member(1, "runners"), member(2, "runners")
	settling.Warnings = []plan.StepWarning{{Step: "tart_kubelet", Trouble: *plan.CodeKubeletSettling.Trouble("it was started 2s ago")}}
	for _, step := range []plan.StepID{"power", "tart", "hostname"} {
		silent.Unread = append(silent.Unread, plan.StepUnread{Step: step, Unread: plan.Unread{Probe: string(step) + ".probe", Why: "sudo asked for a password"}})
	}
	silent.Converged = plan.NotCompared
	p := &plan.Plan{Owner: fleet.Owner{Name: "acme", Environment: "production"}, Fleets: []string{"runners"}, Hosts: []plan.Host{settling, silent}}
	r, err := drift.Of(p, nil, narrow.Now)
	must(t, err)
	var b bytes.Buffer
	view.NewText(&b, 0, false).Drift(p, r, 3)
	equal(t, strings.Count(b.String(), "kubelet-settling"), 1, "prints of the Node that cannot be judged", &b)
	wantRows(t, b.String(), "? runners/00002: power, tart, hostname not compared (unread): power.probe: sudo asked for a password; ")
	wantRows(t, shortPlan(p), "power, tart, hostname: power.probe, tart.probe, hostname.probe: sudo asked for a password  [unread]\n")
}

// TestDriftBeforeTheFirstHost: before the first claim there is nothing to compare, and no count of hosts.
func TestDriftBeforeTheFirstHost(t *testing.T) {
	t.Parallel()
	h := member(1, "runners")
	h.Member, h.Refused = false, &plan.Trouble{Code: plantest.Code("cluster-not-prepared"), Text: "waits for the cluster objects above"}
	p := &plan.Plan{Owner: fleet.Owner{Name: "acme", Environment: "production"}, Fleets: []string{"runners"}, Hosts: []plan.Host{h}}
	var b bytes.Buffer
	view.NewText(&b, 0, false).Drift(p, reported(p), 3)
	equal(t, b.String(), "? Nothing to compare: acme/production has no hosts yet  exit 3\n")
}

// TestDriftPrintsAnAnswerOnce: probes that read the same answer show it once.
func TestDriftPrintsAnAnswerOnce(t *testing.T) {
	t.Parallel()
	h := member(1, "runners")
	for _, probe := range []string{"power.screensaver", "power.login-screensaver"} {
		h.Unread = append(h.Unread, plan.StepUnread{Step: "power", Unread: plan.Unread{Probe: probe, Why: "no number", Bytes: "strange\n"}})
	}
	p := &plan.Plan{Owner: fleet.Owner{Name: "acme", Environment: "production"}, Fleets: []string{"runners"}, Hosts: []plan.Host{h}}
	var b bytes.Buffer
	view.NewText(&b, 0, false).Drift(p, reported(p), 3)
	if n := strings.Count(b.String(), "strange"); n != 1 {
		t.Errorf("the answer is printed %d times:\n%s", n, b.String())
	}
}
