package sandbox_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

const (
	fleetRules = "table <vm_sources> { 192.168.64.0/24 }\nblock drop out quick from <vm_sources> to 10.0.0.0/8\n"
	fleetBlock = "# BEGIN acme.vms\nanchor \"acme.vms\"\nload anchor \"acme.vms\" from \"/etc/pf.anchors/acme.vms\"\n# END acme.vms\n"
)

// newFiltered returns a host with a fleet's rules in the files and in the kernel.
func newFiltered(t *testing.T) *patient {
	t.Helper()
	p := newPatient(t)
	p.run("printf '%s' '" + fleetRules + "' >/etc/pf.anchors/acme.vms; printf '%s' '" + fleetBlock + "' >>/etc/pf.conf; pfctl -f /etc/pf.conf")
	return p
}

// filter returns all that is loaded.
func (p *patient) filter() string {
	p.Helper()
	return p.run("pfctl -sr; pfctl -sn; pfctl -s dummynet; pfctl -vsT; pfctl -a acme.vms -sr 2>/dev/null || true; pfctl -a acme.vms -vsT; pfctl -s info | head -n 1 | cut -c 1-16")
}

func (p *patient) conf() string {
	p.Helper()
	return p.run("cat /etc/pf.conf") + "\n"
}

func TestPFConfIncidents(t *testing.T) {
	t.Parallel()
	for incident, c := range map[string]struct {
		change func(before string) string
		loads  string // what a load then prints
	}{
		"duplicate-pf-block": {func(b string) string { return b + fleetBlock }, "Resource busy"},
		"legacy-pf-block": {func(b string) string {
			return b + "# acme.vms: egress rules for virtual machines\nanchor \"acme.vms\"\nload anchor \"acme.vms\" from \"/etc/pf.anchors/acme.vms\"\n"
		}, "Resource busy"},
		"begin-without-end": {func(b string) string { return strings.ReplaceAll(b, "# END acme.vms\n", "") }, ""},
	} {
		t.Run(incident, func(t *testing.T) {
			t.Parallel()
			p := newFiltered(t)
			before, live := p.conf(), p.filter()
			p.inject(incident)
			p.want("file", p.conf(), c.change(before))
			p.want("live rules", p.filter(), live)
			if said := p.run("pfctl -nf /etc/pf.conf 2>&1 || true"); c.loads != "" && !strings.Contains(said, c.loads) {
				t.Errorf("a load prints %s, want %s", said, c.loads)
			}
			p.heal(incident)
			p.want("file", p.conf(), before)

			p.inject(incident)
			p.run("echo '# repaired' >>/etc/pf.conf")
			repaired := p.conf()
			p.heal(incident)
			p.want("file after a repair", p.conf(), repaired)
		})
	}
}

// TestPFIncidentsWithoutAFleet checks a host that was never configured: the incidents use a default
// name.
func TestPFIncidentsWithoutAFleet(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	before := p.conf()
	p.inject("duplicate-pf-block")
	p.want("blocks", p.run("grep -c '^# BEGIN macfleet$' /etc/pf.conf"), "2")
	p.heal("duplicate-pf-block")
	p.want("file", p.conf(), before)
	p.run("echo pass >/etc/pf.anchors/acme.other")
	p.inject("begin-without-end")
	p.want("markers", p.run("grep -E 'BEGIN|END' /etc/pf.conf"), "# BEGIN acme.other")
	p.heal("begin-without-end")
	p.want("file", p.conf(), before)
}

func TestPFConfReset(t *testing.T) {
	t.Parallel()
	p := newFiltered(t)
	before := p.conf()
	p.inject("pf-conf-reset-by-update")
	for _, gone := range []string{"acme", "fail2ban"} {
		if strings.Contains(p.conf(), gone) || strings.Contains(p.filter(), gone) {
			t.Errorf("%s still exists", gone)
		}
	}
	p.want("anchor's file", p.run("cat /etc/pf.anchors/acme.vms")+"\n", fleetRules)
	p.heal("pf-conf-reset-by-update")
	p.want("file", p.conf(), before)
	if live := p.filter(); !strings.Contains(live, "block drop out quick inet from <vm_sources> to 10.0.0.0/8") || !strings.Contains(live, `anchor "acme.vms" all`) {
		t.Errorf("live rules after healing: %s", live)
	}

	p.inject("pf-conf-reset-by-update")
	p.run("echo '# repaired' >>/etc/pf.conf")
	repaired := p.conf()
	p.heal("pf-conf-reset-by-update")
	p.want("file after a repair", p.conf(), repaired)
}

