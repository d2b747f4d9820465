package steps_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/maintest"
	"github.com/macfleet/macfleet/internal/scriptlint"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/stepstest"
)

func TestMain(m *testing.M) { maintest.Main(m) }

const name = stepstest.Name

// everything wants every step.
var everything = stepstest.Everything()

// TestUnconfiguredStepsPlanNothing: a step without a block in the configuration plans
// nothing for a host on which it was never verified, whatever the host answers.
func TestUnconfiguredStepsPlanNothing(t *testing.T) {
	t.Parallel()
	for _, s := range steps.For(stepstest.Host(fleet.Spec{})) {
		for _, facts := range []plan.Facts{nil, stepstest.FactoryFacts(), converged()} {
			f := s.Diff(plan.View{Host: stepstest.Host(fleet.Spec{}), Facts: facts, Root: true})
			stepstest.Expect(t, string(s.ID()), plan.Finding{Warnings: f.Warnings, Running: f.Running}, f)
		}
	}
}

// TestProbes: ids are unique among all probes of a host and begin with the
// step's, and one script serves every host: no probe depends on one.
func TestProbes(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	other := stepstest.Host(everything)
	other.Name = "acme-prod-runners-m4-fffff"
	others := steps.For(other)
	for i, s := range steps.For(stepstest.Host(everything)) {
		stepstest.Expect(t, "probes of another host", s.Probes(), others[i].Probes())
		for _, p := range s.Probes() {
			if p.ID == "boundary.listeners" { // several steps read it, and a host answers it once
				seen[p.ID] = true
				continue
			}
			if seen[p.ID] || !strings.HasPrefix(p.ID, string(s.ID())+".") || p.Script == "" || p.As != plan.Root && p.As != plan.Login {
				t.Errorf("%s: probe %+v, twice %t", s.ID(), p, seen[p.ID])
			}
			seen[p.ID] = true
		}
	}
	for id := range stepstest.FactoryFacts() {
		if !seen[id] {
			t.Errorf("the sample facts answer %q, which no step reads", id)
		}
		delete(seen, id)
	}
	if len(seen) != 0 {
		t.Errorf("the sample facts lack %v", seen)
	}
}

// TestScripts: every script may run where it runs, and none is left over.
func TestScripts(t *testing.T) {
	t.Parallel()
	whole := everything
	used := make(map[string]string)
	check := func(c plan.Command, kind scriptlint.Kind) {
		used[c.Name] = c.Script
		for _, fault := range scriptlint.Check(c.Name, c.Script, kind) {
			t.Error(fault)
		}
	}
	lint := func(f plan.Finding) {
		for _, c := range f.Changes {
			check(c.Command, scriptlint.Change)
			if c.Guard != nil {
				check(c.Guard.Persist, scriptlint.Change)
			}
			if c.Guard != nil && c.Guard.Restore != nil {
				check(*c.Guard.Restore, scriptlint.Change)
			}
		}
	}
	for _, s := range steps.For(stepstest.Host(fleet.Spec{})) { // what is removed again
		lint(s.Diff(plan.View{Host: stepstest.Host(fleet.Spec{}), Facts: stepstest.SettledFacts(name), Root: true, Verified: true}))
	}
	facts := stepstest.With(stepstest.FactoryFacts(), map[string]plan.Answer{"power.auto-logout": stepstest.Said("60\n"),
		"sudo.account": stepstest.Said("AuthenticationAuthority: ;tally;\n")})
	for _, s := range steps.For(stepstest.Host(whole)) {
		for _, p := range append(s.Probes(), plan.WorkProbes([]plan.Step{s})...) {
			check(p.Command, scriptlint.Probe)
		}
		f := s.Diff(stepstest.View(stepstest.Host(whole), facts))
		if len(f.Changes) == 0 && len(s.Probes()) > 0 {
			t.Errorf("%s changes nothing on a Mac that no one has touched", s.ID())
		}
		lint(f)
	}
	unwrapped, unverified, moved := stepstest.SettledTart(), stepstest.SettledTart(), stepstest.SettledTools()
	unwrapped.Wrapper, unverified.Unverified, moved.Selected = "", true, "/Library/Developer/CommandLineTools"
	running := stepstest.LocalNetwork{Wired: "192.168.64.0/24", Radio: "192.168.64.0/24", Written: 1, Neighbours: "? (192.168.64.7) at 5e:e9:1e:0:53:7 on bridge100 ifscope [bridge]\n", Bridge: "inet 192.168.64.1 netmask 0xffffff00 broadcast 192.168.64.255"}
	status := stepstest.Status(name)
	for _, tc := range []struct { // what is changed only on such hosts
		id, probe string
		answer    plan.Answer
	}{
		{"tart", "tart.state", unwrapped.Answer()},
		{"tart", "tart.state", unverified.Answer()},
		{"build_tools", "build_tools.state", moved.Answer()},
		{"local_network", "local_network.state", running.Answer()},
		{"tailscale", "tailscale.state", stepstest.SettledTailscale(name, strings.Replace(status, "Running", "Stopped", 1), "")},
		{"tailscale", "tailscale.state", stepstest.SettledTailscale(name, strings.Replace(status, "1.102.5", "1.102.4", 1), "")},
		{"tailscale", "tailscale.state", stepstest.SettledTailscale(name, strings.Replace(status, "Running", "NeedsMachineAuth", 1), "")},
		{"tailscale", "tailscale.state", stepstest.SettledTailscale(name, "", strings.Replace(stepstest.Prefs, `"CorpDNS": false`, `"CorpDNS": true`, 1))},
	} {
		v := stepstest.View(stepstest.Host(whole), stepstest.With(facts, map[string]plan.Answer{tc.probe: tc.answer}))
		v.Path = kit.Choose(tc.id == "tailscale", "tailscale", "")
		lint(stepstest.Step(t, plan.StepID(tc.id), whole).Diff(v))
	}
	toolless := stepstest.Host(fleet.Spec{})
	lint(stepstest.StepOf(t, "build_tools", toolless).Diff(stepstest.View(toolless, plan.Facts{"build_tools.traces": inventory.Present(stepstest.SettledTools().Answer())})))
	left := stepstest.View(stepstest.Host(whole), stepstest.SettledFacts(name))
	left.Pending = true
	lint(stepstest.Step(t, "tailscale", whole).Diff(left))
	left.Pending, left.Peers[0].Seen = false, stepstest.Unlisted()
	lint(stepstest.Step(t, "github_runner", whole).Diff(left))
	joins := used["tart_kubelet-run"] // with what comes before it in the tailnet; other hosts have the script as it is
	lint(stepstest.Step(t, "tart_kubelet", whole.WithoutTailnet()).Diff(stepstest.View(stepstest.Host(whole.WithoutTailnet()), facts)))
	used["tart_kubelet-tailnet"] = strings.TrimSuffix(joins, used["tart_kubelet-run"])
	shared := written(t, "kit/shared/*.sh", "scripts/shared/*.sh", "*/scripts/shared/*.sh")
	wanted := make(map[string]bool)
	for name, text := range written(t, "scripts/*.sh", "*/scripts/*.sh") {
		front := ""
		line, _, _ := strings.Cut(text, "\n")
		if words, uses := strings.CutPrefix(line, "# Uses: "); uses {
			for _, word := range strings.Fields(words) {
				front += shared[word]
				wanted[word] = true
			}
		}
		if used[name] != front+text {
			t.Errorf("no step uses %s.sh as it is", name)
		}
	}
	for name := range shared {
		if !wanted[name] {
			t.Errorf("no script uses the functions of %s.sh", name)
		}
	}
}

