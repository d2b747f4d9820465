package tailnet

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/maintest"
)

func TestMain(m *testing.M) { maintest.Main(m) }

// TestAddress looks for hosts in what the command prints.
func TestAddress(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/running.json")
	if err != nil {
		t.Fatal(err)
	}
	all, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ what, name, want string }{
		{"this machine", "runner", "100.101.102.1"},
		{"a peer with two addresses, and a younger one that calls itself the same", "acme-1", "100.101.102.2"},
		{"the younger one", "acme-1-1", "100.101.102.3"},
		{"only a host name", "acme-2", "no device of the tailnet is named acme-2; a device with that host name is named acme-2-1"},
		{"only IPv6, other letters", "acme-3", "fd7a:115c:a1e0::5"},
		{"a router has its own address, none of its routes", "router", "100.101.102.6"},
		{"shared from another tailnet", "acme-4", "no device of the tailnet is named acme-4"},
		{"an exit node of a vendor", "us-nyc-wg-301", "no device of the tailnet is named us-nyc-wg-301"},
		{"no address yet", "acme-5", "no device of the tailnet is named acme-5"},
		{"no name", "acme-6", "no device of the tailnet is named acme-6"},
		{"no such peer", "acme-9", "no device of the tailnet is named acme-9"},
		{"a whole name", "acme-1.tail1a2b.ts.net", "no device of the tailnet is named acme-1.tail1a2b.ts.net"},
		{"empty", "", "no device of the tailnet is named "},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			address, err := all.Address(tt.name)
			got := address.String()
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("Address(%q) = %s, want %s", tt.name, got, tt.want)
			}
		})
	}
}

// TestParse: a tailnet that this machine is not connected to has no devices, whatever is still listed.
func TestParse(t *testing.T) {
	t.Parallel()
	peers := `"MagicDNSSuffix":"tail1.ts.net","Peer":{"k":{"DNSName":"acme-1.tail1.ts.net.","TailscaleIPs":["100.64.0.1"]}}`
	tests := []struct{ name, text, want string }{
		{"stopped", `{"BackendState":"Stopped","TUN":true,` + peers + `}`, `(state "Stopped")`},
		{"logged out", `{"BackendState":"NeedsLogin","TUN":true,` + peers + `}`, `(state "NeedsLogin")`},
		{"expired key", `{"BackendState":"NeedsLogin","TUN":true,"Self":{"Expired":true},` + peers + `}`, `"NeedsLogin"`},
		{"not approved", `{"BackendState":"NeedsMachineAuth","TUN":true,` + peers + `}`, `"NeedsMachineAuth"`},
		{"starting", `{"BackendState":"Starting","TUN":true}`, `"Starting"`},
		{"no daemon", `{"BackendState":"NoState"}`, `"NoState"`},
		{"userspace", `{"BackendState":"Running","TUN":false,` + peers + `}`, "userspace networking"},
		{"something else", `{}`, `(state "")`},
		{"null", `null`, `(state "")`},
		{"garbage", "Tailscale is stopped.\n", "malformed output"},
		{"empty", "", "malformed output"},
		{"half", `{"BackendState":"Running","TUN":tr`, "malformed output"},
		{"an address that is none", `{"BackendState":"Running","TUN":true,"Peer":{"k":{"TailscaleIPs":["acme"]}}}`, "malformed output"},
		{"a list", `[]`, "malformed output"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, err := parse([]byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("parse = %v, %v, want %q", got, err, tt.want)
			}
		})
	}
	for name, text := range map[string]string{
		"alone":     `{"BackendState":"Running","TUN":true,"MagicDNSSuffix":"tail1.ts.net","Peer":null}`,
		"no suffix": `{"BackendState":"Running","TUN":true,"Peer":{"k":{"DNSName":"acme-1.","TailscaleIPs":["100.64.0.1"]}}}`,
	} {
		if got, err := parse([]byte(text)); err != nil || len(got) > 0 {
			t.Errorf("%s: parse = %v, %v, want no devices", name, got, err)
		}
	}
}

// TestAsk runs programs in the place of the command.
func TestAsk(t *testing.T) { // not parallel: it sets the PATH
	running, err := filepath.Abs("testdata/running.json")
	if err != nil {
		t.Fatal(err)
	}
	prints := `[ "$*" = "status --json" ] && [ "$TAILSCALE_BE_CLI" = 1 ] && echo 'Warning: client version' >&2 && `
	tests := []struct{ name, program, want string }{
		{"none", "", "has no Tailscale"},
		{"running", prints + `while read -r l; do echo "$l"; done <` + running, ""},
		{"fails", "echo 'failed to connect;' >&2\necho 'is it running?' >&2\nexit 1", "failed to connect; is it running?: exit status 1"},
		{"fails and says nothing", "exit 3", "tailscale status: exit status 3"},
		{"prints without end", "while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done >&2", "too much output"},
		{"says nothing", "exit 0", "malformed output"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fake(t, tt.program)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			got, err := Ask(ctx)
			if tt.want == "" && (err != nil || len(got) != 6) || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Ask = %v, %v, want %q", got, err, tt.want)
			}
		})
	}
	t.Run("hangs", func(t *testing.T) {
		fake(t, "while :; do :; done")
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := Ask(ctx); err == nil || !strings.Contains(err.Error(), "no answer in time") {
			t.Errorf("error = %v", err)
		}
	})
}

// fake puts a program in the place of the command; empty: there is none.
func fake(t *testing.T, program string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if program != "" {
		if err := os.WriteFile(filepath.Join(dir, "tailscale"), []byte("#!/bin/sh\n"+program+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}
