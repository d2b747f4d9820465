package fleet

import (
	"slices"
	"strings"

	"github.com/macfleet/macfleet/internal/secret"
)

// GitHubApp is a GitHub App that may manage runners.
type GitHubApp struct {
	Name           string     `hcl:"name,label" is:"identifier"`                    // of its block
	AppID          Known      `hcl:"app_id" is:"app_id"`                            // the App's id or its client id
	InstallationID Known      `hcl:"installation_id,optional" is:"installation_id"` // zero: it is looked up
	PrivateKey     secret.Ref `hcl:"private_key"`                                   // in PEM, as GitHub generates it
	// PreviousPrivateKey is tried after PrivateKey while the App's key is rotated; zero: it is not being rotated.
	PreviousPrivateKey secret.Ref `hcl:"previous_private_key,optional"`
}

// String returns the App as a configuration refers to it.
func (a GitHubApp) String() string { return "github_app." + a.Name }

// Known is a text that is written out, or that a reference to a secret names: the ids of an App are not secret, but teams
// often keep them in one item with the App's key.
type Known struct {
	Text string     // empty: Ref has it
	Ref  secret.Ref // zero: Text has it
}

// IsZero reports whether it is not set.
func (k Known) IsZero() bool { return k == Known{} }

// GithubRunner makes a host a builder: it builds virtual machine images next to its kubelet, so no Pod may
// run there and no virtual machine is garbage. With an organization or a repository, macfleet installs and registers
// GitHub's runner on it; without one, someone else does.
type GithubRunner struct {
	App           *GitHubApp  `hcl:"app,optional" per:"run"`
	Token         *secret.Ref `hcl:"token,optional" per:"run"`                                        // a personal access token, or one for a single run, instead of an App
	Host          *string     `hcl:"host,optional" per:"fleet" default:"github.com" is:"github_host"` // of GitHub's web pages
	Organization  *string     `hcl:"organization,optional" per:"fleet" is:"organization"`
	Repository    *string     `hcl:"repository,optional" per:"fleet" is:"repository"`         // OWNER/NAME
	Labels        []string    `hcl:"labels,optional" per:"fleet" is:"runner_label" max:"100"` // the runner's own labels; those that GitHub sets may be repeated here
	DefaultLabels *bool       `hcl:"default_labels,optional" per:"fleet" default:"true"`      // self-hosted, macOS and ARM64
	RunnerGroup   *string     `hcl:"runner_group,optional" per:"fleet" is:"runner_group"`
	WorkFolder    *string     `hcl:"work_folder,optional" per:"fleet" default:"_work" is:"work_folder"` // relative to the runner's folder, or absolute
	MinVersion    *string     `hcl:"min_version,optional" per:"fleet" is:"runner_version"`
	Version       *string     `hcl:"version,optional" per:"run" is:"runner_version"` // to install; the runner updates itself afterwards
	SHA256        *string     `hcl:"sha256,optional" per:"run" is:"runner_sha256"`   // of its archive
	FenceGroup    *string     `hcl:"fence_group,optional" per:"run" is:"runner_group"`
	// AllowPublicRepositories permits that workflows of public repositories run on the host.
	AllowPublicRepositories *bool   `hcl:"allow_public_repositories,optional" per:"fleet" default:"false"`
	Mode                    *string `hcl:"mode,optional" per:"fleet" default:"persistent" is:"runner_mode"`
}

// BuildTools are the tools that jobs on a builder use.
type BuildTools struct {
	Packer      *Artifact `hcl:"packer,optional" per:"fleet"`                                                 // the vendor's archive for darwin-arm64; nil: macfleet installs none
	Homebrew    *Artifact `hcl:"homebrew,optional" per:"run"`                                                 // its installer; nil: Homebrew is not installed
	Formulae    []string  `hcl:"formulae,optional" per:"fleet" is:"formula"`                                  // full names
	Xcode       *string   `hcl:"xcode,optional" per:"fleet" default:"/Applications/Xcode.app" is:"host_path"` // that the tools use; empty: any, or none
	Cache       *string   `hcl:"cache,optional" per:"fleet" is:"host_path"`                                   // a folder of the login user's for caches of builds
	Environment []string  `hcl:"environment,optional" per:"fleet" is:"variable"`                              // NAME=value, for every shell
}

// Registers reports whether macfleet registers the runner.
func (g GithubRunner) Registers() bool { return g.Scope() != "" }

// Scope returns the web address where the runner registers, such as https://github.com/acme; empty: someone else
// registers it.
func (g GithubRunner) Scope() string {
	owner := text(g.Organization)
	if r := text(g.Repository); r != "" {
		owner = r
	}
	if owner == "" {
		return ""
	}
	return "https://" + strings.ToLower(text(g.Host)+"/"+owner) // GitHub ignores the case
}

// OldestRunner is the oldest version of the runner that github.com registers.
const OldestRunner = "2.329.0"

// DefaultRunnerGroup is the group that runners join without a runner_group.
const DefaultRunnerGroup = "Default"

// DefaultRunnerLabels are those that GitHub gives to each runner on these hosts, in lower case.
func DefaultRunnerLabels() []string { return []string{"arm64", "macos", "self-hosted"} }

// OwnLabels returns the labels that macfleet sets, in lower case and sorted: GitHub ignores the case, and sets the
// default ones itself.
func (g GithubRunner) OwnLabels() []string {
	var out []string
	for _, l := range g.Labels {
		l = strings.ToLower(l)
		if g.DefaultLabels != nil && *g.DefaultLabels && slices.Contains(DefaultRunnerLabels(), l) {
			continue
		}
		out = append(out, l)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
