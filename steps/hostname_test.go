package steps_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

var named = fleet.Spec{Hostname: &fleet.Hostname{}}

// names are the facts of a Mac whose three names are these.
func names(computer, hostName, local plan.Answer) plan.Facts {
	return stepstest.With(nil, map[string]plan.Answer{
		"hostname.ComputerName": computer, "hostname.HostName": hostName, "hostname.LocalHostName": local})
}

func TestHostname(t *testing.T) {
	t.Parallel()
	right := stepstest.Said(name + "\n")
	for _, tc := range []struct {
		name  string
		facts plan.Facts
		want  string
	}{
		{"all right", names(right, right, right), ""},
		{"without a line's end", names(stepstest.Said(name), right, right), ""},
		{"factory", stepstest.FactoryFacts(), "ComputerName: Mac mini → " + name + ", HostName:  → " + name + ", LocalHostName: Mac-mini → " + name},
		{"not set, on stdout", names(right, plan.Answer{Exit: 1, Stdout: "HostName: not set\n"}, right), "HostName:  → " + name},
		{"a Bonjour clash", names(right, right, stepstest.Said(name+"-2\n")), "LocalHostName: " + name + "-2 → " + name},
		{"another case", names(stepstest.Said(strings.ToUpper(name)+"\n"), right, right), "ComputerName: " + strings.ToUpper(name) + " → " + name},
		{"a name with a space at its end", names(stepstest.Said(name+" \n"), right, right), "ComputerName: " + name + "  → " + name},
		{"a name in another script", names(stepstest.Said("Mac mini de Zoé – 2\n"), right, right), "ComputerName: Mac mini de Zoé – 2 → " + name},
		{"a remark next to the name", names(plan.Answer{Stdout: name + "\n", Stderr: "2026-11-21 scutil[1:2] noise\n"}, right, right), ""},
		{"a host called not set", names(stepstest.Said("not set\n"), right, right), "ComputerName: not set → " + name},
	} {
		f := stepstest.Diff(t, "hostname", named, tc.facts)
		run := ""
		if tc.want != "" { // all three are set at once
			run = "hostname-edited hostname-set root " + name
		}
		stepstest.Expect(t, tc.name, []string{tc.want, run}, []string{stepstest.Moves(f), stepstest.Runs(f)})
		stepstest.Expect(t, tc.name+": unread", nil, stepstest.UnreadOf(f))
	}
}

func TestHostnameUnread(t *testing.T) {
	t.Parallel()
	right := stepstest.Said(name + "\n")
	for _, tc := range []struct {
		name  string
		facts plan.Facts
		want  []string
	}{
		{"never read", nil, []string{"hostname.ComputerName", "hostname.HostName", "hostname.LocalHostName"}},
		{"one never read", plan.Facts{"hostname.ComputerName": inventory.Present(right), "hostname.HostName": inventory.Present(right)}, []string{"hostname.LocalHostName"}},
		{"empty", names(right, stepstest.Said(""), right), []string{"hostname.HostName"}},
		{"white space", names(right, stepstest.Said(" \n"), right), []string{"hostname.HostName"}},
		{"chatter before the name", names(right, stepstest.Said("SCDynamicStore: reopened\n"+name+"\n"), right), []string{"hostname.HostName"}},
		{"chatter after the name", names(stepstest.Said(name+"\nx\n"), right, right), []string{"hostname.ComputerName"}},
		{"silent failure", names(right, stepstest.Failed(1, ""), right), []string{"hostname.HostName"}},
		{"another failure", names(right, stepstest.Failed(1, "scutil: cannot connect\n"), right), []string{"hostname.HostName"}},
		{"the words with another exit", names(right, stepstest.Failed(2, "HostName: not set\n"), right), []string{"hostname.HostName"}},
		{"the words with exit 0", names(right, stepstest.Failed(0, "HostName: not set\n"), right), []string{"hostname.HostName"}},
		{"a name with an exit", names(plan.Answer{Exit: 1, Stdout: name + "\n"}, right, right), []string{"hostname.ComputerName"}},
		{"tool not found", names(stepstest.Failed(127, "sh: scutil: command not found\n"), right, right), []string{"hostname.ComputerName"}},
		{"one unread, one differs", names(stepstest.Said("x\n"), stepstest.Failed(1, ""), right), []string{"hostname.HostName"}},
	} {
		stepstest.Expect(t, tc.name, tc.want, stepstest.UnreadOf(stepstest.Diff(t, "hostname", named, tc.facts)))
	}
	f := stepstest.Diff(t, "hostname", named, names(right, plan.Answer{Exit: 1, Stdout: "out", Stderr: "err"}, right))
	if len(f.Unread) != 1 || f.Unread[0].Bytes != "outerr" || !strings.Contains(f.Unread[0].Why, "exit code 1") {
		t.Errorf("unread %+v", f.Unread)
	}
	lost := stepstest.With(names(right, right, right), nil)
	lost["hostname.HostName"] = inventory.Unread[plan.Answer]("the answer was truncated")
	if f := stepstest.Diff(t, "hostname", named, lost); len(f.Unread) != 1 || f.Unread[0].Why != "the answer was truncated" {
		t.Errorf("unread %+v", f.Unread)
	}
}

// FuzzScutil: whatever scutil says is a name, "not set", or unread.
func FuzzScutil(f *testing.F) {
	for _, seed := range []struct {
		exit           int
		stdout, stderr string
	}{
		{0, name + "\n", ""}, {0, "Mac mini\n", ""}, {1, "", "HostName: not set\n"}, {1, "HostName: not set\n", ""}, {0, "", ""},
		{0, "\n\n", ""}, {1, "", ""}, {-1, "x", "y"}, {127, "", "sh: scutil: not found"}, {0, "a\x00b\xff\n", ""}, {0, "é\r\n", "noise"},
	} {
		f.Add(seed.exit, seed.stdout, seed.stderr)
	}
	right := stepstest.Said(name + "\n")
	f.Fuzz(func(t *testing.T, exit int, stdout, stderr string) {
		found := stepstest.Diff(t, "hostname", named, names(right, plan.Answer{Exit: exit, Stdout: stdout, Stderr: stderr}, right))
		switch {
		case len(found.Unread) > 0:
			if text := strings.TrimSuffix(stdout, "\n"); exit == 0 && strings.TrimSpace(text) != "" && !strings.ContainsFunc(text, unicode.IsControl) {
				t.Errorf("the name %q is unread", stdout)
			}
		case exit == 0:
			if same := strings.TrimSuffix(stdout, "\n") == name; same != (len(found.Changes) == 0) {
				t.Errorf("%q makes %d changes", stdout, len(found.Changes))
			}
		case exit != 1 || !strings.Contains(stdout+stderr, "not set"):
			t.Errorf("exit %d, %q, %q counts as a name that is not set", exit, stdout, stderr)
		}
	})
}
