package sandbox_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	applesilicon "github.com/scaleway/scaleway-sdk-go/api/applesilicon/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
)

// TestReinstalledByTheProvider wipes a Mac through the API: what macfleet put there is gone, and the
// machine is a new one at the same address.
func TestReinstalledByTheProvider(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	second := open(t, p.dir, seed(2))
	p.writeMarker("own")
	p.installKubelet(p.identity("tart-kubelet-mini-1"))
	must(t, p.machine.SetSwitch("lockout-after", "5"))
	key := signer(t, p.world)
	serial := p.run("ioreg -rd1 -c IOPlatformExpertDevice")
	_, before, err := exec(t.Context(), p.world, key, p.host.Address, "true")
	must(t, err)
	password, err := p.machine.Password()
	must(t, err)
	if _, err := scaleway(t, p.world).ReinstallServer(&applesilicon.ReinstallServerRequest{Zone: scw.Zone(p.host.Zone), ServerID: p.host.ID}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.world.DialContext(t.Context(), "tcp", p.host.Address+":22"); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("a connection during the installation: %v", err)
	}
	must(t, p.machine.Advance(10*time.Second))
	version, after, err := exec(t.Context(), second, key, p.host.Address, "sw_vers -productVersion")
	if err != nil || after == before {
		t.Errorf("after the installation: host key %s, before %s, %v", after, before, err)
	}
	p.want("version", strings.TrimSpace(version), "26.6.1")
	p.want("marker", p.marker(), "")
	p.want("jobs", p.run("ls /Library/LaunchDaemons; launchctl print system/dev.macfleet.tart-kubelet 2>/dev/null || true"), "")
	p.want("hardware", p.run("ioreg -rd1 -c IOPlatformExpertDevice"), serial)
	if next, err := p.machine.Password(); err != nil || next == password {
		t.Errorf("the password is still %q, %v", next, err)
	}
	sudo, _ := p.reported()
	next, err := p.machine.Password()
	must(t, err)
	p.want("password", next, sudo)
	switches, err := p.world.Switches(p.host.ID, "lockout-after")
	must(t, err)
	p.want("switch", switches[0].Value, "5")
}

// TestRebootedByTheProvider restarts a Mac through the API: connections end, and the project's keys are
// on the Mac again.
func TestRebootedByTheProvider(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.inject("key-not-installed")
	p.writeMarker("own")
	booted := p.run("sysctl -n kern.boottime")
	if _, err := scaleway(t, p.world).RebootServer(&applesilicon.RebootServerRequest{Zone: scw.Zone(p.host.Zone), ServerID: p.host.ID}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.world.DialContext(t.Context(), "tcp", p.host.Address+":22"); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("a connection during the restart: %v", err)
	}
	must(t, p.machine.Advance(10*time.Second))
	after, _, err := exec(t.Context(), p.world, signer(t, p.world), p.host.Address, "sysctl -n kern.boottime")
	if err != nil || strings.TrimSpace(after) == booted {
		t.Errorf("started at %s, before %s, %v", after, booted, err)
	}
	p.want("marker", p.marker(), "own")
}

// TestDelivered adds a server: its Mac answers and has the fleet's key, until the server is deleted.
func TestDelivered(t *testing.T) {
	t.Parallel()
	w, _ := newWorld(t, 2)
	must(t, w.Provider().Set(func(s *cloud.Settings) { s.Lease = "0s" }))
	made, err := w.Provider().Deliver("fr-par-1", "M2-L", "acme-pool-new")
	must(t, err)
	version, _, err := exec(t.Context(), w, signer(t, w), made.IP.String(), "sw_vers -productVersion")
	if err != nil || strings.TrimSpace(version) != "26.6.1" {
		t.Errorf("it answers %q, %v", version, err)
	}
	must(t, scaleway(t, w).DeleteServer(&applesilicon.DeleteServerRequest{Zone: "fr-par-1", ServerID: made.ID}))
	if _, err := w.DialContext(t.Context(), "tcp", made.IP.String()+":22"); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("a connection after the deletion: %v", err)
	}
}

// TestDiagnosedFromOutside asks the provider about a Mac that cannot be reached.
func TestDiagnosedFromOutside(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	if got := p.diagnosed(); !got.IsHealthy {
		t.Errorf("of a healthy Mac: %+v", got.HealthDetails)
	}
	p.inject("unreachable")
	if got := p.diagnosed(); got.IsHealthy || got.HealthDetails.IsServerAlive {
		t.Errorf("of a dead Mac: %+v", got.HealthDetails)
	}
	p.heal("unreachable")
}

// TestBanned offers a wrong key until the address is banned. Only a restart ends that, and the provider
// sees nothing wrong.
func TestBanned(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	must(t, p.world.SetSwitch(p.host.ID, "ssh-ban-after", "3"))
	p.inject("key-not-installed")
	key := signer(t, p.world)
	for range 3 {
		if _, _, err := exec(t.Context(), p.world, key, p.host.Address, "true"); err == nil || errors.Is(err, syscall.ETIMEDOUT) {
			t.Fatalf("got %v, want a refused login", err)
		}
	}
	if _, _, err := exec(t.Context(), p.world, key, p.host.Address, "true"); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("after three refused logins: %v", err)
	}
	if got := p.diagnosed(); !got.IsHealthy {
		t.Errorf("the provider sees %+v", got.HealthDetails)
	}
	must(t, p.world.Provider().Set(func(s *cloud.Settings) { s.Reboot = "0s" }))
	if _, err := scaleway(t, p.world).RebootServer(&applesilicon.RebootServerRequest{Zone: scw.Zone(p.host.Zone), ServerID: p.host.ID}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := exec(t.Context(), p.world, key, p.host.Address, "true"); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

// diagnosed returns the provider's diagnostic of the host.
func (p *patient) diagnosed() *applesilicon.ConnectivityDiagnostic {
	p.Helper()
	api, zone := scaleway(p.T, p.world), scw.Zone(p.host.Zone)
	started, err := api.StartConnectivityDiagnostic(&applesilicon.StartConnectivityDiagnosticRequest{Zone: zone, ServerID: p.host.ID})
	must(p, err)
	got, err := api.GetConnectivityDiagnostic(&applesilicon.GetConnectivityDiagnosticRequest{Zone: zone, DiagnosticID: started.DiagnosticID})
	must(p, err)
	return got
}
