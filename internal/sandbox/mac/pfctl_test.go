package mac

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	altq    = "No ALTQ support in kernel\nALTQ related functions disabled\n"
	warning = "pfctl: Use of -f option, could result in flushing of rules\npresent in the main ruleset added by the system at startup.\nSee /etc/pf.conf for further details.\n\n"
	failed  = "pfctl: Syntax error in config file: pf rules not loaded\n"

	// acme loads an anchor as a fleet does.
	acme = `mkdir -p /etc/pf.anchors; printf 'table <vm> { 192.168.64.0/24 }\nblock drop out quick from <vm> to 10.0.0.0/8\n' >/etc/pf.anchors/acme
block() { printf '# BEGIN acme\nanchor "acme"\nload anchor "acme" from "/etc/pf.anchors/acme"\n# END acme\n' >>/etc/pf.conf; }
`
)

func TestPfctl(t *testing.T) {
	check(t, "root", []row{
		{script: "pfctl -sr", stderr: altq, stdout: "scrub-anchor \"com.apple/*\" all fragment reassemble\nanchor \"com.apple/*\" all\nblock drop in proto tcp from <fail2ban> to any\nblock drop in proto udp from <fail2ban> to any\n"},
		{script: "pfctl -s nat", stderr: altq, stdout: "nat-anchor \"com.apple/*\" all\nrdr-anchor \"com.apple/*\" all\n"},
		{script: "pfctl -sT -v; pfctl -t fail2ban -T show", stderr: altq + altq, stdout: "-pa-r--\tfail2ban\n   198.51.100.23\n   203.0.113.77\n"},
		{script: "pfctl -s Anchors -v 2>/dev/null; pfctl -a com.apple -sA 2>/dev/null", stdout: "  com.apple\n  com.apple/200.AirDrop\n  com.apple/250.ApplicationFirewall\n  com.apple/200.AirDrop\n  com.apple/250.ApplicationFirewall\n"},
		{script: "pfctl -a 'com.apple/*' -sr", stderr: altq + "pfctl: DIOCGETRULES: Invalid argument\n", exit: 1},
		{script: "pfctl -a missing -sr", stderr: altq + "pfctl: DIOCGETRULES: Invalid argument\n", exit: 1},
		{script: "pfctl -t missing -T show", stderr: altq + "pfctl: Table does not exist.\n", exit: 255},
		{script: "pfctl -e", stderr: altq + "pfctl: pf already enabled\n", exit: 1},
		{script: "pfctl", stderr: "usage: pfctl [-AdeEghmNnOqRrvz] [-a anchor] [-D macro=value] [-F modifier]\n\t[-f file] [-i interface] [-K host | network]\n\t[-k host | network] [-o level] [-p device]\n\t[-s modifier] [-t table -T command [address ...]] [-X token]\n\t[-x level]\n", exit: 1},
		{script: "pfctl -g", stderr: "pfctl: option not modelled: -g\n", exit: 64},
		{script: "pfctl -s memory", stderr: altq + "pfctl: option not modelled: -s memory\n", exit: 64},
		// A check without a load changes nothing; a table's contents do not survive a load.
		{script: "pfctl -nf /etc/pf.conf; pfctl -t fail2ban -T show 2>/dev/null", stderr: warning + altq, stdout: "   198.51.100.23\n   203.0.113.77\n"},
		{script: "pfctl -f /etc/pf.conf; pfctl -sn 2>/dev/null; pfctl -t fail2ban -T show 2>/dev/null", stderr: warning + altq, stdout: "nat-anchor \"com.apple/*\" all\nrdr-anchor \"com.apple/*\" all\n"},
		// A fault anywhere leaves everything unchanged.
		{script: "printf 'pass\\nnat-anchor \"x\"\\n' | pfctl -f -; pfctl -sr 2>/dev/null | head -n 1", stderr: warning + altq + "stdin:2: " + pfOutOfOrder + "\n" + failed, stdout: "scrub-anchor \"com.apple/*\" all fragment reassemble\n"},
		{script: "pfctl -f /missing", stderr: warning + altq + "pfctl: /missing: No such file or directory\npfctl: cannot open the main config file!: No such file or directory\n" + failed, exit: 1},
		{script: "echo 'pass user root' | pfctl -nf -", stderr: warning + altq + "not modelled: user\npfctl: statement not modelled\n", exit: 64},
		{script: "echo 'load anchor \"x\" from \"/missing\"' | pfctl -nf -", stderr: warning + altq + "pfctl: /missing: No such file or directory\npfctl: load anchors\n" + failed, exit: 1},
		// Inline rules.
		{script: "printf 'anchor on en0 {\\n pass\\n}\\nanchor \"in\" { block }\\n' | pfctl -a acme -f - 2>/dev/null; pfctl -a acme -sr 2>/dev/null; pfctl -a acme/in -sr 2>/dev/null", stdout: "anchor on en0 all {\n  pass all flags S/SA keep state\n}\nanchor \"in\" all\nblock drop all\n"},
		{script: "pfctl -a acme -F all", stderr: altq + "rules cleared\nnat cleared\ndummynet cleared\n0 tables deleted.\n"},
		{script: "printf 'table <t> const { 10/8 !10.1.0.0/16 }\\nblock from <t>\\n' | pfctl -vnf -", stderr: warning + altq, stdout: "table <t> const { 10.0.0.0/8 !10.1.0.0/16 }\nblock drop from <t> to any\n"},
	})
}