func TestLivePFIncidents(t *testing.T) {
	t.Parallel()
	const file = "pfctl -a acme.vms -f /etc/pf.anchors/acme.vms"
	for incident, c := range map[string]struct {
		shows, misses string // of what is loaded
		repair        string
	}{
		"flushed-pf-anchor":   {`anchor "acme.vms" all`, "block drop out quick", file},
		"unreferenced-anchor": {"block drop out quick", `anchor "acme.vms" all`, "pfctl -f /etc/pf.conf"},
		"persist-table-left": {"-pa----\tvm_sources", "block drop out quick",
			"pfctl -t vm_sources -T kill; pfctl -a acme.vms -t vm_sources -T kill; " + file},
		"pf-disabled": {"Status: Disabled", "Status: Enabled", "pfctl -E"},
	} {
		t.Run(incident, func(t *testing.T) {
			t.Parallel()
			p := newFiltered(t)
			before, conf := p.filter(), p.conf()
			p.inject(incident)
			if live := p.filter(); !strings.Contains(live, c.shows) || strings.Contains(live, c.misses) {
				t.Errorf("loaded is\n%s", live)
			}
			p.want("file", p.conf(), conf)
			p.heal(incident)
			p.want("loaded after healing", p.filter(), before)

			p.inject(incident)
			p.run(c.repair)
			repaired := p.filter()
			p.want("loaded after a repair", repaired, before)
			p.heal(incident)
			p.want("loaded after healing what was repaired", p.filter(), repaired)
		})
	}
}

func TestLeftTablesAreInTheWay(t *testing.T) {
	t.Parallel()
	p := newFiltered(t)
	p.inject("persist-table-left")
	load := func() string { return p.run("pfctl -a acme.vms -nf /etc/pf.anchors/acme.vms 2>&1 || true") }
	for _, kill := range []string{"true", "pfctl -F all; pfctl -a acme.vms -F all", "pfctl -t vm_sources -T kill", "pfctl -a acme.vms -t vm_sources -T kill"} {
		has(t, load(), "cannot define table vm_sources: Resource busy", "before", kill, "a load prints")
		p.run(kill)
	}
	if said := load(); strings.Contains(said, "busy") {
		t.Errorf("with both tables killed a load prints %s", said)
	}
}

func TestDisabledBefore(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.run("pfctl -d")
	must(t, p.world.Inject(p.host.ID, "pf-disabled"))
	p.heal("pf-disabled")
	p.want("status", p.run("pfctl -s info | head -n 1 | cut -c 1-16"), "Status: Disabled")
}

func TestCutConnection(t *testing.T) {
	t.Parallel()
	const other = "echo 'block drop all' | sudo pfctl -a acme.vms -f -"
	for _, incident := range []string{"cut-connection-during-pf", "reboot-during-undo"} {
		t.Run(incident, func(t *testing.T) {
			t.Parallel()
			p := newFiltered(t)
			key := signer(t, p.world)
			p.inject(incident)
			ask := func(line string) error {
				_, _, err := exec(t.Context(), p.world, key, p.host.Address, line)
				return err
			}
			if err := ask("sudo pfctl -f /etc/pf.conf"); err != nil {
				t.Errorf("the same rules: %v", err)
			}
			if err := ask(other); err == nil {
				t.Error("other rules do not cut the connection")
			}
			if incident == "cut-connection-during-pf" {
				if err := ask("true"); !errors.Is(err, syscall.ETIMEDOUT) {
					t.Errorf("a new connection: %v, want ETIMEDOUT", err)
				}
				p.run("pfctl -a acme.vms -f /etc/pf.anchors/acme.vms")
				if err := ask("true"); err != nil {
					t.Errorf("with the old rules: %v", err)
				}
				p.run(other)
			}
			p.heal(incident)
			if err := ask("true"); err != nil {
				t.Errorf("after healing: %v", err)
			}
		})
	}
}
