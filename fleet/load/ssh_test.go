package load

import (
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/secret"
)

func TestSSH(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, block string
		want        fleet.SSH
	}{
		{"nothing", ``, fleet.SSH{User: "m1", Via: []string{"public"}}},
		{"all", `
  user        = "ops"
  private_key = secret("env://KEY")
  via         = ["tailscale", "public"]
  timeouts {
    dial      = "1h"
    handshake = "1ms"
    question  = "1s"
    change    = "1m30s"
    exchange  = "90s"
    silence   = "1500ms"
    undo      = "10s"
  }`, fleet.SSH{User: "ops", PrivateKey: secret.Ref{Scheme: secret.Env, Path: "KEY"}, Via: []string{"tailscale", "public"},
			Timeouts: fleet.Timeouts{Dial: time.Hour, Handshake: time.Millisecond, Question: time.Second, Change: 90 * time.Second,
				Exchange: 90 * time.Second, Silence: 1500 * time.Millisecond, Undo: 10 * time.Second}}},
		{"some timeouts", "\n  via = [\"tailscale\"]\n  timeouts {\n    silence = \"1m\"\n  }", fleet.SSH{User: "m1", Via: []string{"tailscale"},
			Timeouts: fleet.Timeouts{Silence: time.Minute}}},
	}
	for _, tt := range tests {
		before, after, found := strings.Cut(small, "  private_key = secret(\"k8s://macfleet/fleet-ssh/id_ed25519\")")
		if !found {
			t.Fatal("the small configuration has no private_key: fix this test")
		}
		r := mustLoad(t, one(before+tt.block+after), Options{})
		equal(t, tt.name, tt.want, r.Config.SSH)
	}
}
