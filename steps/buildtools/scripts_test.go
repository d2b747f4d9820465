package buildtools_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// change returns a command of the step on a new Mac.
func change(t *testing.T, name string) plan.Command {
	t.Helper()
	for _, c := range find(t, fleet.Spec{BuildTools: stepstest.BuildTools()}, stepstest.FactoryTools(), false).Changes {
		if c.Command.Name == "build_tools-"+name {
			return c.Command
		}
	}
	t.Fatalf("no change %s", name)
	return plan.Command{}
}

func newMac(t *testing.T, shell []string) *scripttest.Mac {
	t.Helper()
	m := scripttest.New(t, shell, "/usr/local", "/etc/", "/opt", "/Users")
	m.Folders("/usr/local/lib/macfleet", "/etc")
	m.Tool("chown", `echo "$*" >>"$STATE/chown"`)
	m.Tool("sync", "exit 0")
	m.Tool("codesign", `[ ! -e "$STATE/damaged" ]`)
	m.Tool("shasum", `[ "$1" = -a ] && shift 2; exec sha256sum "$@"`)
	m.Tool("stat", `echo 1 2 3`)
	return m
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// TestFiles: macfleet's lines are written once and replaced; those of others stay. Removed, nothing of macfleet is left.
func TestFiles(t *testing.T) {
	t.Parallel()
	scripttest.InShells(t, func(t *testing.T, shell []string) {
		for _, before := range []string{"no file", "export A=1\n", "export A=1", "export A=1\n# BEGIN macfleet\nexport OLD='x'\n# END macfleet\nexport B=2\n"} {
			m := newMac(t, shell)
			if before != "no file" {
				m.Put("/etc/zshenv", before)
			}
			c := change(t, "files")
			c.Args[1] = m.Here(c.Args[1])
			for range 2 {
				m.Done(c, "")
			}
			got := m.Read("/etc/zshenv")
			if strings.Count(got, "# BEGIN macfleet") != 1 || strings.Contains(got, "OLD") || !strings.Contains(got, "export ACME_BUILD_ROOT='/opt/build-cache'\n# END macfleet\n") {
				t.Errorf("after %q the file is %q", before, got)
			}
			others := strings.NewReplacer("# BEGIN macfleet\nexport OLD='x'\n# END macfleet\n", "").Replace(before)
			if before != "no file" && !strings.HasPrefix(got, strings.TrimSuffix(others, "\n")+"\n") {
				t.Errorf("others' lines of %q are not in %q", before, got)
			}
			if chowned := m.Get("chown"); !strings.Contains(chowned, "m1:staff "+m.Path("/opt/build-cache")) {
				t.Errorf("the folder's owner was not set: %q", chowned)
			}
			m.Done(find(t, fleet.Spec{}, stepstest.SettledTools(), false).Changes[0].Command, "")
			left := m.Read("/etc/zshenv")
			if before == "no file" && left != "no file" || before != "no file" && strings.TrimSuffix(left, "\n") != strings.TrimSuffix(others, "\n") {
				t.Errorf("of %q is left %q", before, left)
			}
			if m.Read("/usr/local/lib/macfleet/build_tools.receipt") != "no file" {
				t.Error("the receipt is left")
			}
		}
	})
}

// TestPacker: what is delivered is checked before it takes the place of the program that runs.
func TestPacker(t *testing.T) {
	t.Parallel()
	scripttest.InShells(t, func(t *testing.T, shell []string) {
		const program, old = "#!/bin/sh\n[ \"$1\" = version ]\n", "the running one"
		m := newMac(t, shell)
		m.Tool("unzip", `[ "$1" = -q ] && cp "$STATE/unpacked" "$4/packer"`)
		m.Set("unpacked", program)
		m.Put("/usr/local/archive", "the archive")
		scripttest.Write(t, m.Path("/usr/local/bin/packer"), old, 0o755)
		c := change(t, "packer")
		c.Args[0] = m.Path("/usr/local/archive")
		fails := func(what, want string) {
			t.Helper()
			if m.Fails(c, "", want); m.Read("/usr/local/bin/packer") != old {
				t.Errorf("%s: packer is %q", what, m.Read("/usr/local/bin/packer"))
			}
		}
		fails("another archive", "checksum mismatch")
		c.Args[1] = digest("the archive")
		m.Set("damaged", "")
		fails("a damaged signature", "signature")
		m.Unset("damaged")
		m.Set("unpacked", "#!/bin/sh\nexit 1\n")
		fails("a program that does not run", "does not run")
		m.Set("unpacked", program)
		if m.Done(c, ""); m.Read("/usr/local/bin/packer") != program {
			t.Errorf("packer is %q", m.Read("/usr/local/bin/packer"))
		}
		if got := m.Read("/usr/local/lib/macfleet/build_tools.receipt"); !strings.Contains(got, "current "+c.Args[1]+" 1.15.4\n") {
			t.Errorf("the receipt is %q", got)
		}
		for name := range m.Files(m.Path("/usr/local/lib/macfleet")) {
			if strings.Contains(name, ".new.") {
				t.Errorf("%s is left", name)
			}
		}
	})
}

// TestFormulae: a formula is installed when it is missing, trusted and pinned, and never upgraded; the second run does nothing.
func TestFormulae(t *testing.T) {
	t.Parallel()
	const brew = `#!/bin/sh
[ -n "$HOMEBREW_NO_ASK$HOMEBREW_NO_INSTALL_UPGRADE$HOMEBREW_NO_INSTALLED_DEPENDENTS_CHECK" ] || exit 9
echo "$*" >>"$STATE/brew"
name=${3##*/}
case $1 in
install) mkdir -p "$BREW/Cellar/$name/1.0" ;;
pin) ln -s x "$BREW/var/homebrew/pinned/$2" ;;
trust) [ ! -e "$STATE/refuses" ] || exit 1; printf '"%s"\n' "$3" >"$TRUST" ;;
esac
`
	scripttest.InShells(t, func(t *testing.T, shell []string) {
		for _, trusts := range []bool{true, false} {
			m := newMac(t, shell)
			m.Folders("/opt/homebrew/bin", "/opt/homebrew/Cellar/git-lfs/0.9", "/opt/homebrew/var/homebrew/pinned", "/opt/homebrew/Library/Homebrew/cmd", "/Users/m1/.homebrew")
			text := strings.NewReplacer("$STATE", m.State, "$BREW", m.Path("/opt/homebrew"), "$TRUST", m.Path("/Users/m1/.homebrew/trust.json")).Replace(brew)
			scripttest.Write(t, m.Path("/opt/homebrew/bin/brew"), text, 0o755)
			m.Tool("sudo", `[ "$1 $2 $3" = "-H -u m1" ] && shift 3 && exec "$@"`)
			if trusts {
				m.Put("/opt/homebrew/Library/Homebrew/cmd/trust.rb", "")
			}
			c := findAll(t, fleet.Spec{BuildTools: stepstest.BuildTools()}, stepstest.SettledTools(), stepstest.Homebrew{Trusts: true}, false).Changes[0].Command
			if trusts {
				m.Set("refuses", "")
				if m.Fails(c, "", ""); m.Read("/usr/local/lib/macfleet/homebrew.receipt") != "no file" {
					t.Error("brew failed, and there is a receipt")
				}
				m.Unset("refuses")
				m.Set("brew", "pin git-lfs\ninstall --formula acme/tap/crane\n") // the failed run has done these
			}
			for range 2 {
				m.Done(c, "")
			}
			want := "pin git-lfs\ninstall --formula acme/tap/crane\ntrust --formula acme/tap/crane\npin crane"
			if !trusts {
				want = strings.Replace(want, "trust --formula acme/tap/crane\n", "", 1)
			}
			stepstest.Expect(t, "commands of brew", want, m.Get("brew"))
			stepstest.Expect(t, "the receipt", "git-lfs 0.9\ncrane 1.0\n", m.Read("/usr/local/lib/macfleet/homebrew.receipt"))
		}
	})
}

// TestHomebrewInstaller: the installer runs as the login user, its digest is checked first, and the selection of Xcode is as before.
func TestHomebrewInstaller(t *testing.T) {
	t.Parallel()
	scripttest.InShells(t, func(t *testing.T, shell []string) {
		m := newMac(t, shell)
		m.Folders("/opt/homebrew/bin")
		m.Tool("xcode-select", `case $1 in -p) echo /Tools ;; *) echo "$2" >>"$STATE/selected" ;; esac`)
		m.Tool("sudo", `[ "$1 $2 $3" = "-H -u m1" ] && shift 3 && exec "$@"`)
		installer := `[ -n "$NONINTERACTIVE" ] || exit 1
[ ! -e "` + m.State + `/fails" ] || exit 3
printf '#!/bin/sh\n' >` + m.Path("/opt/homebrew/bin/brew") + `; chmod 755 ` + m.Path("/opt/homebrew/bin/brew") + "\n"
		m.Put("/usr/local/installer", installer)
		c := findAll(t, fleet.Spec{BuildTools: stepstest.BuildTools()}, stepstest.SettledTools(), stepstest.Homebrew{Missing: true}, false).Changes[0].Command
		c.Args[0] = m.Path("/usr/local/installer")
		if m.Fails(c, "", "checksum mismatch"); m.Get("selected") != "" {
			t.Error("another installer was started")
		}
		c.Args[1] = digest(installer)
		m.Set("fails", "")
		m.Fails(c, "", "exit code 3")
		m.Unset("fails")
		m.Done(c, "")
		const xcode = "/Applications/Xcode.app/Contents/Developer"
		stepstest.Expect(t, "selected", xcode+"\n"+xcode, m.Get("selected"))
	})
}
