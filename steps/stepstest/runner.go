package stepstest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

// RunnerScope is where the sample runners are registered.
const RunnerScope = "https://github.com/acme"

// GithubRunner is a block that registers a runner.
func GithubRunner() *fleet.GithubRunner {
	organization := "acme"
	return &fleet.GithubRunner{App: &fleet.GitHubApp{Name: "builders"}, Organization: &organization}
}

// Runner is what a Mac says of its GitHub runner, for tests.
type Runner struct {
	Work       string           // processes of work
	Receipt    string           // empty: macfleet set up none
	Label      string           // of its property list; empty: there is none
	Plist      string           // digest of it
	Access     string           // of it
	Root       string           // its folder
	Files      map[string]int64 // sizes by name; nil: there is no folder
	Settings   string           // .runner; empty: it is not configured
	Path       string
	Version    string // of the listener; empty: there is none
	NoSession  bool   // no user is logged in at the screen
	Job        string // what launchctl prints; empty: not loaded
	Log        string // empty: there is none
	FreeBlocks int64  // of 1024 bytes
}

// FactoryRunner returns what a Mac without a runner says. Someone is logged in at its screen.
func FactoryRunner() Runner { return Runner{FreeBlocks: 400_000_000} }

// RunnerID is the id of the sample runner's entry.
const RunnerID = "21"

// SettledRunner returns what a builder of that name says, whose property list has a digest.
func SettledRunner(name, plist string) Runner {
	root, label := "/Users/m1/actions-runner", "actions.runner.acme."+name
	return Runner{FreeBlocks: 400_000_000, Receipt: "root " + root + "\nlabel " + label + "\nscope " + RunnerScope + "\nprograms made\n",
		Label: label, Plist: plist, Access: "m1:staff:644", Root: root,
		Files: map[string]int64{".runner": 320, ".credentials": 260, ".credentials_rsaparams": 1700, "runsvc.sh": 590, "bin/runsvc.sh": 590, "bin/Runner.Listener": 154880},
		Settings: "\xef\xbb\xbf{\n  \"agentId\": " + RunnerID + ",\n  \"agentName\": \"" + name + "\",\n  \"poolId\": 1,\n  \"poolName\": \"Default\",\n" +
			"  \"gitHubUrl\": \"" + RunnerScope + "\",\n  \"workFolder\": \"_work\"\n}\n",
		Path: "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin:/usr/sbin:/sbin\n", Version: "2.337.0",
		Job: RunningJob(label, root), Log: "2026-11-20 10:00:00Z: Listening for Jobs\n"}
}

// RunningJob is what launchctl prints of a runner's job with a process.
func RunningJob(label, root string) string {
	logs := "/Users/m1/Library/Logs/" + label
	return "gui/501/" + label + " = {\n\tactive count = 1\n\tpath = /Users/m1/Library/LaunchAgents/" + label + ".plist\n\ttype = LaunchAgent\n\tstate = running\n\n" +
		"\tprogram = " + root + "/runsvc.sh\n\targuments = {\n\t\t" + root + "/runsvc.sh\n\t}\n\n\tstdout path = " + logs + "/stdout.log\n\tstderr path = " + logs + "/stderr.log\n" +
		"\tminimum runtime = 10\n\texit timeout = 60\n\truns = 1\n\tpid = 640\n\tlast exit code = (never exited)\n}\n"
}

// StoppedJob is what launchctl prints of a runner's job whose process has exited with a code.
func StoppedJob(label, root, code string) string {
	page := RunningJob(label, root)
	page = strings.Replace(page, "state = running", "state = not running", 1)
	page = strings.Replace(page, "\tpid = 640\n", "", 1)
	return strings.Replace(page, "(never exited)", code, 1)
}

