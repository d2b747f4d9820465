package steps_test

import (
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

const (
	dropIn     = "# Managed by macfleet.\nDefaults:m1 verifypw=always\nm1 ALL = (ALL) NOPASSWD: ALL\n"
	needsWord  = "sudo: a password is required\n"
	brokenFile = "/etc/sudoers.d/macfleet:1:12: syntax error\nsudo: a password is required\n"
)

func wantsSudo() fleet.Spec { return fleet.Spec{}.WithBuiltIn() }

// sudoView is a host with some other answers, with root or without.
func sudoView(root bool, answers map[string]plan.Answer) plan.View {
	facts := stepstest.With(stepstest.SettledFacts(name), answers)
	if !root {
		facts["sudo.file"] = inventory.Unread[plan.Answer](plan.NeedsRoot)
	}
	return plan.View{Host: stepstest.Host(wantsSudo()), Facts: facts, Root: root}
}

func TestSudo(t *testing.T) {
	t.Parallel()
	locked := map[string]plan.Answer{"sudo.account": stepstest.Said("AuthenticationAuthority: ;ShadowHash; ;tally;\n")}
	for title, c := range map[string]struct {
		root    bool
		answers map[string]plan.Answer
		want    []string // codes of the changes
		refused string
		input   plan.InputKind // of the last change
	}{
		"settled":             {root: true},
		"no root":             {answers: map[string]plan.Answer{"sudo.root": stepstest.Failed(1, needsWord)}, want: []string{"sudo-missing"}, input: plan.LoginPassword},
		"no sudoer":           {answers: map[string]plan.Answer{"sudo.root": stepstest.Failed(1, "m1 is not in the sudoers file.\n")}, want: []string{"sudo-missing"}, input: plan.LoginPassword},
		"broken":              {answers: map[string]plan.Answer{"sudo.root": stepstest.Failed(1, brokenFile)}, want: []string{"sudoers-broken"}, input: plan.LoginPassword},
		"broken, old wording": {answers: map[string]plan.Answer{"sudo.root": stepstest.Failed(1, ">>> /etc/sudoers.d/x: syntax error near line 1 <<<\nsudo: parse error in /etc/sudoers.d/x near line 1\n")}, want: []string{"sudoers-broken"}, input: plan.LoginPassword},
		"unusable":            {answers: map[string]plan.Answer{"sudo.root": stepstest.Failed(1, "sudo: no valid sudoers sources found, quitting\nsudo: unable to initialize policy plugin\n")}, want: []string{"sudoers-broken"}, input: plan.LoginPassword, refused: "sudoers-broken"},
		"by other means":      {root: true, answers: map[string]plan.Answer{"sudo.file": {Exit: 4}}, want: []string{"sudoers-missing"}},
		"edited":              {root: true, answers: map[string]plan.Answer{"sudo.file": stepstest.Said("440 0 0\n" + dropIn + "eve ALL = (ALL) ALL\n")}, want: []string{"sudoers-edited"}},
		"mode":                {root: true, answers: map[string]plan.Answer{"sudo.file": stepstest.Said("644 0 0\n" + dropIn)}, want: []string{"sudoers-edited"}},
		"owner":               {root: true, answers: map[string]plan.Answer{"sudo.file": stepstest.Said("440 501 20\n" + dropIn)}, want: []string{"sudoers-edited"}},
		"locked with root":    {root: true, answers: locked, want: []string{"sudo-locked"}},
		"locked without root": {answers: map[string]plan.Answer{"sudo.account": locked["sudo.account"], "sudo.root": stepstest.Failed(1, needsWord)}, want: []string{"sudo-locked", "sudo-missing"}, input: plan.LoginPassword, refused: "sudo-locked"},
	} {
		v := sudoView(c.root, c.answers)
		f := stepstest.Find(t, "sudo", v)
		var codes []string
		for _, ch := range f.Changes {
			codes = append(codes, ch.Reason.Code.String())
			if ch.GrantsRoot != (ch.Input != plan.NoInput) {
				t.Errorf("%s: only a change that needs the password grants root: %+v", title, ch)
			}
		}
		stepstest.Expect(t, title, c.want, codes)
		if n := len(f.Changes); n > 0 && f.Changes[n-1].Input != c.input {
			t.Errorf("%s: input %q, want %q", title, f.Changes[n-1].Input, c.input)
		}
		if f.Refused != nil && f.Refused.Code.String() != c.refused || f.Refused == nil && c.refused != "" {
			t.Errorf("%s: refused %+v, want %q", title, f.Refused, c.refused)
		}
	}
}

// TestSudoUnread: after unexpected output nothing is planned.
func TestSudoUnread(t *testing.T) {
	t.Parallel()
	for probe, answer := range map[string]plan.Answer{
		"sudo.root":    stepstest.Failed(1, "sudo: something new\n"),
		"sudo.account": stepstest.Failed(56, "<dscl_cmd> DS Error: -14136 (eDSRecordNotFound)\n"),
		"sudo.file":    stepstest.Failed(1, "cat: /etc/sudoers.d/macfleet: Input/output error\n"),
	} {
		v := sudoView(true, map[string]plan.Answer{probe: answer})
		f := stepstest.Find(t, "sudo", v)
		stepstest.Expect(t, probe, []string{probe}, stepstest.UnreadOf(f))
		if len(f.Unread) > 0 && f.Facts != "" {
			t.Errorf("%s: what is configured is known anyway", probe)
		}
	}
}

// TestSudoRemoval removes what macfleet verified, and a stranger's file never.
func TestSudoRemoval(t *testing.T) {
	t.Parallel()
	for title, c := range map[string]struct {
		edit    func(*plan.View)
		removes bool
	}{
		"ours":           {func(*plan.View) {}, true},
		"never verified": {func(v *plan.View) { v.Verified = false }, false},
		"a stranger's file": {func(v *plan.View) {
			v.Facts["sudo.file"] = inventory.Present(stepstest.Said("440 0 0\nm1 ALL = (ALL) NOPASSWD: ALL\n"))
		}, false},
		"account unread": {func(v *plan.View) { v.Facts["sudo.account"] = inventory.Present(stepstest.Failed(56, "DS Error")) }, false},
		"no root":        {func(v *plan.View) { v.Root = false }, false},
		"gone already":   {func(v *plan.View) { v.Facts["sudo.file"] = inventory.Present(plan.Answer{Exit: 4}) }, false},
	} {
		v := sudoView(true, nil)
		v.Verified = true
		c.edit(&v)
		f := stepstest.Step(t, "sudo", fleet.Spec{}).Diff(v)
		if proof := stepstest.Step(t, "sudo", wantsSudo()).Diff(v); c.removes && f.Facts != proof.Facts {
			t.Errorf("%s: a removal that looks like drift: %q, verified was %q", title, f.Facts, proof.Facts)
		}
		if got := len(f.Changes) == 1 && f.Changes[0].Removes; got != c.removes {
			t.Errorf("%s: %+v", title, f)
		}
	}
}
