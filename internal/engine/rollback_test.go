package engine_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/overssh"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
	"github.com/macfleet/macfleet/plan"
)

// TestRollback lets new rules cut the host off, once so and once with a restart
// in between: the host comes back by itself with its old rules, the run fails and
// reports it, and the next one says what happened.
func TestRollback(t *testing.T) {
	t.Parallel()
	for _, incident := range []string{"cut-connection-during-pf", "reboot-during-undo"} {
		parallel(t, incident, func(t *testing.T) {
			w, e, host := firewalled(t, nil)
			machine := macOf(t, w, host)
			e.Hosts = fastClock(t, w, machine)
			before := firewall(t, machine)
			must(t, w.Inject(host, incident))
			if said := codesOf(planned(t, e), host); len(said) > 0 {
				t.Errorf("before rules change it says %q", said)
			}
			group := &e.Config.Fleets[0].Groups[0]
			group.Spec = fleet.Spec{VMFirewall: &fleet.VMFirewall{Block: []string{"10.0.0.0/8"}}}.WithBuiltIn().WithDefaults()
			r := apply(t, e)
			if r.Converged() || len(r.Failures) != 1 || !hasCode(r.Failures[0].Err, "rolled-back") {
				t.Fatalf("failures %v", r.Failures)
			}
			if after := firewall(t, machine); after != before {
				t.Errorf("the host has\n%s\nand had\n%s", after, before)
			}
			p := planned(t, e)
			if len(p.Actions) != 1 || p.Actions[0].Origin != (plan.Origin{Pending: true}) || p.Actions[0].Reason.Code.String() != "config-changed" {
				t.Errorf("no one edited anything, and the next plan says %+v", p.Actions)
			}
			if said := codesOf(p, host); !slices.Contains(said, "warning rolled-back") {
				t.Errorf("the next plan says %q", said)
			}
			must(t, w.Heal(host, incident))
			converges(t, e)
			if said := codesOf(planned(t, e), host); len(said) > 0 {
				t.Errorf("after all is well it says %q", said)
			}
		})
	}
}

// TestRollbackUnderAPod: a Pod runs on the host while a first firewall, and later a change of its rules, fails its
// confirmation. The host takes it back without a load of the main ruleset, and the Pod's virtual machine has a network.
func TestRollbackUnderAPod(t *testing.T) {
	t.Parallel()
	declares(t, 4, "a first firewall and a change of it fail, and both are repeated")
	const incident = "cut-connection-during-pf"
	w, e, host := longNode(t, nodes(1))
	n := &network{T: t, w: w, e: e, host: host, mac: macOf(t, w, host)}
	must(t, w.SetSwitch(host, "full-load-nat", "broken"))
	must(t, w.RunPod(host, "default", "job"))
	n.runs(true)
	n.mac.Watch(n.look)
	e.Hosts = fastClock(t, w, n.mac)
	spec := &e.Config.Fleets[0].Groups[0].Spec
	for _, block := range [][]string{{"10.0.0.0/8"}, {"10.0.0.0/8", "172.16.0.0/12"}} {
		spec.VMFirewall = &fleet.VMFirewall{Block: block}
		*spec = spec.WithDefaults()
		must(t, w.Inject(host, incident))
		before := firewall(t, n.mac)
		r := apply(t, e)
		if len(r.Failures) != 1 || !hasCode(r.Failures[0].Err, "rolled-back") {
			t.Fatalf("%v: failures %v", block, r.Failures)
		}
		if after := firewall(t, n.mac); after != before {
			t.Errorf("%v: the host has\n%s\nand had\n%s", block, after, before)
		}
		if online, err := n.mac.GuestsOnline(); err != nil || !online {
			t.Errorf("%v: the virtual machine has no network, %v", block, err)
		}
		must(t, w.Heal(host, incident))
		converges(t, e)
	}
	if len(n.cut) > 0 || n.called("pfctl -f") > 0 {
		t.Errorf("pf or the network was off after %q; of the calls %q", n.cut, n.calls)
	}
	if vms, err := n.mac.VMs(); err != nil || len(vms) != 1 || !vms[0].Running {
		t.Errorf("virtual machines %+v, %v", vms, err)
	}
}

// fastClock returns a client that advances the host's clock whenever the host does
// not answer.
func fastClock(t *testing.T, w *sandbox.World, machine *mac.Machine) overssh.Hosts {
	t.Helper()
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := w.DialContext(ctx, network, address)
		if err != nil {
			err = errors.Join(err, machine.Advance(20*time.Second))
		}
		return conn, err
	}
	c := overssh.New(hosts.Options{User: "m1", Key: fleetKey(t, w), Dial: dial, Poll: time.Millisecond})
	t.Cleanup(c.Close)
	return c
}

// firewall is what is loaded and what is on the disk.
func firewall(t *testing.T, machine *mac.Machine) string {
	t.Helper()
	const script = "pfctl -sr; pfctl -a macfleet -sr; pfctl -a macfleet -t vm_sources -T show; pfctl -a macfleet -t blocked_dst -T show; " +
		"cat /etc/pf.conf /etc/pf.anchors/macfleet; ls /etc/macfleet/undo/armed* /etc/macfleet/undo/undoing* 2>/dev/null"
	return printed(t, machine, script)
}

// fleetKey is the key by which a world's configuration logs in.
func fleetKey(t *testing.T, w *sandbox.World) ssh.Signer {
	t.Helper()
	pem, err := w.SSHKey()
	must(t, err)
	signer, err := hosts.ParsePrivateKey(pem)
	must(t, err)
	return signer
}
