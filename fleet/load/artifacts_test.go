package load

import (
	"testing"

	"github.com/macfleet/macfleet/fleet"
)

const digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// nodes is a configuration whose hosts become Nodes.
const nodes = base + `
kubernetes {
  capi {
    cluster = "macs"
  }
}
artifact "tart" {
  version = "2.32.1"
  source  = "https://releases.acme.dev/tart.tar.gz"
  sha256  = "` + digest + `"
  size    = 60000000
}
artifact "kubelet" {
  version = "0.4.0"
  source  = "dist/tart-kubelet"
  sha256  = "` + digest + `"
}
artifact "kubelet_next" {
  version = "0.5.0"
  source  = "https://releases.acme.dev/tart-kubelet"
  sha256  = "` + digest + `"
  fetch   = "push"
}
artifact "unlocked" {
  version = "1"
  source  = "dist/nothing"
}
defaults {
  os = "Tahoe"
  tart {
    artifact = artifact.tart
  }
  tart_kubelet {
    artifact = artifact.kubelet
    labels   = { "acme.dev/size" = "big", kind = "" }
    reserve {
      memory = "4Gi"
    }
  }
}
fleet "runners" {
  group "m2" {
    type     = "M2-L"
    replicas = 2
    tart_kubelet {
      artifact = true ? artifact["kubelet_next"] : artifact.kubelet
      reserve {
        cpu = 3
      }
    }
  }
}
fleet "builders" {
  tart_kubelet {
    max_pods = 1
    labels   = {}
  }
  github_runner {}
  group "m2" {
    type     = "M2-L"
    replicas = 1
  }
}
`

func TestArtifacts(t *testing.T) {
	t.Parallel()
	cfg := mustLoad(t, one(nodes), Options{}).Config
	want := []fleet.Artifact{
		{Name: "tart", Version: "2.32.1", Source: "https://releases.acme.dev/tart.tar.gz", SHA256: digest, Size: 60_000_000, Fetch: fleet.FetchHost},
		{Name: "kubelet", Version: "0.4.0", Source: "dist/tart-kubelet", SHA256: digest, Fetch: fleet.FetchPush},
		{Name: "kubelet_next", Version: "0.5.0", Source: "https://releases.acme.dev/tart-kubelet", SHA256: digest, Fetch: fleet.FetchPush},
		{Name: "unlocked", Version: "1", Source: "dist/nothing", Fetch: fleet.FetchPush},
	}
	equal(t, "artifacts", want, cfg.Artifacts)
	equal(t, "uses", map[string][]string{"tart": {"runners", "builders"}, "kubelet": {"builders"}, "kubelet_next": {"runners"}}, cfg.ArtifactUses())
	equal(t, "Cluster API", &fleet.CAPI{Cluster: "macs", Namespace: "default"}, cfg.Kubernetes.CAPI)
}

// A kubelet's settings are merged field by field, but an artifact is one value.
func TestKubeletOfLevels(t *testing.T) {
	t.Parallel()
	cfg := mustLoad(t, one(nodes), Options{}).Config
	for i, want := range []string{
		`artifact=artifact.kubelet_next (0.5.0) max_pods=3 labels={ "acme.dev/size" = "big", "kind" = "" } legacy=[] reserve= reserve.cpu=3 reserve.memory="4Gi"`,
		`artifact=artifact.kubelet (0.4.0) max_pods=1 labels={} legacy=[] reserve= reserve.cpu=2 reserve.memory="4Gi"`,
	} {
		spec := cfg.Fleets[i].Groups[0].Spec
		equal(t, cfg.Fleets[i].Name, want, values(spec, "tart_kubelet."))
		equal(t, cfg.Fleets[i].Name, "artifact=artifact.tart (2.32.1)", values(spec, "tart."))
	}
	if cfg.Fleets[1].Groups[0].Spec.GithubRunner == nil || cfg.Fleets[0].Groups[0].Spec.GithubRunner != nil {
		t.Error("the builders have no runner, or the runners have one")
	}
	at := cfg.Fleets[0].Groups[0].Sources
	for path, level := range map[string]fleet.Level{"tart_kubelet.artifact": fleet.InGroup, "tart_kubelet.labels": fleet.InDefaults,
		"tart_kubelet.reserve.cpu": fleet.InGroup, "tart_kubelet.reserve.memory": fleet.InDefaults, "tart_kubelet.max_pods": fleet.BuiltIn} {
		if got := at.Of(path).Level; got != level {
			t.Errorf("%s is of the level %q, not %q", path, got, level)
		}
	}
}

// Levels share no artifact: what one is given changes no other.
func TestMergeOfArtifacts(t *testing.T) {
	t.Parallel()
	below := fleet.Spec{Tart: &fleet.Tart{Artifact: &fleet.Artifact{Name: "a", Version: "1", SHA256: digest, Size: 7}}}
	above := fleet.Spec{Tart: &fleet.Tart{Artifact: &fleet.Artifact{Name: "b", Version: "2"}}}
	got := merge(below, above)
	equal(t, "the artifact above", fleet.Artifact{Name: "b", Version: "2"}, *got.Tart.Artifact)
	got.Tart.Artifact.Name = "changed"
	if above.Tart.Artifact.Name != "b" {
		t.Error("two specifications share an artifact")
	}
}