func TestPfctlNeedsRoot(t *testing.T) {
	check(t, "m1", []row{
		{script: "pfctl -s info", stderr: "pfctl: /dev/pf: Permission denied\n", exit: 1},
		{script: "pfctl -nf /etc/pf.conf", stderr: "pfctl: /dev/pf: Permission denied\n", exit: 1},
	})
}

func TestPfctlReferences(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	status := func() string { return must(t, m, "root", "pfctl -s info 2>/dev/null | head -n 1 | cut -d ' ' -f 1,2") }
	tokens := func() []string {
		return strings.Fields(must(t, m, "root", "pfctl -s References 2>/dev/null | tail -n +3 | tr -s ' ' | cut -d ' ' -f 3"))
	}
	if status() != "Status: Enabled\n" || len(tokens()) != 1 {
		t.Errorf("a new Mac: %s %q", status(), tokens())
	}
	// Each call adds one.
	must(t, m, "root", "pfctl -E && pfctl -E")
	all := tokens()
	if len(all) != 3 {
		t.Fatalf("references: %q", all)
	}
	for i, token := range all {
		must(t, m, "root", "pfctl -X "+token)
		equal(t, status() == "Status: Enabled\n", i < 2, "after", i+1, "releases pf is enabled")
	}
	if _, _, exit := run(t, m, "root", "pfctl -X 1"); exit != 1 {
		t.Errorf("an unknown token: exit %d", exit)
	}
	must(t, m, "root", "pfctl -q -E; pfctl -E; pfctl -d")
	if status() != "Status: Disabled\n" || len(tokens()) != 0 {
		t.Errorf("after -d: %s %q", status(), tokens())
	}
	must(t, m, "root", "pfctl -e")
}