// written returns the scripts of all packages by their names, which are unique.
func written(t *testing.T, patterns ...string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			name := strings.TrimSuffix(filepath.Base(f), ".sh")
			if out[name] != "" {
				t.Errorf("%s.sh exists twice", name)
			}
			out[name] = scripttest.Text(t, f)
		}
	}
	if len(out) < 5 {
		t.Fatalf("%d scripts", len(out))
	}
	return out
}

// TestChangesConverge is the promise of a step: when its changes have done what
// they say, nothing is left, and the facts are what was configured.
func TestChangesConverge(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		spec, facts := drawSpec(r), drawFacts(r)
		for _, s := range steps.For(stepstest.Host(spec)) {
			first := s.Diff(plan.View{Host: stepstest.Host(spec), Facts: facts, Root: true})
			if len(first.Unread) > 0 {
				r.Fatalf("%s: unread %+v", s.ID(), first.Unread)
			}
			if (s.Wanted() == first.Facts) != (len(first.Changes) == 0) {
				r.Fatalf("%s: %d changes from\n%sto\n%s", s.ID(), len(first.Changes), first.Facts, s.Wanted())
			}
			after := stepstest.With(facts, nil)
			for _, c := range first.Changes {
				perform(r, c, after)
			}
			second := s.Diff(plan.View{Host: stepstest.Host(spec), Facts: after, Root: true})
			if len(second.Changes)+len(second.Unread) != 0 || second.Facts != s.Wanted() {
				r.Fatalf("%s: after its changes %+v\nwanted\n%s", s.ID(), second, s.Wanted())
			}
		}
	})
}

func drawSpec(r *rapid.T) fleet.Spec {
	number := rapid.Ptr(rapid.SampledFrom([]int{0, 1, 10, 180, 1200, 2147483647}), true)
	return fleet.Spec{Sudo: &fleet.Sudo{}, Hostname: &fleet.Hostname{}, Power: &fleet.Power{
		Sleep: number.Draw(r, "sleep"), DisplaySleep: number.Draw(r, "display"), DiskSleep: number.Draw(r, "disk"),
		Screensaver: number.Draw(r, "screensaver"), AutoLogout: number.Draw(r, "logout"),
		RestartAfterPowerLoss: rapid.Ptr(rapid.Bool(), true).Draw(r, "restart")}}
}

