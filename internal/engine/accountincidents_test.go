package engine_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/plan"
)

// rowsOf reads a table of docs/incidents.md whose incidents concern no host: what macfleet says, by incident.
func rowsOf(t *testing.T, heading string) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/incidents.md")
	must(t, err)
	_, section, _ := strings.Cut(string(text), "## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string]string{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) == 3 && strings.HasPrefix(strings.TrimSpace(cells[0]), "`") {
			rows[strings.Trim(strings.TrimSpace(cells[0]), "`")] = strings.TrimSpace(cells[2])
		}
	}
	return rows
}

// said is what a plan, or its error, names: codes, and the parts of its document that list servers.
func said(p *plan.Plan, err error) []string {
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, a := range p.Actions {
		out = append(out, a.Reason.Code.String())
		if a.Refusal != nil {
			out = append(out, a.Refusal.Code.String())
		}
	}
	for _, h := range p.Hosts {
		for _, t := range []*plan.Trouble{h.Unknown, h.Refused} {
			if t != nil {
				out = append(out, t.Code.String())
			}
		}
	}
	for _, s := range p.Services {
		out = append(out, s.Code.String())
	}
	for _, r := range p.Rejected {
		out = append(out, r.Trouble.Code.String())
	}
	for _, s := range p.Shortages {
		out = append(out, s.Trouble.Code.String())
	}
	for _, l := range p.Lost {
		out = append(out, l.Trouble.Code.String())
	}
	for _, d := range slices.Concat(p.Doubts, p.Warnings) {
		out = append(out, d.Code.String())
	}
	if len(p.Strays) > 0 {
		out = append(out, "stray_servers")
	}
	return out
}

// TestAccountIncidents injects each incident of the account into a converged fleet of two. Whatever happens, the fleet
// of two claims nothing. A fleet that wants one
// or three hosts says what docs/incidents.md says.
func TestAccountIncidents(t *testing.T) {
	t.Parallel()
	rows := rowsOf(t, "The account and the pool")
	if len(rows) != len(sandbox.AccountIncidents()) {
		t.Errorf("documented are %d incidents, simulated %d", len(rows), len(sandbox.AccountIncidents()))
	}
	for _, incident := range sandbox.AccountIncidents() {
		parallel(t, incident.Name, func(t *testing.T) {
			w, _ := converged(t, 6, config("production", 2))
			inject(t, w, sandbox.Account, incident.Name)
			p, err := run(t, w, config("production", 2)).Plan(t.Context())
			if err == nil && len(p.Runnable()) > 0 {
				t.Errorf("the fleet plans %+v", p.Runnable())
			}
			fewer := said(run(t, w, config("production", 1)).Plan(t.Context()))
			p, err = run(t, w, config("production", 3)).Plan(t.Context())
			all := append(fewer, said(p, err)...)
			for _, m := range regexp.MustCompile("`([a-z -_]+)`").FindAllStringSubmatch(rows[incident.Name], -1) {
				if !strings.Contains(strings.Join(all, "\n"), m[1]) {
					t.Errorf("it says %q, want %q", all, m[1])
				}
			}
		})
	}
}

// TestClusterAccessIncidents: without the right cluster, nothing is planned for a fleet of two, and no claim and no release
// for one that wants one or three.
func TestClusterAccessIncidents(t *testing.T) {
	t.Parallel()
	rows := rowsOf(t, "The access to the cluster")
	if len(rows) != len(sandbox.ClusterIncidents()) {
		t.Errorf("documented are %d incidents, simulated %d", len(rows), len(sandbox.ClusterIncidents()))
	}
	for _, incident := range sandbox.ClusterIncidents() {
		for _, wanted := range []string{"", uid} {
			parallel(t, incident.Name+wanted, func(t *testing.T) {
				w, _ := converged(t, 6, config("production", 2))
				var engines []*engine.Engine // opened while the cluster answers
				for _, n := range []int{2, 1, 3} {
					e := run(t, w, config("production", n))
					e.Config.ClusterUID = wanted
					engines = append(engines, e)
				}
				inject(t, w, sandbox.Cluster, incident.Name)
				for _, e := range engines {
					p, err := e.Plan(t.Context())
					if err == nil && (len(p.Runnable()) > 0 || p.Summarise().Complete()) {
						t.Errorf("it plans %+v", p.Runnable())
					}
					code := regexp.MustCompile("`([a-z-]+)`").FindStringSubmatch(rows[incident.Name])[1]
					if all := said(p, err); !strings.Contains(strings.Join(all, "\n"), code) {
						t.Errorf("it says %q, want %s", all, code)
					}
				}
			})
		}
	}
}

// TestGitHubIncidents injects each incident of GitHub's account into converged builders, one of which has lost its registration
// or whose listener has stopped. It says what docs/incidents.md says, nothing of a runner is changed, and the other steps
// continue. When the incident has ended, the fleet converges.
func TestGitHubIncidents(t *testing.T) {
	t.Parallel()
	rows := rowsOf(t, "GitHub's account")
	if len(rows) != len(sandbox.GitHubIncidents()) {
		t.Errorf("documented are %d incidents, simulated %d", len(rows), len(sandbox.GitHubIncidents()))
	}
	for incident, also := range map[string]string{"app-key-revoked": "runner-deregistered", "newest-version-refused": ""} {
		parallel(t, incident, func(t *testing.T) {
			c := byApp(builders(2))
			c.Fleets[0].Groups[0].Spec.Power = (&fleet.Spec{Power: &fleet.Power{}}).WithDefaults().Power
			w, _ := converged(t, 4, c)
			host := member(t, w)
			b := builderOf(t, w, host)
			err := w.Inject(host, "sleep-enabled")
			if err == nil && also != "" {
				err = w.Inject(host, also)
			}
			if err == nil {
				err = w.Inject(sandbox.GitHubAccount, incident)
			}
			if err == nil && also == "" { // the listener learns it at its next poll
				if err = b.machine.PollRunner(); err == nil {
					err = b.machine.Settle(t.Context())
				}
			}
			must(t, err)
			e := runBuilders(t, w, c) // an earlier run's tokens are gone with it
			code := regexp.MustCompile("`([a-z-]+)`").FindStringSubmatch(rows[incident])[1]
			if all := said(e.Plan(t.Context())); !slices.Contains(all, code) {
				t.Errorf("it says %q, want %s", all, code)
			}
			before, err := b.machine.Runner()
			must(t, err)
			r := apply(t, e)
			fails := map[string]int{"newest-version-refused": 1}[incident] // its start fails
			if left := codesOf(r.After, host); r.Converged() || len(r.Failures) != fails || r.Done != 1 || slices.Contains(left, "drift sleep-enabled") {
				t.Errorf("%d actions were done, failures %v, left %q", r.Done, r.Failures, left)
			}
			if fails > 0 && !strings.Contains(fmt.Sprint(r.Failures), "is deprecated and cannot receive messages") {
				t.Errorf("the cause is missing: %v", r.Failures)
			}
			if after, err := b.machine.Runner(); err != nil || after.ID != before.ID || after.Installed != before.Installed || after.PID != before.PID {
				t.Errorf("the runner was %+v, and is %+v, %v", before, after, err)
			}
			must(t, w.Heal(sandbox.GitHubAccount, incident))
			converges(t, runBuilders(t, w, c))
			b.takesJobs(t)
		})
	}
}