func TestTables(t *testing.T) {
	check(t, "root", []row{
		{script: "pfctl -t own -T add 10.0.0.0/8 10.0.0.0/8 192.0.2.1", stderr: altq + "1 table created.\n2/3 addresses added.\n"},
		{script: "printf '192.0.2.7 # a\\n192.0.2.8\\n' >/tmp/l; pfctl -q -t own -T add -f /tmp/l; pfctl -t own -T delete 192.0.2.1; pfctl -t own -T show 2>/dev/null", stderr: altq + altq + "1/1 address deleted.\n", stdout: "   10.0.0.0/8\n   192.0.2.7\n   192.0.2.8\n"},
		// A persistent table survives everything except -T kill in its own scope.
		{script: "pfctl -F Tables; pfctl -vsT 2>/dev/null; pfctl -t own -T show 2>/dev/null", stderr: altq + "2 tables deleted.\n", stdout: "-pa-r--\tfail2ban\n-pa----\town\n"},
		{script: "pfctl -a acme -t own -T kill; pfctl -vsT 2>/dev/null | grep -c own", stderr: altq + "0 tables deleted.\n", stdout: "1\n"},
		{script: "pfctl -t own -T kill; pfctl -sT 2>/dev/null", stderr: altq + "1 table deleted.\n", stdout: "fail2ban\n"},
		// Others are removed with the last rule that names them.
		{script: acme + "pfctl -q -a acme -f /etc/pf.anchors/acme 2>/dev/null; pfctl -a acme -vsT 2>/dev/null; pfctl -q -a acme -F rules 2>/dev/null; pfctl -a acme -sT 2>/dev/null; pfctl -sA 2>/dev/null | grep -c acme", stdout: "--a-r--\tvm\tacme\n0\n", exit: 1},
		{script: "pfctl -t own -T replace 1.2.3.4", stderr: altq + "pfctl: option not modelled: -T replace\n", exit: 64},
		{script: "pfctl -t own -T add acme.example", stderr: altq + "pfctl: no IP address found for acme.example\n", exit: 1},
	})
}

func TestResourceBusy(t *testing.T) {
	const busy = "/etc/pf.anchors/acme:1: cannot define table vm: Resource busy\n"
	t.Parallel()
	for name, c := range map[string]struct {
		before, then string
		busy         bool
	}{
		"once":                          {"block", "pfctl -f /etc/pf.conf", false},
		"again":                         {"block; pfctl -f /etc/pf.conf", "pfctl -f /etc/pf.conf", false},
		"only the anchor, again":        {"block; pfctl -f /etc/pf.conf", "pfctl -a acme -f /etc/pf.anchors/acme", false},
		"the block twice":               {"block; block", "pfctl -f /etc/pf.conf", true},
		"only read":                     {"block; block", "pfctl -nf /etc/pf.conf", true},
		"an older table of the anchor":  {"block; pfctl -a acme -t vm -T add 10.0.0.1", "pfctl -nf /etc/pf.conf", true},
		"an older table of all":         {"pfctl -t vm -T add 10.0.0.1", "pfctl -a acme -f /etc/pf.anchors/acme", true},
		"one of another anchor":         {"pfctl -a other -t vm -T add 10.0.0.1", "pfctl -a acme -f /etc/pf.anchors/acme", false},
		"the older table is flushed":    {"pfctl -t vm -T add 10.0.0.1; pfctl -F all", "pfctl -a acme -f /etc/pf.anchors/acme", true},
		"the older table is killed":     {"pfctl -t vm -T add 10.0.0.1; pfctl -t vm -T kill", "pfctl -a acme -f /etc/pf.anchors/acme", false},
		"persist in the file, a second": {"printf 'table <vm> persist\\nblock from <vm>\\n' >/etc/pf.anchors/acme; pfctl -a acme -f /etc/pf.anchors/acme", "pfctl -a acme -nf /etc/pf.anchors/acme", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			must(t, m, "root", acme+c.before)
			live := must(t, m, "root", "pfctl -sr; pfctl -sn; pfctl -vsT; pfctl -a acme -sr || true")
			_, stderr, exit := run(t, m, "root", c.then)
			if got := strings.Contains(stderr, busy+failed); got != c.busy || exit == 0 == c.busy {
				t.Errorf("exit %d, stderr %s", exit, stderr)
			}
			if after := must(t, m, "root", "pfctl -sr; pfctl -sn; pfctl -vsT; pfctl -a acme -sr || true"); c.busy && after != live {
				t.Errorf("after a failed load\n%s\nbefore\n%s", after, live)
			}
		})
	}
}

