package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/macfleet/macfleet/internal/app"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/tailnet"
)

// joining is a configuration of two hosts in a tailnet.
const joining = `
macfleet {
  required_version = ">= 0.1.0"
  name             = "acme"
}

scaleway {
  zones       = ["fr-par-1"]
  pool_prefix = "pool-"
}

ssh {
  user        = "m1"
  private_key = secret("env://ACME_FLEET_KEY")
}

artifact "tailscale" {
  version = "1.102.5"
  source  = "SOURCE"
  fetch   = "host"
  sha256  = "DIGEST"
}

tailnet {
  enabled = true
  auth    = secret("env://ACME_TAILNET")
  tags    = ["tag:macmini"]
}

defaults {
  os = "Tahoe"

  tailscale {
    artifact = artifact.tailscale
  }
}

fleet "runners" {
  group "m2" {
    type     = "M2-L"
    replicas = 2
  }
}
`

// planted matches the credentials of the simulated tailnet: the client's secret, its access tokens and the hosts' keys.
var planted = regexp.MustCompile(`tskey-[a-z]+-\w+-\w+`)

// TestFrozenControlServer stops macfleet by each signal while a host joins and the control server does not answer. When it answers
// again, the next apply converges: each host has one device, no key works any more, and no credential is in any output or file.
func TestFrozenControlServer(t *testing.T) {
	t.Parallel()
	const source = "https://artifacts.acme.dev/tailscale-1.102.5-darwin-arm64.tar.gz"
	sum := sha256.Sum256(sandbox.Sample(source))
	config := strings.NewReplacer("SOURCE", source, "DIGEST", hex.EncodeToString(sum[:])).Replace(joining)
	if !planted.MatchString(tailnet.Secret) {
		t.Fatal("the client's secret would not be found")
	}
	// The first signal waits for the join, the second one ends macfleet at once.
	for first, second := range map[syscall.Signal]syscall.Signal{syscall.SIGINT: syscall.SIGTERM, syscall.SIGTERM: syscall.SIGINT, syscall.SIGKILL: 0} {
		t.Run(first.String(), func(t *testing.T) {
			t.Parallel()
			var dir, world string
			var said strings.Builder
			run := func(args ...string) (int, string) {
				code, text := startedIn(t, nil, append([]string{"-C", dir, "--sandbox=" + world}, args...)...).end()
				said.WriteString(text)
				return code, text
			}
			var thaw func()
			for try := 0; ; try++ {
				dir = t.TempDir()
				must(t, os.WriteFile(filepath.Join(dir, "main.fleet.hcl"), []byte(config), 0o644))
				world = filepath.Join(dir, "world")
				p := startedIn(t, nil, "-C", dir, "--sandbox="+world, "apply", "--auto-approve", "--json", "--parallelism=1")
				p.until(`"type":"key_made"`)
				thaw = frozen(t, world)
				p.signal(first)
				if second != 0 {
					p.signal(second)
				}
				code, text := p.end()
				said.WriteString(text)
				state, err := os.ReadFile(filepath.Join(world, "tailscale", "state.json"))
				if err == nil && bytes.Contains(state, []byte(`"devices": null`)) {
					if second != 0 && code != app.ExitLeft {
						t.Errorf("exit %d:\n%s", code, text)
					}
					break
				}
				if thaw(); err != nil || try == 5 { // on a loaded machine the host may join before the server freezes
					t.Fatalf("the host has joined before the signal: %s, %v", state, err)
				}
			}
			thaw()

			run("show", "last")
			run("plan", "--json")
			if code, text := run("apply", "--auto-approve", "--verbose"); code != app.ExitDone {
				t.Errorf("exit %d:\n%s", code, text)
			}
			for _, args := range [][]string{{"plan", "--detailed-exitcode"}, {"drift", "--json"}, {"hosts", "-o", "json"}, {"show", "last", "--json"}} {
				if code, text := run(args...); code != app.ExitDone {
					t.Errorf("%v: exit %d:\n%s", args, code, text)
				}
			}
			joinedOnce(t, world, 2)
			equal(t, planted.FindString(said.String()), "", "an output has")
			err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() {
					return err
				}
				text, err := os.ReadFile(path)
				if found := planted.Find(text); found != nil {
					t.Errorf("%s has %s", path, found)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// frozen stops the control server of a world: it accepts requests and does not answer, until thaw.
func frozen(t *testing.T, world string) (thaw func()) {
	t.Helper()
	lock, err := os.OpenFile(filepath.Join(world, "tailscale", "lock"), os.O_RDWR, 0)
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	must(t, err)
	return func() { _ = lock.Close() } // which releases it
}

// joinedOnce fails unless n hosts have one device each, and no key works.
func joinedOnce(t *testing.T, world string, n int) {
	t.Helper()
	w, err := sandbox.Open(world, sandbox.Seed{})
	must(t, err)
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	all, err := w.Tailnet().Devices()
	must(t, err)
	names := map[string]bool{}
	for _, d := range all {
		if names[d.Name] = true; d.Name != d.HostName {
			t.Errorf("the device %s is called %s", d.HostName, d.Name)
		}
	}
	if len(all) != n || len(names) != n {
		t.Errorf("%d hosts have %d devices: %+v", n, len(all), all)
	}
	if keys, err := w.Tailnet().Keys(); err != nil || len(keys) > 0 {
		t.Errorf("keys that still work: %+v, %v", keys, err)
	}
}
