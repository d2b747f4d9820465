package nodeexporter_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// TestTheWrapperServesInTheTailnetOnly: the program starts with the tailnet address or does not start. tailscale ip also prints
// the address of a host whose node key has expired, so the wrapper waits for the daemon first.
func TestTheWrapperServesInTheTailnetOnly(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ wait, ip, want string }{
		"joined":                {"0", "echo 100.64.0.7", "--web.listen-address=100.64.0.7:9100"},
		"the last address":      {"0", "echo 100.127.255.254", "--web.listen-address=100.127.255.254:9100"},
		"an expired node key":   {"1", "echo 100.64.0.7", ""},
		"no daemon":             {"1", "exit 1", ""},
		"no address":            {"0", "exit 1", ""},
		"an empty address":      {"0", ":", ""},
		"a public address":      {"0", "echo 192.0.2.10", ""},
		"just below":            {"0", "echo 100.63.255.255", ""},
		"just above":            {"0", "echo 100.128.0.1", ""},
		"every address":         {"0", "echo 0.0.0.0", ""},
		"a truncated address":   {"0", "echo 100", ""},
		"an address and a port": {"0", "echo 1100.64.0.7", ""},
	} {
		scripttest.InShells(t, func(t *testing.T, shell []string) {
			m := scripttest.New(t, shell, "/usr/local")
			scripttest.Write(t, m.Path("/usr/local/bin/tailscale"), "#!/bin/sh\ncase $1 in wait) exit "+tc.wait+" ;; ip) "+tc.ip+" ;; esac\n", 0o755)
			scripttest.Write(t, m.Path("/usr/local/bin/node_exporter"), "#!/bin/sh\nprintf '%s\\n' \"$@\" >\"$STATE/arguments\"\n", 0o755)
			a := m.Run(plan.Command{Name: "wrapper", Script: newScene().Wrapper}, "")
			got := m.Kept("arguments")
			switch {
			case tc.want == "" && (a.Exit == 0 || got != "no file"):
				t.Errorf("%s: exit code %d, the program got %q", name, a.Exit, got)
			case tc.want != "" && (a.Exit != 0 || !strings.HasPrefix(got, tc.want+"\n--collector.disable-defaults\n") || strings.Count(got, "--web.listen-address") != 1):
				t.Errorf("%s: exit code %d, %s, the program got %q", name, a.Exit, a.Stderr, got)
			}
		})
	}
}

// program stands for the vendor's: --version ends it at once where it is read before an unknown flag, as in the real one.
const program = `#!/bin/sh
for one in "$@"; do
  case $one in
    --version) echo "node_exporter, version 1.12.1"; exit 0 ;;
    --collector.disable-defaults | --collector.cpu) ;;
    *) echo "node_exporter: error: unknown long flag '$one', try --help" >&2; exit 1 ;;
  esac
done
exit 1
`

// newMac has the vendor's archive, which is delivered, and returns its digest.
func newMac(t *testing.T, shell []string) (*scripttest.Mac, string) {
	t.Helper()
	m := scripttest.New(t, shell, "/usr/local", "/etc/macfleet", "/Library", "/var/log")
	m.Folders("/usr/local/lib/macfleet", "/Library/LaunchDaemons", "/var/log")
	for _, tool := range []string{"chown", "sync", "codesign"} {
		m.Tool(tool, "exit 0")
	}
	m.Tool("shasum", `[ "$1" = -a ] && shift 2; exec sha256sum "$@"`)
	m.Tool("stat", `while [ $# -gt 1 ]; do shift; done; echo 1 2 3`)
	scripttest.Write(t, m.Path("/tmp/node_exporter-1.12.1.darwin-arm64/node_exporter"), program, 0o755)
	return m, m.Archive("/tmp", "node_exporter-1.12.1.darwin-arm64")
}

// install is the installation with collectors.
func install(t *testing.T, m *scripttest.Mac, digest string, collectors ...string) plan.Command {
	t.Helper()
	s := newScene()
	s.ExporterMac = stepstest.ExporterMac{FreeKB: s.FreeKB}
	s.spec.NodeExporter.Artifact.SHA256, s.spec.NodeExporter.Collectors = digest, collectors
	c := s.find(t).Changes[0].Command
	c.Args[0] = m.Path("/usr/local/archive")
	return c
}