func drawFacts(r *rapid.T) plan.Facts {
	number := rapid.SampledFrom([]int{0, 1, 10, 180, 1200, 2147483647})
	text := rapid.SampledFrom([]plan.Answer{stepstest.Said(name + "\n"), stepstest.Said(name + "-2\n"), stepstest.Said("Mac mini\n"), stepstest.Failed(1, "HostName: not set\n")})
	preference := rapid.OneOf(rapid.Just(stepstest.Failed(1, missing)), rapid.Map(number, func(n int) plan.Answer { return stepstest.Said(strconv.Itoa(n) + "\n") }))
	return stepstest.With(nil, map[string]plan.Answer{
		"sudo.root":             rapid.SampledFrom([]plan.Answer{{}, stepstest.Failed(1, needsWord), stepstest.Failed(1, brokenFile)}).Draw(r, "root"),
		"sudo.account":          rapid.SampledFrom([]plan.Answer{stepstest.Said("AuthenticationAuthority: ;tally;\n"), stepstest.Said("No such key: AuthenticationAuthority\n")}).Draw(r, "account"),
		"sudo.file":             rapid.SampledFrom([]plan.Answer{{Exit: 4}, stepstest.Said("440 0 0\n" + dropIn), stepstest.Said("644 501 20\n")}).Draw(r, "file"),
		"hostname.ComputerName": text.Draw(r, "computer"), "hostname.HostName": text.Draw(r, "host"), "hostname.LocalHostName": text.Draw(r, "local"),
		"power.settings":    stepstest.Said(pmset(number.Draw(r, "sleep"), number.Draw(r, "display"), number.Draw(r, "disk"), rapid.IntRange(0, 2).Draw(r, "restart"))),
		"power.screensaver": preference.Draw(r, "screensaver"), "power.login-screensaver": preference.Draw(r, "login"), "power.auto-logout": preference.Draw(r, "logout"),
	})
}

// perform does to the facts what a change's script does to a Mac.
func perform(r *rapid.T, c plan.Change, facts plan.Facts) {
	set := func(id, text string) { facts[id] = inventory.Present(stepstest.Said(text + "\n")) }
	now := map[string]string{}
	if a, ok := facts.Get("power.settings").Get(); ok {
		for _, line := range strings.Split(a.Stdout, "\n") {
			if words := strings.Fields(line); len(words) > 1 {
				now[words[0]] = words[1]
			}
		}
	}
	switch args := c.Command.Args; c.Command.Name {
	case "hostname-set":
		for _, id := range []string{"hostname.ComputerName", "hostname.HostName", "hostname.LocalHostName"} {
			set(id, args[0])
		}
		return
	case "sudo-install":
		facts["sudo.root"], facts["sudo.file"] = inventory.Present(plan.Answer{}), inventory.Present(stepstest.Said("440 0 0\n"+args[0]))
		return
	case "sudo-unlock":
		set("sudo.account", "AuthenticationAuthority: ;ShadowHash;")
		return
	case "power-set-sleep":
		now["sleep"], now["displaysleep"], now["disksleep"] = args[0], args[1], args[2]
	case "power-set-restart":
		now["autorestart"] = args[0]
	case "power-set-screensaver":
		set("power.screensaver", args[0])
	case "power-set-login-screensaver":
		set("power.login-screensaver", args[0])
	case "power-set-auto-logout":
		set("power.auto-logout", args[0])
	default:
		r.Fatalf("teach this test what %s does", c.Command.Name)
	}
	var b strings.Builder
	for _, key := range []string{"sleep", "displaysleep", "disksleep", "autorestart"} {
		b.WriteString(" " + key + " " + now[key] + "\n")
	}
	set("power.settings", b.String())
}

// TestNormalFormsDistinguishSettings: two hosts whose facts differ in anything a step reads never have one digest.
func TestNormalFormsDistinguishSettings(t *testing.T) {
	t.Parallel()
	forms := make(map[string]string)
	for what, facts := range map[string]map[string]plan.Answer{
		"converged":        nil,
		"sleep":            {"power.settings": stepstest.Said(pmset(1, 0, 0, 1))},
		"sleep longer":     {"power.settings": stepstest.Said(pmset(11, 0, 0, 1))},
		"display":          {"power.settings": stepstest.Said(pmset(0, 1, 0, 1))},
		"disk":             {"power.settings": stepstest.Said(pmset(0, 0, 1, 1))},
		"restart":          {"power.settings": stepstest.Said(pmset(0, 0, 0, 0))},
		"screensaver":      {"power.screensaver": stepstest.Said("1")},
		"screensaver gone": {"power.screensaver": stepstest.Failed(1, missing)},
		"login":            {"power.login-screensaver": stepstest.Said("1")},
		"login gone":       {"power.login-screensaver": stepstest.Failed(1, missing)},
		"logout":           {"power.auto-logout": stepstest.Said("1")},
	} {
		form := stepstest.Diff(t, "power", awake, stepstest.With(converged(), facts)).Facts
		if twin, taken := forms[form]; taken || form == "" {
			t.Errorf("%s and %s have the same normal form:\n%s", what, twin, form)
		}
		forms[form] = what
	}
}
