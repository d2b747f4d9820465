package sandbox_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	applesilicon "github.com/scaleway/scaleway-sdk-go/api/applesilicon/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"

	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// reported returns what the provider reports of the host's password in a request for that server.
func (p *patient) reported() (sudo, vnc string) {
	p.Helper()
	server, err := scaleway(p.T, p.world).GetServer(&applesilicon.GetServerRequest{Zone: scw.Zone(p.host.Zone), ServerID: p.host.ID})
	must(p, err)
	return server.SudoPassword, server.VncURL
}

// sudo reports whether the login user becomes root: without a password if none is given.
func (p *patient) sudo(password string) bool {
	p.Helper()
	script := "sudo -n true"
	if password != "" {
		script = "sudo -k -S -p '' true <<'EOF'\n" + password + "\nEOF"
	}
	result, err := p.machine.Run(p.Context(), "m1", script)
	must(p, err)
	return result.Exit == 0
}

func (p *patient) is(what string, got, want bool) {
	p.Helper()
	equal(p, got, want, what)
}

func (p *patient) screen(what string, want mac.Screen) {
	p.Helper()
	got, err := p.machine.Screen()
	must(p, err)
	if d := cmp.Diff(want, got); d != "" {
		p.Errorf("the screen, %s: -want +got:\n%s", what, d)
	}
}

const passFile = "/etc/sudoers.d/m1-nopasswd"

func TestWrongPassword(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	password, _ := p.reported()
	p.is("sudo before", p.sudo(""), true)
	p.inject("wrong-password")
	still, _ := p.reported()
	p.want("what the provider reports", still, password)
	p.is("sudo without a password", p.sudo(""), false)
	p.is("sudo with the provider's password", p.sudo(password), false)
	now, err := p.machine.Password()
	must(t, err)
	p.is("sudo with the Mac's password", p.sudo(now), true)
	p.heal("wrong-password")
	p.is("sudo after healing", p.sudo(""), true)
	p.run("rm " + passFile)
	p.is("sudo with the old password", p.sudo(password), true)

	// Repaired: another file gives the user passwordless sudo, and stays. The password is still wrong.
	p.inject("wrong-password")
	p.run("echo 'm1 ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/acme && chmod 440 /etc/sudoers.d/acme")
	p.heal("wrong-password")
	p.want("files after a repair", p.run("ls /etc/sudoers.d"), "acme")
	p.want("the file", p.run("cat /etc/sudoers.d/acme"), "m1 ALL=(ALL) NOPASSWD: ALL")
}

func TestDisclosure(t *testing.T) {
	t.Parallel()
	for incident, want := range map[string]func(address string) (sudo, vnc string){
		"password-not-disclosed": func(address string) (string, string) { return "", "vnc://m1@" + address + ":59010" },
		"sealed-in-get":          func(string) (string, string) { return "<sealed>", "<sealed>" },
	} {
		p := newPatient(t)
		password, vnc := p.reported()
		if password == "" || vnc != "vnc://m1:"+password+"@"+p.host.Address+":59010" {
			t.Fatalf("reported before: %q %q", password, vnc)
		}
		p.inject(incident)
		wantSudo, wantVNC := want(p.host.Address)
		gotSudo, gotVNC := p.reported()
		p.want("reported password", gotSudo, wantSudo)
		p.want("reported VNC address", gotVNC, wantVNC)
		p.is("sudo without a password", p.sudo(""), false)
		p.is("sudo with the password", p.sudo(password), true)
		p.heal(incident)
		gotSudo, gotVNC = p.reported()
		p.want("reported password after healing", gotSudo, password)
		p.want("reported VNC address after healing", gotVNC, vnc)
		p.is("sudo after healing", p.sudo(""), true)
	}
}

func TestSudoLocked(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	password, _ := p.reported()
	p.inject("sudo-locked")
	p.is("sudo without a password", p.sudo(""), true)
	p.run("mv " + passFile + " /tmp")
	p.is("sudo with the right password", p.sudo(password), false)
	p.heal("sudo-locked")
	p.is("sudo after healing", p.sudo(password), true)
	p.inject("sudo-locked")
	p.run("dscl . -delete /Users/m1 AuthenticationAuthority ';tally;'")
	p.inject("sudo-locked") // repaired, so it comes back
	p.is("sudo with the right password", p.sudo(password), false)
}