func TestPFSwitches(t *testing.T) {
	t.Parallel()
	set := func(name, value string) *Machine {
		m := newMachine(t)
		ok(t, m.SetSwitch(name, value))
		return m
	}
	m := set("full-load-busy", "yes")
	must(t, m, "root", acme+"block; pfctl -f /etc/pf.conf")
	if _, stderr, exit := run(t, m, "root", "pfctl -nf /etc/pf.conf"); exit != 1 || !strings.Contains(stderr, "Resource busy") {
		t.Errorf("a full load with the anchor's tables in use: exit %d, %s", exit, stderr)
	}
	must(t, m, "root", "pfctl -a acme -f /etc/pf.anchors/acme")

	m = set("table-contents", "kept")
	equal(t, must(t, m, "root", "pfctl -f /etc/pf.conf; pfctl -t fail2ban -T show"), "   198.51.100.23\n   203.0.113.77\n", "kept are")
	m = set("vm-network", "absent")
	if got := must(t, m, "root", "pfctl -sn; ifconfig -l; ifconfig bridge100 2>&1 || true"); got != "nat-anchor \"com.apple/*\" all\nrdr-anchor \"com.apple/*\" all\nlo0 en0\nifconfig: interface bridge100 does not exist\n" {
		t.Errorf("without virtual machines: %q", got)
	}
	m = set("vm-network", "present")
	if got := must(t, m, "root", "pfctl -sn; pfctl -s References | grep -c pfd"); strings.Count(got, vmnetAnchor) != 2 || !strings.HasSuffix(got, "\n1\n") {
		t.Errorf("with virtual machines since the boot: %q", got)
	}
	ok(t, m.SetSwitch("vm-subnet", "192.168.2.1/24"))
	equal(t, must(t, m, "m1", "ifconfig bridge100 | grep 'inet '"), "\tinet 192.168.2.1 netmask 0xffffff00 broadcast 192.168.2.255\n", "the bridge")
	m = set("pf-after-boot", "disabled")
	must(t, m, "root", acme+"block; pfctl -a lost -t x -T add 10.0.0.1")
	ok(t, m.LoadFilterAtBoot())
	if got := must(t, m, "root", "pfctl -s info | head -n 1 | cut -c 1-16; pfctl -sA; pfctl -t fail2ban -T show; pfctl -a acme -sr"); got != "Status: Disabled\n  acme\n  com.apple\n   198.51.100.23\n   203.0.113.77\nblock drop out quick inet from <vm> to 10.0.0.0/8\n" {
		t.Errorf("after a boot: %q", got)
	}
	must(t, m, "root", "echo nonsense >>/etc/pf.conf")
	ok(t, m.LoadFilterAtBoot())
	equal(t, must(t, m, "root", "pfctl -sr; pfctl -sA"), "", "after a boot with a broken file")
}

// TestRulesEditedByHand: the kernel's rules are a file of the sandbox, which a person may edit.
func TestRulesEditedByHand(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	must(t, m, "root", "pfctl -E")
	for _, c := range []struct {
		text string
		exit int
	}{
		{`{"enabled": true, "rulesets": {"x": null, "y": {"tables": {"t": null}}}}`, 0},
		{`{"rulesets": {}}`, 0},
		{`{}`, 0},
		{`[`, 1},
	} {
		ok(t, os.WriteFile(filepath.Join(m.dir, string(inMemory("pf"))), []byte(c.text), 0o600))
		if _, stderr, exit := run(t, m, "root", "pfctl -sr && pfctl -vsA && pfctl -a y -vsT && pfctl -a x -F all && pfctl -nf /etc/pf.conf"); exit != c.exit {
			t.Errorf("%s: exit %d, %s", c.text, exit, stderr)
		}
	}
}
