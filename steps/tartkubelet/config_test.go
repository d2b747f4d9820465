package tartkubelet_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// TestKubeconfigInput: a kubeconfig is what the agent reads and what the probe
// compares; a node or token that could break out of its line is refused.
func TestKubeconfigInput(t *testing.T) {
	t.Parallel()
	token, err := secret.New(tokenOf(stepstest.AccountUID))
	if err != nil {
		t.Fatal(err)
	}
	in := steps.InputFor{Kind: plan.Kubeconfig, Host: stepstest.Host(joined), Join: stepstest.Join()}
	got, err := steps.Input(in, token)
	if err != nil || got.Reveal() != stepstest.Kubeconfig(name)+"    token: "+tokenOf(stepstest.AccountUID)+"\n" {
		t.Errorf("%v\n%s", err, got.Reveal())
	}
	in.Join.TLSServerName, in.Join.ProxyURL = "kubernetes.acme.dev", "http://proxy.acme.dev:3128"
	by, err := steps.Input(in, token)
	way := "    tls-server-name: kubernetes.acme.dev\n    proxy-url: http://proxy.acme.dev:3128\ncontexts:"
	if err != nil || by.Reveal() != strings.Replace(got.Reveal(), "contexts:", way, 1) {
		t.Errorf("%v\n%s", err, by.Reveal())
	}
	for what, edit := range map[string]func(*steps.InputFor) string{
		"no server":    func(i *steps.InputFor) string { i.Join.Server = ""; return "t" },
		"a line":       func(i *steps.InputFor) string { i.Join.Server = "https://x\n    insecure: true"; return "t" },
		"a proxy line": func(i *steps.InputFor) string { i.Join.ProxyURL = "http://x\n    insecure: true"; return "t" },
		"no node":      func(i *steps.InputFor) string { i.Host.Name = ""; return "t" },
		"a quote":      func(i *steps.InputFor) string { i.Host.Name = `a"b`; return "t" },
		"token lines":  func(*steps.InputFor) string { return "hunter2\nhunter2" },
		"token quote":  func(*steps.InputFor) string { return `hunter2"` },
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
