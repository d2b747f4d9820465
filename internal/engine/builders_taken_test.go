package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// stockPlist is the property list that svc.sh of GitHub's runner makes: label, folder, folder, log folder twice.
const stockPlist = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict><key>Label</key><string>%[1]s</string>
<key>ProgramArguments</key><array><string>%[2]s/runsvc.sh</string></array>
<key>UserName</key><string>m1</string><key>WorkingDirectory</key><string>%[2]s</string><key>RunAtLoad</key><true/>
<key>StandardOutPath</key><string>/Users/m1/Library/Logs/%[1]s/stdout.log</string>
<key>StandardErrorPath</key><string>/Users/m1/Library/Logs/%[1]s/stderr.log</string>
<key>EnvironmentVariables</key><dict><key>ACTIONS_RUNNER_SVC</key><string>1</string></dict>
<key>ProcessType</key><string>Interactive</string><key>SessionCreate</key><true/></dict></plist>
`

// handMade is a runner that a person set up with config.sh and svc.sh.
type handMade struct {
	root, organization, name, version string
}

func (h handMade) label() string { return "actions.runner." + h.organization + "." + h.name }

// setUp sets it up.
func (h handMade) setUp(t *testing.T, e *engine.Engine, m *mac.Machine) {
	t.Helper()
	r, err := e.Peers[inventory.CIService].Admit(t.Context(), "https://github.com/"+h.organization, "")
	must(t, err)
	list := "/Users/m1/Library/LaunchAgents/" + h.label() + ".plist"
	sh := func(script string) {
		t.Helper()
		if said, err := m.Run(t.Context(), "m1", script); err != nil || said.Exit != 0 {
			t.Fatalf("%s: %v, %s%s", script, err, said.Stdout, said.Stderr)
		}
	}
	sh("mkdir -p " + h.root + " Library/LaunchAgents Library/Logs/" + h.label() + " && cd " + h.root + " && curl -fsSL -o /tmp/r.tar.gz " + mac.RunnerArchive(h.version) +
		" && tar -xzf /tmp/r.tar.gz && ACTIONS_RUNNER_INPUT_TOKEN=" + r.Secret.Reveal() + " ./config.sh --unattended --url https://github.com/" + h.organization +
		" --name " + h.name + " --labels " + bakeLabel + " && cp bin/runsvc.sh runsvc.sh && echo " + list + " > .service")
	must(t, m.WriteFile(list, fmt.Appendf(nil, stockPlist, h.label(), h.root), 501, 20, 0o644))
	sh("launchctl bootstrap gui/501 " + list)
	must(t, m.Settle(t.Context()))
}

// TestHandMadeRunner: a runner that a person set up is taken over in place when it is idle, keeps its entry at GitHub, and keeps
// its programs when it is removed. One under another name is registered again. That of another organization is named, and not
// touched.
func TestHandMadeRunner(t *testing.T) {
	t.Parallel()
	const here, there = "/Users/m1/actions-runner", "/Users/m1/ci/runner"
	cases := map[string]struct {
		runners []handMade // the first one will be taken over; without a name it has the host's
		id      int64      // of the entry in the end
		root    string
		second  bool
	}{
		"in the usual folder":             {[]handMade{{root: here, organization: organization}}, 21, here, false},
		"in another folder":               {[]handMade{{root: there, organization: organization}}, 21, there, false},
		"under another name":              {[]handMade{{root: there, organization: organization, name: "mini-7"}}, 22, there, false},
		"with one of another":             {[]handMade{{root: here, organization: organization}, {root: there, organization: "globex", name: "mini-7"}}, 21, here, true},
		"of another, in the usual name":   {[]handMade{{root: there, organization: "globex", name: "mini-7"}}, 22, here, true},
		"of another, in the usual folder": {[]handMade{{root: there, organization: organization}, {root: here, organization: "globex", name: "mini-7"}}, 21, there, true},
	}
	all := slices.Sorted(maps.Keys(cases))
	for _, row := range rows(t, len(all), 2) {
		tc, busy := cases[all[row[0]]], row[1] == 1
		parallel(t, fmt.Sprintf("%s, busy %t", all[row[0]], busy), func(t *testing.T) {
			c := bakery()
			c.Fleets[1].Groups[0].Spec = buildersOf("globex") // whose token a person has
			runner := c.Fleets[0].Groups[0].Spec.GithubRunner
			c.Fleets[0].Groups[0].Spec.GithubRunner = nil
			w, _ := converged(t, 3, c)
			c.Fleets[0].Groups[0].Spec.GithubRunner = runner
			b := builderOf(t, w, member(t, w))
			e := runBuilders(t, w, c)
			for _, h := range tc.runners {
				if h.name == "" {
					h.name = b.name
				}
				h.version = "2.337.0"
				h.setUp(t, e, b.machine)
			}
			own := tc.runners[0].organization == organization
			if busy && own {
				if _, err := w.RunJob("acme/images", "bake", bakeLabel); err != nil {
					t.Fatal(err)
				}
			}
			waited := false
			e.Emit = func(ev engine.Event) {
				if ev.Type == engine.Idling && strings.Contains(ev.Text, "a job of a GitHub runner") {
					waited = true
					if err := w.FinishJob(b.name); err != nil {
						t.Error(err)
					}
				}
			}
			other := jobOf(t, b, "actions.runner.globex.mini-7")
			if r := apply(t, e); !r.Converged() {
				t.Fatalf("failures %q, of the host %q", failed(r), codesOf(r.After, b.name))
			}
			if waited != (busy && own) {
				t.Errorf("it waited for the job: %t", waited)
			}
			p := planned(t, e)
			if warned := slices.Contains(codesOf(p, b.name), "warning second-runner"); warned != tc.second || len(p.Actions) > 0 {
				t.Errorf("it says %q", codesOf(p, b.name))
			}
			if now := jobOf(t, b, "actions.runner.globex.mini-7"); now != other || (other != "") != tc.second {
				t.Errorf("the other runner's job was %+v, and is %+v", other, now)
			}
			b.isTaken(t, w, tc.id, tc.root)
			c.Fleets[0].Groups[0].Spec.GithubRunner = nil
			c.Guardrails.IgnoreJobs = []string{"actions.runner.globex.*"}
			c.Fleets[1].Groups[0].Spec = buildersOf(organization)
			converges(t, runBuilders(t, w, c))
			kept, err := b.machine.Run(t.Context(), "root", "ls -A "+tc.root)
			if err != nil || own != strings.Contains(string(kept.Stdout), "config.sh") || strings.Contains(string(kept.Stdout), ".runner") || len(b.entries(t)) > 0 {
				t.Errorf("after its removal the folder has %s; GitHub has %+v", kept.Stdout, b.entries(t))
			}
		})
	}
}

// jobOf returns what launchd has of a job; "" if it is not loaded.
func jobOf(t *testing.T, b builder, label string) string {
	t.Helper()
	job, ok, err := b.machine.Job("gui/501/" + label)
	if err != nil || !ok {
		return ""
	}
	return fmt.Sprintf("%+v", job)
}

// isTaken finds the builder's runner in a folder, with macfleet's property list and the entry of an id, and takes a job.
func (b builder) isTaken(t *testing.T, w *sandbox.World, id int64, root string) {
	t.Helper()
	all := b.entries(t)
	if len(all) != 1 || all[0].ID != id {
		t.Errorf("GitHub has %+v, want the id %d", all, id)
	}
	said, err := b.machine.Run(t.Context(), "m1", "launchctl print gui/501/actions.runner.acme."+b.name+"; cat Library/LaunchAgents/actions.runner.acme.*.plist; ls "+root+"/.service")
	text := string(said.Stdout)
	if err != nil || !strings.Contains(text, "exit timeout = 60") || !strings.Contains(text, "<string>"+root+"/runsvc.sh</string>") ||
		strings.Count(text, "<plist") != 1 || strings.Contains(text, "/.service") {
		t.Errorf("the job: %s, %v", text, err)
	}
	if host, err := w.RunJob("acme/images", "bake", bakeLabel); err != nil || host != b.name || w.FinishJob(host) != nil {
		t.Errorf("%s got the job: %v", host, err)
	}
}
