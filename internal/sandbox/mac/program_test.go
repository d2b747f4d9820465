package mac

import "testing"

// TestStockPrograms: a program that nothing on the disk can come before is found without reading the
// disk, and all others are not.
func TestStockPrograms(t *testing.T) {
	t.Parallel()
	const usual = "/usr/bin:/bin:/usr/sbin:/sbin"
	for _, tc := range []struct {
		name, before string // before is run first
		path, unset  string
		want         bool
	}{
		{name: "sw_vers", path: usual, want: true},
		{name: "pfctl", path: usual, want: true},
		{name: "/bin/sh", path: "/nowhere", want: true},
		{name: "sw_vers", unset: "PATH", want: true},
		{name: "/usr/bin/sh", path: usual},
		{name: "bin/sh", path: usual},
		{name: "acme", path: usual},
		{name: "umask", path: usual},
		{name: "pfctl", path: "/usr/bin:/bin"},
		{name: "sw_vers", path: ":" + usual},
		{name: "sw_vers", path: "bin:" + usual},
		{name: "sw_vers", path: "/tmp:" + usual},
		{name: "sw_vers", path: "/usr/local/bin:" + usual, want: true},
		{name: "sw_vers", path: "/usr/local/bin:" + usual, before: "mkdir -p /usr/local/bin && touch /usr/local/bin/acme"},
		{name: "sw_vers", path: usual, before: "touch /usr/local/bin/acme", want: true},
		{name: "sw_vers", path: usual, before: "touch /usr/bin/acme"},
		{name: "/usr/bin/sw_vers", path: usual, before: "touch /usr/bin/acme"},
	} {
		m := newMachine(t)
		if tc.before != "" {
			must(t, m, "root", tc.before)
		}
		s, err := m.session()
		ok(t, err)
		env := map[string]string{"PATH": tc.path}
		delete(env, tc.unset)
		p := &proc{session: s, user: s.users()[0], dir: "/", env: env}
		found, ok := p.stock(tc.name)
		if ok != tc.want || ok && found.path() == "" {
			t.Errorf("%s along %q after %q: found %t, %q", tc.name, tc.path, tc.before, ok, found.path())
		}
		if looked, err := p.look(tc.name); ok && (err != nil || looked.path() != found.path()) {
			t.Errorf("%s: %q, %v", tc.name, looked.path(), err)
		}
		s.close()
	}
}

// TestAFileBeforeAProgram: a person's file in an earlier folder of PATH is what runs.
func TestAFileBeforeAProgram(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	was := must(t, m, "root", "sw_vers -productVersion")
	for _, path := range []string{"/usr/bin/sw_vers", "/opt/bin/sw_vers"} {
		ok(t, m.WriteFile(path, []byte("#!/bin/sh\necho "+path+"\n"), 0, 0, 0o755))
		equal(t, must(t, m, "root", "PATH=/opt/bin:$PATH; sw_vers -productVersion"), path+"\n", path, "exists, but ran (before", was)
	}
}

// TestFoldersThatAreMade: a folder that a command finds missing exists once the command has created
// it.
func TestFoldersThatAreMade(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	if out := must(t, m, "root", "mkdir -p /usr/local/bin/deep/er && ls /usr/local/bin && cp /etc/pf.conf /usr/local/bin/acme && ls /usr/local/bin"); out != "deep\nacme\ndeep\n" {
		t.Errorf("%q", out)
	}
}
