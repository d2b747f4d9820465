package realtailnet

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/hosts/tailnet"
	"github.com/macfleet/macfleet/internal/scripttest"
)

// TestOperator: macfleet finds hosts through the tailscaled of the machine it runs on, in each state of that.
func TestOperator(t *testing.T) {
	t.Parallel()
	s := server(t)
	operator, host := s.machine(t, "operator"), s.machine(t, "found-1")
	// The operator's device has an interface, which needs rights that tests lack; all else is the real answer.
	program := "#!/bin/sh\nanswer=$(" + tailscale(t) + " --socket=" + operator.file("sock") + ` "$@") || exit
printf '%s\n' "$answer" | sed 's/"TUN": false/"TUN": '$(cat ` + operator.file("tun") + ")/\n"
	scripttest.Write(t, filepath.Join(onPath, "tailscale"), program, 0o755)
	refused := func(tun, want string) {
		t.Helper()
		scripttest.Write(t, operator.file("tun"), tun, 0o644)
		if all, err := tailnet.Ask(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Ask = %v, %v, want %q", all, err, want)
		}
	}
	refused("true", `(state "NeedsLogin")`)
	target, _ := bothJoin(t, host, operator)
	refused("false", "userspace networking")
	scripttest.Write(t, operator.file("tun"), "true", 0o644)
	err := await("host that the operator's device sees", func() (bool, error) {
		all, err := tailnet.Ask(t.Context())
		if err != nil {
			return false, err
		}
		address, err := all.Address("FOUND-1")
		return err == nil && address.String() == target.Self.Addresses[0], nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, step := range []struct{ command, want string }{
		{"down", `(state "Stopped")`},
		{"logout", `(state "NeedsLogin")`},
	} {
		if r := operator.cli(t, step.command); r.code != 0 {
			t.Errorf("tailscale %s: %+v", step.command, r)
		}
		refused("true", step.want)
		operator.recorded(t, "status-"+step.command+".json", "status", "--json")
		operator.recorded(t, "prefs-"+step.command+".json", "debug", "prefs")
	}
	operator.stop()
	refused("true", "failed to connect")
}
