package mac

import (
	"io/fs"
	"strings"
	"testing"
)

func permission(mode uint32) fs.FileMode { return fs.FileMode(mode) }

// withTart installs tart where a fleet has it and logs the user in at the screen.
func withTart(h *kubeletHost) {
	h.Helper()
	h.write("/usr/local/lib/tart.app/Contents/MacOS/tart", "program=tart\nversion=2.32.1\n", 0, 0o755)
	h.write("/usr/local/lib/tart.app/Contents/Info.plist", "x", 0, 0o644)
	h.write("/usr/local/lib/tart.app/Contents/embedded.provisionprofile", "x", 0, 0o644)
	h.write("/usr/local/lib/tart.app/Contents/_CodeSignature/CodeResources", "x", 0, 0o644)
	h.write("/usr/local/bin/tart", "#!/bin/sh\nexec /usr/local/lib/tart.app/Contents/MacOS/tart \"$@\"\n", 0, 0o755)
	ok(h, h.LogIn())
}

func (h *kubeletHost) tart(args string) string {
	h.Helper()
	return strings.TrimSpace(must(h, h.Machine, "m1", "/usr/local/bin/tart "+args))
}

func TestTart(t *testing.T) {
	t.Parallel()
	h := &kubeletHost{T: t, Machine: newMachine(t)}
	withTart(h)
	const tart = "/usr/local/bin/tart "
	for _, c := range []row{
		{script: tart + "--version", stdout: "2.32.1\n"},
		{script: tart + "list", stdout: "\n"},
		{script: tart + "list --format json", stdout: "[]\n"},
		{script: tart + "stop x", stderr: "the specified VM \"x\" does not exist\n", exit: 2},
		{script: tart + "clone ghcr.io/acme/base:latest a && " + tart + "clone a b && " + tart + "list --quiet --source local && " + tart + "list -q --source oci",
			stdout: "a\nb\nghcr.io/acme/base:latest\n"},
		{script: tart + "stop a", stderr: "VM \"a\" is not running\n", exit: 2},
		{script: tart + "ip a", stderr: "no IP address found, is your VM running?\n", exit: 1},
		{script: tart + "set a --cpu 6 --memory 4096 && grep -c '\"cpuCount\": 6' ~/.tart/vms/a/config.json", stdout: "1\n"},
		{script: tart + "delete b && " + tart + "list -q --source=local; " + tart + "delete b", stdout: "a\n", stderr: "the specified VM \"b\" does not exist\n", exit: 2},
		{script: tart + "push a registry.acme.dev/a:1"},
		{script: tart + "run a --frob", stderr: "Error: Unknown option '--frob'\n", exit: 64},
		{script: "sudo /usr/local/bin/tart list -q --source local; HOME=/tmp " + tart + "list -q --source local", stdout: "a\n"},
		{script: "cp /usr/local/lib/tart.app/Contents/MacOS/tart /tmp/tart; /tmp/tart --version", stdout: "2.32.1\n"},
	} {
		stdout, stderr, exit := run(t, h.Machine, "m1", c.script)
		equal(t, row{c.script, stdout, stderr, exit}, c)
	}
	h.root("mkdir /tmp/kept; cp -p /usr/local/lib/tart.app/Contents/MacOS/tart /tmp/kept/tart; codesign -f -s - /usr/local/lib/tart.app")
	if _, stderr, exit := run(t, h.Machine, "m1", tart+"run a"); exit != 1 || !strings.Contains(stderr, "entitlement") {
		t.Errorf("signed again: %d, %s", exit, stderr)
	}
	if _, stderr, exit := run(t, h.Machine, "m1", "/tmp/tart run a"); exit != 1 || !strings.Contains(stderr, "VZErrorDomain") {
		t.Errorf("outside its bundle: %d, %s", exit, stderr)
	}
}

func TestGuests(t *testing.T) {
	t.Parallel()
	h := &kubeletHost{T: t, Machine: newMachine(t)}
	withTart(h)
	for _, name := range []string{"a", "b"} {
		ok(t, h.StartVM(name))
	}
	if err := h.StartVM("c"); err == nil || !strings.Contains(err.Error(), "The number of VMs exceeds the system limit (other running VMs: a, b)") {
		t.Errorf("a third one: %v", err)
	}
	equal(t, h.root("pgrep -f 'tart run a($| )' | wc -l | tr -d ' '"), "1", "pgrep finds")
	must(t, h.Machine, "m1", "/usr/local/bin/tart stop a && /usr/local/bin/tart delete a c && /usr/local/bin/tart ip b")
	if got := must(t, h.Machine, "m1", "/usr/local/bin/tart list --format json"); !strings.Contains(got, `"State" : "running"`) || strings.Contains(got, `"Name" : "a"`) {
		t.Errorf("list %s", got)
	}
	if _, stderr, exit := run(t, h.Machine, "m1", "/usr/local/bin/tart delete b"); exit != 1 || stderr != "VM \"b\" is running\n" {
		t.Errorf("deletion of a running one: %d %s", exit, stderr)
	}
	ok(t, h.LogOut())
	all, err := h.VMs()
	if err != nil || len(all) != 1 || all[0].Running {
		t.Errorf("after the session's end: %+v, %v", all, err)
	}
	if _, stderr, exit := run(t, h.Machine, "m1", "/usr/local/bin/tart run b --no-graphics"); exit != 1 || !strings.Contains(stderr, "VZErrorDomain Code=-9") {
		t.Errorf("without a session: %d %s", exit, stderr)
	}
}
