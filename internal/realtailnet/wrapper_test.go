package realtailnet

import (
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// wrapper is the program that node_exporter's step renders, with the paths of a machine here.
func wrapper(t *testing.T, m *machine) string {
	t.Helper()
	port := 9300
	host := stepstest.Host(fleet.Spec{Tailscale: &fleet.Tailscale{}, NodeExporter: &fleet.NodeExporter{
		Artifact: &fleet.Artifact{Name: "node_exporter", Version: "1.12.1", SHA256: strings.Repeat("0", 64)},
		Port:     &port, Collectors: []string{"cpu", "filesystem", "loadavg", "time", "uname"}}})
	host.Tailnet = &fleet.Tailnet{Enabled: true, Tags: []string{fleetTag}}
	restarter, is := stepstest.StepOf(t, "node_exporter", host).(kit.Restarter)
	if !is {
		t.Fatal("the step has no job")
	}
	var text string
	for _, arg := range restarter.Restart(plan.View{Host: host}).Command.Args {
		if strings.HasPrefix(arg, "#!/bin/sh\n") {
			text = arg
		}
	}
	for _, pair := range [][2]string{
		{"/usr/local/bin/tailscale ", tailscale(t) + " --socket=" + m.file("sock") + " "},
		{"/usr/local/bin/node_exporter ", exporter(t) + " "},
		{"--timeout=60s", "--timeout=2s"},
	} {
		if !strings.Contains(text, pair[0]) {
			t.Fatalf("the wrapper has no %s:\n%s", pair[0], text)
		}
		text = strings.ReplaceAll(text, pair[0], pair[1])
	}
	path := filepath.Join(t.TempDir(), "wrapper")
	scripttest.Write(t, path, text, 0o755)
	return path
}

// TestWrapper: the exporter's wrapper serves on the address in the tailnet, and on none without it. An expired device still
// has an address.
func TestWrapper(t *testing.T) {
	t.Parallel()
	s := server(t)
	m := s.machine(t, "wrapped-1")
	path := wrapper(t, m)
	ends := func(when string) {
		t.Helper()
		p, err := startProcess(filepath.Join(t.TempDir(), "log"), nil, "dash", path)
		must(t, err)
		defer p.stop()
		must(t, await("end of the wrapper "+when, func() (bool, error) { return p.ended() != nil, nil }))
		if p.err == nil {
			t.Errorf("%s the wrapper ended without an error", when)
		}
	}
	ends("before the host has joined")
	joined := m.join(t, fleetTag)
	address := joined.Self.Addresses[0]
	// With an interface, tailscaled would give it the address.
	if out, err := exec.CommandContext(t.Context(), "ip", "addr", "add", address+"/32", "dev", "lo").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p, err := startProcess(filepath.Join(t.TempDir(), "log"), nil, "dash", path)
	must(t, err)
	opens := func(host string) bool {
		c, err := net.DialTimeout("tcp", net.JoinHostPort(host, "9300"), 5*time.Second)
		return err == nil && c.Close() == nil
	}
	err = await("exporter on "+address, func() (bool, error) { return opens(address), p.ended() })
	if err != nil {
		t.Error(err)
	}
	for _, other := range []string{"127.0.0.1", hostAddress} {
		if opens(other) {
			t.Errorf("the exporter serves on %s", other)
		}
	}
	p.stop()
	m.await(t, "expired device", s.expires(t, joined.Self.ID))
	ends("after the node key has expired")
}