// Answer is the answer of the probe.
func (r Runner) Answer() plan.Answer {
	var b strings.Builder
	part := func(body, head string) { fmt.Fprintf(&b, "%s\n== %s\n", body, head) }
	part(r.Work, "work 0")
	if r.Receipt != "" {
		part(r.Receipt, "receipt 0")
	}
	if r.Label != "" {
		part("root "+r.Root+"\nsha "+r.Plist+"\n", "plist 0 "+r.Access+" /Users/m1/Library/LaunchAgents/"+r.Label+".plist")
	}
	if r.Files != nil {
		files := ""
		for _, name := range []string{".runner", ".runner_migrated", ".credentials", ".credentials_migrated", ".credentials_rsaparams", ".service", "runsvc.sh", "bin/runsvc.sh", "bin/Runner.Listener"} {
			if size, there := r.Files[name]; there {
				files += fmt.Sprintf("%s %d\n", name, size)
			}
		}
		part(files, "files 0 m1:staff:755 "+r.Root)
		if r.Settings != "" {
			part(r.Settings, "settings 0 "+r.Root)
		}
		if r.Path != "" {
			part(r.Path, "path 0 "+r.Root)
		}
		if r.Version != "" {
			part(r.Version+"\n", "version 0 "+r.Root)
		}
	}
	domain, code := "session Aqua\n", 0
	if r.NoSession {
		domain, code = "", 112
	}
	part(domain, fmt.Sprintf("domain %d", code))
	if r.Label != "" && r.Job == "" {
		part("", "job 113 "+r.Label)
	} else if r.Job != "" {
		part(r.Job, "job 0 "+r.Label)
	}
	if r.Log != "" {
		part(r.Log, "log 0 "+r.Label)
	}
	if r.Version == "" {
		part(fmt.Sprintf("/dev/disk3s1s1 482797652 14845348 %d 4%% 404475 4294562804 0%% /\n", r.FreeBlocks), "space 0")
	}
	b.WriteString("\n== end\n")
	return plan.Answer{Stdout: b.String()}
}

// Service is what GitHub lists of the sample runner of that name, and of its organization.
func Service(name string) *plan.PeerSeen {
	return &plan.PeerSeen{Listing: inventory.Listing{Agents: &inventory.AgentService{
		Agents: []inventory.Agent{{ID: RunnerID, Name: name, Fixed: []string{"arm64", "macos", "self-hosted"}, Online: true, Group: "1", Version: "2.337.0"}},
		Groups: inventory.Present([]inventory.AgentGroup{{ID: "1", Name: "Default", All: true, Default: true}}),
		Newest: inventory.Present(inventory.AgentRelease{Version: "2.337.0", URL: "https://github.com/actions/runner/releases/download/v2.337.0/actions-runner-osx-arm64-2.337.0.tar.gz",
			SHA256: strings.Repeat("5e", 32)})}}}
}

// Unlisted is what GitHub lists of the sample organization without a runner.
func Unlisted() *plan.PeerSeen {
	s := Service("")
	s.Agents.Agents = nil
	return s
}

// Peers are what the sample services list of a host that answered these facts.
func Peers(name string, facts plan.Facts) []plan.HostPeer {
	return []plan.HostPeer{{Peer: inventory.CIService, Works: true, Realm: RunnerScope, Seen: Listed(name, facts)}, {Peer: inventory.TailnetService, Seen: TailnetOf(name, facts)}}
}

// Listed is what GitHub lists where a host answered these facts: its entry if the host is registered.
func Listed(name string, facts plan.Facts) *plan.PeerSeen {
	a, _ := facts.Get("github_runner.state/m1").Get()
	if strings.Contains(a.Stdout, `"agentId"`) {
		return Service(name)
	}
	return Unlisted()
}

// RunnerPlist returns the digest of the property list that macfleet writes for the sample runner of that name.
func RunnerPlist(name string) string {
	h := Host(fleet.Spec{GithubRunner: GithubRunner()})
	h.Name = name
	for _, s := range steps.For(h) {
		if _, is := s.(plan.AgentKeeper); !is {
			continue
		}
		f := s.Diff(View(h, plan.Facts{"github_runner.state/m1": inventory.Present(FactoryRunner().Answer())}))
		for _, c := range f.Changes {
			if c.Command.Name == "github_runner-job" {
				sum := sha256.Sum256([]byte(c.Command.Args[3]))
				return hex.EncodeToString(sum[:])
			}
		}
	}
	return "unknown"
}
