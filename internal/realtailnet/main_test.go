package realtailnet

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/macfleet/macfleet/internal/maintest"
	"github.com/macfleet/macfleet/internal/scripttest"
)

// inside is set in the environment of the process that runs the tests in the network namespace.
const inside = "MACFLEET_TEST_TAILNET"

// TestMain runs the tests in a new network namespace: the same program again, with the same arguments.
func TestMain(m *testing.M) {
	maintest.DefaultSignals()
	flag.Parse()
	if os.Getenv(inside) == "" {
		os.Exit(again())
	}
	// The tests wait most of the time.
	if atOnce := flag.Lookup("test.parallel"); atOnce.Value.String() == atOnce.DefValue {
		_ = atOnce.Value.Set("16") // a number is valid
	}
	os.Exit(run(m))
}

// again runs this program in a network namespace and returns its exit code.
func again() int {
	runtime.LockOSThread() // the child gets Pdeathsig when this thread ends
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inside+"=yes")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode()
	case err == nil:
		return 0
	}
	fmt.Fprintf(os.Stderr, "no network namespace: %v\n", err)
	if os.Getenv("CI") != "" {
		return 1
	}
	return 0 // as a test that is skipped
}

// onPath is a folder on the PATH, where the test of the operator's own device puts its tailscale.
var onPath string

// run runs the tests in their network, and stops the shared control server after them.
func run(m *testing.M) int {
	remove := maintest.InMemory()
	defer remove()
	if err := network(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var err error
	if onPath, err = os.MkdirTemp("", "path-"); err == nil {
		err = os.Setenv("PATH", onPath+":"+os.Getenv("PATH"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if shared.server != nil {
		shared.server.stop()
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// hostAddress is this namespace's address. tailscaled needs one that is not the loopback's, and a default route, before it
// thinks that there is a network.
const hostAddress = "10.99.0.1"

// network gives the namespace its interfaces: the loopback, and one without a peer.
func network() error {
	for _, command := range []string{
		"link set lo up",
		"link add tn0 type veth peer name tn1",
		"addr add " + hostAddress + "/24 dev tn0",
		"link set tn0 up",
		"link set tn1 up",
		"route add default via 10.99.0.2",
	} {
		if out, err := exec.Command("ip", strings.Fields(command)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", command, err, out)
		}
	}
	return nil
}

// program returns the path of a program that .ci/tailnet built from the module in a folder. Where it is missing the
// test is skipped, and fails in CI.
func program(t testing.TB, name, folder, module string) string {
	t.Helper()
	mod, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	must(t, err)
	found := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(module) + ` (v\S+)`).FindSubmatch(mod)
	if found == nil {
		t.Fatalf("%s/go.mod does not require %s", folder, module)
	}
	home, err := os.UserHomeDir()
	must(t, err)
	path := filepath.Join(cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache")), "macfleet-test", name+"-"+string(found[1]))
	if _, err := os.Stat(path); err != nil {
		scripttest.Lacking(t, "no %s: run `make tailnet`", filepath.Base(path))
	}
	return path
}

func tailscale(t testing.TB) string  { return program(t, "tailscale", "tailscale", "tailscale.com") }
func tailscaled(t testing.TB) string { return program(t, "tailscaled", "tailscale", "tailscale.com") }
func headscale(t testing.TB) string {
	return program(t, "headscale", "headscale", "github.com/juanfont/headscale")
}
func exporter(t testing.TB) string {
	return program(t, "node_exporter", "exporter", "github.com/prometheus/node_exporter")
}

// must ends a test at the first error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
