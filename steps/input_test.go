package steps_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
	"github.com/macfleet/macfleet/steps/kcpassword"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// TestInput: lines are all that a script reads, and what they hold is the
// password, whatever it holds itself.
func TestInput(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[^\x00\r\n]{1,40}`).Draw(t, "password")
		password, err := secret.New(text)
		if err != nil {
			t.Skip("no password")
		}
		if plain, err := steps.Input(steps.InputFor{Kind: plan.LoginPassword}, password); err != nil || plain.Reveal() != text+"\n" {
			t.Fatalf("%q, %v", plain.Reveal(), err)
		}
		both, err := steps.Input(steps.InputFor{Kind: plan.AutoLogin}, password)
		first, rest, _ := strings.Cut(both.Reveal(), "\n")
		second, end, line := strings.Cut(rest, "\n")
		if err != nil || first != text || !line || end != "" {
			t.Fatalf("%q, %v", both.Reveal(), err)
		}
		content, err := base64.StdEncoding.DecodeString(second)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := kcpassword.Decode(content); err != nil || string(got) != text {
			t.Fatalf("%q, %v", got, err)
		}
	})
}

func TestInputRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		kind plan.InputKind
		text string
		want string
	}{
		{plan.NoInput, "hunter2", "no script reads"},
		{"tailnet-key", "hunter2", "no script reads"},
		{plan.LoginPassword, "hunter2\n", "line break"},
		{plan.AutoLogin, "hunter2\r", "line break"},
		{plan.AutoLogin, "hunter2\x00", "NUL"},
		{plan.AutoLogin, "<sealed>hunter2", "placeholder"},
	} {
		password, err := secret.New(tc.text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := steps.Input(steps.InputFor{Kind: tc.kind}, password)
		if err == nil || !got.IsZero() || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s of %q: %v; want an error about %q", tc.kind, tc.text, err, tc.want)
		}
	}
	if got, err := steps.Input(steps.InputFor{Kind: plan.AutoLogin}, secret.Value{}); err == nil || !got.IsZero() {
		t.Error("no password is none")
	}
}

// TestKubeconfigInput: a kubeconfig is what the agent reads and what the probe
// compares; a node or token that could break out of its line is refused.
func TestKubeconfigInput(t *testing.T) {
	t.Parallel()
	token, err := secret.New(tokenOf(stepstest.AccountUID))
	if err != nil {
		t.Fatal(err)
	}
	in := steps.InputFor{Kind: plan.Kubeconfig, Host: host(joined), Join: stepstest.Join()}
	got, err := steps.Input(in, token)
	if err != nil || got.Reveal() != stepstest.Kubeconfig(name)+"    token: "+tokenOf(stepstest.AccountUID)+"\n" {
		t.Errorf("%v\n%s", err, got.Reveal())
	}
	for what, edit := range map[string]func(*steps.InputFor) string{
		"no server":   func(i *steps.InputFor) string { i.Join.Server = ""; return "t" },
		"a line":      func(i *steps.InputFor) string { i.Join.Server = "https://x\n    insecure: true"; return "t" },
		"no node":     func(i *steps.InputFor) string { i.Host.Name = ""; return "t" },
		"a quote":     func(i *steps.InputFor) string { i.Host.Name = `a"b`; return "t" },
		"token lines": func(*steps.InputFor) string { return "hunter2\nhunter2" },
		"token quote": func(*steps.InputFor) string { return `hunter2"` },
	} {
		other := in
		value, err := secret.New(edit(&other))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := steps.Input(other, value); err == nil || !got.IsZero() || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got, err := steps.Input(in, secret.Value{}); err == nil || !got.IsZero() {
		t.Error("no token is none")
	}
}