// TestInstall: what is delivered is checked before it takes the place of the program that runs.
func TestInstall(t *testing.T) {
	t.Parallel()
	scripttest.InShells(t, func(t *testing.T, shell []string) {
		const installed = "/usr/local/bin/node_exporter"
		m, digest := newMac(t, shell)
		scripttest.Write(t, m.Path(installed), "the running one", 0o755)
		m.Fails(install(t, m, digest, "cpu", "wifi"), "", "--collector.wifi")
		m.Fails(install(t, m, strings.Repeat("0", 64), "cpu"), "", "checksum mismatch")
		if m.Read(installed) != "the running one" || m.Read("/usr/local/lib/macfleet/node_exporter.receipt") != "no file" {
			t.Errorf("a failed installation has a receipt, or changed the program: %q", m.Read(installed))
		}
		if m.Done(install(t, m, digest, "cpu"), ""); m.Read(installed) != program {
			t.Fatalf("installed is %q", m.Read(installed))
		}
		if got := m.Read("/usr/local/lib/macfleet/node_exporter.receipt"); !strings.Contains(got, "current "+digest+" 1.12.1\n") {
			t.Errorf("the receipt is %q", got)
		}
		for name := range m.Files(m.Path("/usr/local/lib/macfleet")) {
			if strings.Contains(name, ".node_exporter.new.") {
				t.Errorf("%s is left", name)
			}
		}
	})
}

// TestAWrongFlagIsCaughtBeforeTheJobIsLoaded: a KeepAlive job with such a flag would start and end for ever.
func TestAWrongFlagIsCaughtBeforeTheJobIsLoaded(t *testing.T) {
	t.Parallel()
	scripttest.InShells(t, func(t *testing.T, shell []string) {
		m, _ := newMac(t, shell)
		m.Tool("launchctl", `echo "$*" >>"$STATE/launchctl"; exit 113`)
		scripttest.Write(t, m.Path("/usr/local/bin/node_exporter"), program, 0o755)
		s := newScene()
		s.spec.NodeExporter.Collectors = []string{"cpu", "wifi"}
		m.Fails(s.find(t).Changes[0].Command, "", "nothing was changed")
		if m.Kept("launchctl") != "no file" || m.Read(wrapper) != "no file" || m.Read(list) != "no file" {
			t.Errorf("launchctl got %q", m.Kept("launchctl"))
		}
	})
}

// TestRemovalLeavesNothing runs it on a host with everything, killed at each of its calls and then run again.
func TestRemovalLeavesNothing(t *testing.T) {
	t.Parallel()
	scripttest.InShells(t, func(t *testing.T, shell []string) {
		s := newScene()
		s.spec = s.spec.WithoutTailnet()
		c := s.find(t).Changes[0].Command
		ours := []string{"/usr/local/bin/node_exporter", wrapper, list, logFile, "/usr/local/lib/macfleet/node_exporter.receipt",
			"/usr/local/lib/macfleet/node_exporter.job", "/usr/local/lib/macfleet/.node_exporter.new.abc/x"}
		set := func() *scripttest.Mac {
			m := scripttest.New(t, shell, "/usr/local", "/etc/macfleet", "/Library", "/var/log")
			m.Stub(`case $name in
  launchctl) case $1 in bootout) rm -f "$STATE/loaded" ;; print) [ -e "$STATE/loaded" ] || exit 113 ;; esac ;;
  rm) /bin/rm "$@" ;;
esac`+scripttest.AfterCall, "launchctl", "rm", "sync", "chown", "codesign")
			m.Set("loaded", "")
			for _, path := range append([]string{"/usr/local/bin/tailscale"}, ours...) {
				m.Put(path, "x")
			}
			return m
		}
		m := set()
		m.Done(c, "")
		calls := m.Count()
		if calls < 5 {
			t.Fatalf("only %d calls:\n%s", calls, m.Calls())
		}
		for n := 0; n <= calls; n++ {
			m := set()
			m.KillAt(n)
			a := m.Run(c, "")
			if killed := a.Exit == -1; n > 0 && !killed {
				t.Errorf("call %d: exit code %d, %s", n, a.Exit, a.Stderr)
			}
			if m.Kept("loaded") != "no file" && m.Read("/usr/local/lib/macfleet/node_exporter.receipt") == "no file" {
				t.Errorf("killed at call %d: the job is loaded and the receipt is gone", n)
			}
			m.KillAt(0)
			m.Done(c, "")
			for _, path := range ours {
				if m.Read(path) != "no file" {
					t.Errorf("after a kill at call %d %s is left", n, path)
				}
			}
			if m.Kept("loaded") != "no file" || m.Read("/usr/local/bin/tailscale") != "x" {
				t.Errorf("after a kill at call %d: the job is loaded, or another step's program is gone", n)
			}
		}
	})
}

// TestRestart: macfleet restart restarts the job, with the program that it has.
func TestRestart(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.find(t)
	r, ok := stepstest.StepOf(t, step, s.view.Host).(interface{ Restart(plan.View) plan.Change })
	if !ok {
		t.Fatal("it cannot be restarted")
	}
	if c := r.Restart(s.view); c.Command.Name != "node_exporter-run" || c.Command.Args[3] != "ask" || len(c.Fields) == 0 {
		t.Errorf("the change is %+v", c)
	}
}
