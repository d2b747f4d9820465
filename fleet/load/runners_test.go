package load

import (
	"fmt"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/secret"
)

const runnersOfLevels = base + `
github_app "builders" {
  app_id          = secret("op://acme/BUILDERS/app-id")
  installation_id = "7654321"
  private_key     = secret("op://acme/BUILDERS/private-key")
}
github_app "images" {
  app_id               = "Iv23liExample01"
  private_key          = secret("op://acme/IMAGES/private-key")
  previous_private_key = secret("op://acme/IMAGES/old-private-key")
}
defaults {
  os = "Tahoe"
}
fleet "builders" {
  github_runner {
    app          = github_app.builders
    organization = "acme"
    labels       = ["self-hosted", "vm-image-builder"]
    min_version  = "2.336.0"
  }
  group "m2" {
    type     = "M2-L"
    replicas = 1
  }
  group "m4" {
    type     = "M4-S"
    replicas = 1
    github_runner {
      app          = github_app.images
      labels       = ["Images"]
      runner_group = "images"
    }
  }
}
fleet "library" {
  github_runner {
    token      = secret("env://GITHUB_TOKEN")
    repository = "acme/library.images"
    host       = "acme.ghe.com"
    labels     = ["library"]
  }
  group "m2" {
    type     = "M2-L"
    replicas = 1
  }
}
host "acme-builders-m4-8f1c2" {
  github_runner {
    work_folder    = "/Users/m1/work"
    default_labels = false
  }
}
`

func TestRunnersOfLevels(t *testing.T) {
	t.Parallel()
	cfg := mustLoad(t, one(runnersOfLevels), Options{}).Config
	ref := func(scheme secret.Scheme, path string) secret.Ref { return secret.Ref{Scheme: scheme, Path: path} }
	apps := []fleet.GitHubApp{
		{Name: "builders", AppID: fleet.Known{Ref: ref(secret.OnePass, "acme/BUILDERS/app-id")}, InstallationID: fleet.Known{Text: "7654321"},
			PrivateKey: ref(secret.OnePass, "acme/BUILDERS/private-key")},
		{Name: "images", AppID: fleet.Known{Text: "Iv23liExample01"}, PrivateKey: ref(secret.OnePass, "acme/IMAGES/private-key"),
			PreviousPrivateKey: ref(secret.OnePass, "acme/IMAGES/old-private-key")},
	}
	equal(t, "apps", apps, cfg.GitHubApps)
	common := `host="github.com" organization="acme" repository=null `
	rest := ` version=null sha256=null fence_group=null allow_public_repositories=false mode="persistent"`
	for i, want := range []string{
		`app=github_app.builders token=null ` + common + `labels=["self-hosted", "vm-image-builder"] default_labels=true runner_group=null work_folder="_work" min_version="2.336.0"` + rest,
		`app=github_app.images token=null ` + common + `labels=["Images"] default_labels=true runner_group="images" work_folder="_work" min_version="2.336.0"` + rest,
		`app=null token=secret("env://GITHUB_TOKEN") host="acme.ghe.com" organization=null repository="acme/library.images" labels=["library"] default_labels=true runner_group=null work_folder="_work" min_version=null` + rest,
		`app=github_app.images token=null ` + common + `labels=["Images"] default_labels=false runner_group="images" work_folder="/Users/m1/work" min_version="2.336.0"` + rest,
	} {
		of := cfg.Specs()[i]
		equal(t, of.Fleet+", "+of.Group, want, values(of.Spec, runner+"."))
	}
	if got := cfg.Fleets[1].Groups[0].Spec.GithubRunner.Scope(); got != "https://acme.ghe.com/acme/library.images" {
		t.Errorf("scope %s", got)
	}
	other := mustLoad(t, one(strings.ReplaceAll(runnersOfLevels, "IMAGES/private-key", "IMAGES/new-private-key")), Options{}).Config
	if cfg.Hash() == other.Hash() {
		t.Error("the key of an App does not count in the hash")
	}
}

// values are those of a specification below a path, each as name=text.
func values(spec fleet.Spec, below string) string {
	var all []string
	for _, v := range spec.Values() {
		if name, inside := strings.CutPrefix(v.Path, below); inside {
			all = append(all, name+"="+v.Text)
		}
	}
	return strings.Join(all, " ")
}

// TestSecretsOfRunners: what hosts may read holds neither an App's key nor a token.
func TestSecretsOfRunners(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"op://acme/BUILDERS/private-key", "op://acme/IMAGES/private-key", "op://acme/IMAGES/old-private-key", "env://GITHUB_TOKEN"} {
		cfg := mustLoad(t, one(strings.ReplaceAll(runnersOfLevels, from, "k8s://ci/github/key")), Options{}).Config
		if why := cfg.PodNamespaceFault("ci"); why == "" {
			t.Errorf("%s is in the namespace, and Pods may run there", from)
		}
		if why := cfg.PodNamespaceFault("other"); why != "" {
			t.Error(why)
		}
	}
}

// TestGitHubTexts: what GitHub and its runner take at the limits, and what they do not.
func TestGitHubTexts(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("ä", n) }
	for kind, texts := range map[string]map[string]bool{
		"organization": {"a": true, "Acme-42": true, strings.Repeat("a", 39): true, strings.Repeat("a", 40): false, "-acme": false, "acme-": false, "a--b": false, "a_b": false, "": false},
		"repository": {"acme/.github": true, "acme/a_b-c.d": true, "acme/" + strings.Repeat("a", 100): true, "acme/" + strings.Repeat("a", 101): false,
			"acme/": false, "/images": false, "acme/.": false, "acme/a b": false},
		"github_host":     {"github.com": true, "acme.ghe.com": true, "api.acme.dev": true, "github": true, "": false, "github.com/": false, "github.com:443": false, "api.github.com": false},
		"runner_label":    {"a": true, long(256): true, long(257): false, "a b": true, "a\tb": false, "a ": false, "\xff": false},
		"runner_group":    {"Builders of images, 2": true, "": false, "a\n": false},
		"work_folder":     {"_work": true, "/Users/m1/work": true, "a..b": true, ".": false, "//": false, "a/../b": false, "/a/..": false, "~m1": false},
		"runner_version":  {"2.336.0": true, "0.0.0": true, "02.336.0": false, "2.336.0.1": false, "2.336.0-rc.1": false, "": false},
		"app_id":          {"1234567": true, "Iv1.0123456789abcdef": true, "": false, "acme builders": false},
		"installation_id": {"7654321": true, "": false, "Iv1": false},
	} {
		for text, fine := range texts {
			if why := wrong(kind, text); (why == "") != fine {
				t.Errorf("%s %q: %q", kind, text, why)
			}
		}
	}
}

// TestManyLabels: GitHub takes a hundred.
func TestManyLabels(t *testing.T) {
	t.Parallel()
	for n, fine := range map[int]bool{100: true, 101: false} {
		labels := fmt.Sprintf(`[for i in range(%d) : "label-${i}"]`, n)
		_, diags := Dir(one(strings.Replace(runnersOfLevels, `["library"]`, labels, 1)), Options{})
		if diags.HasErrors() == fine {
			t.Errorf("%d labels: %v", n, diags)
		}
	}
}
