package load

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/secret"
)

const full = `
macfleet {
  required_version = ">= 0.1.0"
  name             = "acme"
}
variable "runners" {
  type        = number
  default     = 1
  description = "hosts that run jobs"
}
environment "production" {
  cluster_uid = "0b1f0f1a-2b3c-4d5e-8f90-a1b2c3d4e5f6"
  project_id  = "5d6e0f1a-2b3c-4d5e-8f90-a1b2c3d4e5f6"
  variables   = { runners = 9 }
}
environment "staging" {}
locals {
  domain = "${local.name}.dev"
  size   = min(var.runners, 5)
}
locals {
  name = lower("ACME")
}
scaleway {
  zones       = formatlist("fr-par-%d", [1, 3])
  pool_prefix = "acme-pool-"
}
kubernetes {
  context    = "acme-${env.name}"
  api_server = "https://api.${local.domain}:6443"
}
ssh {
  private_key = secret("k8s://macfleet/fleet-${env.name}/id_ed25519")
}
defaults {
  os = "Tahoe"
  hostname {}
  power {
    sleep                    = 0
    display_sleep            = 10
    restart_after_power_loss = true
  }
}
fleet "macos" {
  disable = ["power"]
  group "m2" {
    type     = "M2-L"
    replicas = local.size
  }
}
fleet "runners" {
  os = "Sequoia"
  power {
    display_sleep = 0
  }
  group "m2" {
    type     = "M2-L"
    replicas = var.runners
  }
  group "m4" {
    type     = "M4-S"
    replicas = 0
    power {
      sleep                    = 5
      restart_after_power_loss = false
    }
  }
  rollout {
    max_unavailable = "30%"
    canary          = 2
    soak            = "15m"
    failure_budget  = 2
    min_ready       = 5
    order           = "idle"
  }
}
`

func TestConfig(t *testing.T) {
	t.Parallel()
	r := mustLoad(t, one(full), Options{Environment: "production", Version: "0.1.0"})
	want := &fleet.Config{
		Owner:        fleet.Owner{Name: "acme", Environment: "production"},
		Environments: []string{"production", "staging"},
		ProjectID:    "5d6e0f1a-2b3c-4d5e-8f90-a1b2c3d4e5f6",
		ClusterUID:   "0b1f0f1a-2b3c-4d5e-8f90-a1b2c3d4e5f6",
		Scaleway:     fleet.Scaleway{Zones: []string{"fr-par-1", "fr-par-3"}, PoolPrefix: "acme-pool-"},
		Kubernetes: &fleet.Kubernetes{
			Context: "acme-production", APIServer: "https://api.acme.dev:6443", Namespace: "macfleet", LabelPrefix: "macfleet.dev", PodNamespaces: []string{"default"},
		},
		SSH: fleet.SSH{
			User:       "m1",
			PrivateKey: secret.Ref{Scheme: secret.Kubernetes, Path: "macfleet/fleet-production/id_ed25519"},
			Via:        []string{"public"},
		},
		Fleets: []fleet.Fleet{
			{Name: "macos", OS: "Tahoe", Rollout: fleet.DefaultRollout(), Groups: []fleet.Group{
				{Name: "m2", Type: "M2-L", Replicas: 5, Spec: fleet.Spec{Hostname: &fleet.Hostname{}}.WithBuiltIn()},
			}},
			{
				Name: "runners", OS: "Sequoia",
				Rollout: fleet.Rollout{MaxUnavailable: fleet.Share{Percent: 30}, Canary: 2, Soak: 15 * time.Minute, FailureBudget: 2, MinReady: 5, Order: fleet.ByIdle, QuarantineAfter: 3},
				Groups: []fleet.Group{
					{Name: "m2", Type: "M2-L", Replicas: 9, Spec: fleet.Spec{
						Hostname: &fleet.Hostname{},
						Power:    &fleet.Power{Sleep: new(0), DisplaySleep: new(0), RestartAfterPowerLoss: new(true)},
					}.WithBuiltIn().WithDefaults()},
					{Name: "m4", Type: "M4-S", Replicas: 0, Spec: fleet.Spec{
						Hostname: &fleet.Hostname{},
						Power:    &fleet.Power{Sleep: new(5), DisplaySleep: new(0), RestartAfterPowerLoss: new(false)},
					}.WithBuiltIn().WithDefaults()},
				},
			},
		},
	}
	noSources := cmp.Transformer("", func(fleet.Sources) bool { return true })
	equal(t, "config", want, r.Config, noSources)
}

func TestConfigWithoutEnvironmentAndCluster(t *testing.T) {
	t.Parallel()
	got := mustLoad(t, one(small), Options{}).Config
	if got.Kubernetes != nil || got.Environments != nil || got.ProjectID != "" || got.String() != "acme" {
		t.Errorf("config = %+v", got)
	}
}

func TestFilesInNameOrder(t *testing.T) {
	t.Parallel()
	group := func(name string) string {
		return "fleet \"" + name + "\" {\n  os = \"Tahoe\"\n}\n"
	}
	got := mustLoad(t, directory(map[string]string{
		"b.fleet.hcl": group("first"), "c.fleet.hcl": group("second"), "a.fleet.hcl": base,
		"d.hcl": "not read {", "sub.fleet.hcl/x": "not read {",
	}), Options{}).Config
	if len(got.Fleets) != 2 || got.Fleets[0].Name != "first" {
		t.Errorf("fleets = %+v", got.Fleets)
	}
}

// unreadable is a directory of which one file cannot be read.
type unreadable struct{ fstest.MapFS }

func (u unreadable) ReadFile(name string) ([]byte, error) {
	if name == "b.fleet.hcl" {
		return nil, errors.New("permission denied")
	}
	return u.MapFS.ReadFile(name)
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	fsys := unreadable{fstest.MapFS{
		"a.fleet.hcl": {Data: []byte("macfleet {\n  name = \"acme\"\n}\nfleet \"a\" {\n  disable = [\"power\"]\n}\n")},
		"b.fleet.hcl": {},
	}}
	r, diags := Dir(fsys, Options{Environment: "production"})
	const want = `error: Unreadable file
  The file cannot be read: permission denied.
  b.fleet.hcl:1,1: (no source)
`
	equal(t, "diagnostics", want, rendered(r, diags))
	sub, err := fs.Sub(fstest.MapFS{"file": {}}, "missing")
	if err != nil {
		t.Fatal(err)
	}
	refused(t, sub, "Unreadable directory", "")
}

func TestSameInputSameOutput(t *testing.T) {
	t.Parallel()
	opts := Options{
		Env:      map[string]string{"a": "1", "b": "2", "c": "3"},
		VarFiles: []VarFile{{"x", []byte("a = 1\nb = 2")}, {"x", []byte("a = 1\nb = 2")}},
		Vars:     []string{"a=1", "q=2", "q=2"},
	}
	faulty := full + "locals {\n  a = local.b\n  b = local.c\n  c = local.a\n  x = q.a + w.b\n}\npwer {}\nq = 1\nw = 2\n"
	first, diags := Dir(one(faulty), opts)
	want := rendered(first, diags)
	for range 50 {
		r, diags := Dir(one(faulty), opts)
		equal(t, "diagnostics", want, rendered(r, diags))
	}
}