func TestSudoersBroken(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	before := p.run("cat " + passFile)
	p.inject("sudoers-broken")
	p.is("sudo", p.sudo(""), false)
	p.is("the policy has a fault", strings.Contains(p.run("visudo -c 2>&1 || true"), "syntax error"), true)
	p.heal("sudoers-broken")
	p.want("the file after healing", p.run("cat "+passFile+"; stat -f %Lp "+passFile), before+"\n440")
	p.is("sudo after healing", p.sudo(""), true)

	p.inject("sudoers-broken")
	p.run("echo 'm1 ALL=(ALL) NOPASSWD: ALL' >" + passFile)
	p.heal("sudoers-broken")
	p.want("the file after a repair", p.run("cat "+passFile), "m1 ALL=(ALL) NOPASSWD: ALL")

	p.run("rm " + passFile)
	p.inject("sudoers-broken")
	p.is("a broken file where there was none", strings.Contains(p.run("visudo -c 2>&1 || true"), "syntax error"), true)
	p.heal("sudoers-broken")
	p.want("files after healing", p.run("ls /etc/sudoers.d"), "")
}

// TestScreenIncidents injects each incident into a new Mac, into a healthy one, and into one that is
// repaired before it is healed.
func TestScreenIncidents(t *testing.T) {
	t.Parallel()
	fresh := mac.Screen{Loginwindow: true}
	well := mac.Screen{User: "m1", Loginwindow: true, AutoLogin: true}
	for incident, want := range map[string]mac.Screen{
		"sealed-kcpassword":   {Loginwindow: true, Sealed: true},
		"sealed-with-session": {User: "m1", Loginwindow: true, Sealed: true},
		"dead-loginwindow":    {AutoLogin: true},
		"no-gui-session":      {Loginwindow: true, AutoLogin: true},
	} {
		t.Run(incident, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			p.screen("fresh", fresh)
			p.inject(incident)
			p.screen("injected", want)
			p.want("the user", p.run("defaults read /Library/Preferences/com.apple.loginwindow autoLoginUser"), "m1")
			p.heal(incident)
			p.screen("healed", fresh)
			must(t, p.machine.SetAutoLogin())
			must(t, p.machine.RestartLoginwindow())
			p.screen("set up", well)
			p.inject(incident)
			p.screen("injected again", want)
			p.heal(incident)
			p.screen("healed again", well)

			p.inject(incident)
			must(t, p.machine.SetAutoLogin())
			must(t, p.machine.RestartLoginwindow())
			p.screen("repaired", well)
			p.heal(incident)
			p.screen("healed after a repair", well)
		})
	}
}

func TestFileVaultOn(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.inject("filevault-on")
	p.want("state", p.run("fdesetup status"), "FileVault is On.")
	p.heal("filevault-on")
	p.want("state after healing", p.run("fdesetup status"), "FileVault is Off.")
}

// TestPasswordlessSudo creates worlds with delivered Macs, and with prepared ones.
func TestPasswordlessSudo(t *testing.T) {
	t.Parallel()
	for _, prepared := range []bool{false, true} {
		s := seed(2)
		s.PasswordlessSudo = prepared
		dir := t.TempDir() + "/sandbox"
		h := hosts(t, open(t, dir, s))[1]
		machine, err := mac.Open(dir + "/macs/" + h.ID)
		must(t, err)
		result, err := machine.Run(t.Context(), "m1", "sudo -n true")
		if err != nil || (result.Exit == 0) != prepared {
			t.Errorf("prepared %t: sudo -n: %+v %v", prepared, result, err)
		}
	}
}

func TestSwitches(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	all, err := p.world.Switches(p.host.Name)
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	if d := cmp.Diff(sandbox.Switches(), all); d != "" {
		t.Errorf("a new Mac's switches:\n%s", d)
	}
	first := all[0]
	must(t, p.world.SetSwitch(p.host.Name, first.Name, first.Values[1]))
	if all, err = p.world.Switches(p.host.ID); err != nil || all[0].Value != first.Values[1] {
		t.Errorf("%+v, %v", all[0], err)
	}
	for _, c := range [][3]string{{"nobody", first.Name, first.Value}, {p.host.Name, "x" + first.Name, first.Value}, {p.host.Name, first.Name, "perhaps"}} {
		if err := p.world.SetSwitch(c[0], c[1], c[2]); err == nil {
			t.Errorf("%q was set", c)
		}
	}
}
