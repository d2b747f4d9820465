package stepstest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

// TailscaleArtifact and ExporterArtifact are what the sample hosts get.
func TailscaleArtifact() *fleet.Artifact {
	return &fleet.Artifact{Name: "vpn", Version: "1.102.5", SHA256: strings.Repeat("7a", 32), Size: 20 << 20, Fetch: fleet.FetchPush}
}

// ExporterArtifact is the sample hosts' node_exporter.
func ExporterArtifact() *fleet.Artifact {
	return &fleet.Artifact{Name: "exporter", Version: "1.12.1", SHA256: strings.Repeat("9e", 32), Size: 10 << 20, Fetch: fleet.FetchHost}
}

// Tailscale and NodeExporter are the sample blocks.
func Tailscale() *fleet.Tailscale { return &fleet.Tailscale{Artifact: TailscaleArtifact()} }

// NodeExporter is the sample block.
func NodeExporter() *fleet.NodeExporter { return &fleet.NodeExporter{Artifact: ExporterArtifact()} }

// TailnetBlock is the sample tailnet of a configuration.
func TailnetBlock() *fleet.Tailnet {
	return &fleet.Tailnet{Enabled: true, Tags: []string{"tag:macmini"}}
}

// The device of the sample host.
const (
	DeviceID      = "nSample1CNTRL"
	DeviceAddress = "100.101.0.7"
)

// Device is the device of a host of that name.
func Device(name string) inventory.Device {
	return inventory.Device{ID: DeviceID, Name: name, HostName: name, Addresses: []string{DeviceAddress, "fd7a:115c:a1e0::7"}, Tags: []string{"tag:macmini"}, Approved: true, Connected: true}
}

// TailnetOf is what the control server lists of a host that has joined, by its facts.
func TailnetOf(name string, facts plan.Facts) *plan.PeerSeen {
	out := &plan.PeerSeen{Listing: inventory.Listing{Tailnet: &inventory.Tailnet{Keys: inventory.Present[[]inventory.DeviceKey](nil), Approval: inventory.Present(false), MagicDNS: inventory.Present(true), Suffix: "tail1234.ts.net"}}}
	if a, ok := facts.Get("tailscale.state").Get(); ok && strings.Contains(a.Stdout, DeviceID) {
		out.Tailnet.Devices = []inventory.Device{Device(name)}
	}
	return out
}

// Status is the output of tailscale status --json of a host of that name that has joined.
func Status(name string) string {
	return `{
  "Version": "1.102.5-macfleet",
  "TUN": true,
  "BackendState": "Running",
  "HaveNodeKey": true,
  "TailscaleIPs": ["` + DeviceAddress + `", "fd7a:115c:a1e0::7"],
  "Self": {
    "ID": "` + DeviceID + `",
    "HostName": "` + name + `",
    "DNSName": "` + name + `.tail1234.ts.net.",
    "TailscaleIPs": ["` + DeviceAddress + `", "fd7a:115c:a1e0::7"],
    "Tags": ["tag:macmini"],
    "Online": true
  },
  "Health": [],
  "MagicDNSSuffix": "tail1234.ts.net"
}
`
}

// Prefs is the output of tailscale debug prefs of a host that has joined.
const Prefs = `{
  "ControlURL": "https://controlplane.tailscale.com",
  "RouteAll": false,
  "CorpDNS": false,
  "RunSSH": false,
  "WantRunning": true,
  "LoggedOut": false
}
`

// The stamps of the sample host's programs, as their receipts have them, and the lines of a job's page about its process.
const (
	DaemonStamp   = "201 23800000 1763000000"
	ClientStamp   = "202 16000000 1763000000"
	ExporterStamp = "203 21000000 1763000000"
	DaemonRuns    = "\tstate = running\n\tpid = 777\n\tlast exit code = (never exited)\n"
	DaemonWaits   = "\tstate = spawn scheduled\n\tlast exit code = 1\n"
)

// TailscaleMac is what a Mac answers about Tailscale, for tests.
type TailscaleMac struct {
	Digest, Version            string // of the receipts; empty: there are none
	Daemon, Client             string // stamps; empty: there is no such file
	SHA                        string // of a program whose stamp is not its receipt's
	Plist, Process             string // empty: there is no file, or the job is not loaded
	Status, Prefs              string // empty: the daemon does not answer
	Keys, Resolvers, Kept      string // lines
	Folder, Unfinished, Former bool
	FreeKB                     int64
}

// FactoryTailscale is what a Mac without Tailscale answers.
func FactoryTailscale() plan.Answer { return TailscaleMac{FreeKB: 400_000_000}.Answer() }

// JoinedTailscale is a Mac of that name that has joined.
func JoinedTailscale(name string) TailscaleMac {
	a := TailscaleArtifact()
	return TailscaleMac{Digest: a.SHA256, Version: a.Version, Daemon: DaemonStamp, Client: ClientStamp, Plist: argument("tailscale-run", 0), Process: DaemonRuns,
		Status: Status(name), Prefs: Prefs, Folder: true, Kept: a.SHA256 + "\n", FreeKB: 400_000_000}
}

// SettledTailscale is what a host of that name answers that has joined. The given parts replace the status and the prefs; empty ones do
// not.
func SettledTailscale(name, status, prefs string) plan.Answer {
	m := JoinedTailscale(name)
	m.Status, m.Prefs = cmp.Or(status, m.Status), cmp.Or(prefs, m.Prefs)
	return m.Answer()
}

// Answer is the answer of the probe.
func (m TailscaleMac) Answer() plan.Answer {
	var a answer
	if m.Digest != "" {
		a.part(receiptText(m.Digest, m.Version, "-", DaemonStamp, strings.Repeat("d1", 32)), "file 0 0:0:644 /usr/local/lib/macfleet/tailscale.receipt")
		a.part(receiptText(m.Digest, m.Version, "-", ClientStamp, strings.Repeat("d2", 32)), "file 0 0:0:644 /usr/local/lib/macfleet/tailscale_client.receipt")
	}
	a.program(m.Daemon, DaemonStamp, m.SHA, "daemon 0")
	a.program(m.Client, ClientStamp, m.SHA, "client 0")
	a.given(m.Plist, "file 0 0:0:644 /Library/LaunchDaemons/com.tailscale.tailscaled.plist")
	a.daemon("com.tailscale.tailscaled", "", m.Process, "/var/log/tailscaled.log", "/usr/local/bin/tailscaled", "--state=/Library/Tailscale/tailscaled.state",
		"--socket=/var/run/tailscaled.socket", "--port=41641")
	a.given(m.Status, "status 0")
	a.given(m.Prefs, "prefs 0")
	a.flag(m.Folder, "folder 0")
	a.part(m.Keys, "keys 0")
	a.part(m.Resolvers, "resolvers 0")
	a.flag(m.Unfinished, "unfinished 0")
	a.flag(m.Former, "former 0")
	a.part(m.Kept, "kept 0")
	a.disk(m.FreeKB)
	return a.end()
}

// argument returns an argument of a script that sets up an untouched Mac.
func argument(script string, i int) string {
	h := Host(fleet.Spec{Tailscale: Tailscale(), NodeExporter: NodeExporter()})
	h.Tailnet = TailnetBlock()
	facts := plan.Facts{"tailscale.state": inventory.Present(FactoryTailscale()), "node_exporter.state": inventory.Present(FactoryExporter()),
		"boundary.listeners": inventory.Present(Listeners(false))}
	for _, s := range steps.For(h) {
		for _, c := range s.Diff(plan.View{Host: h, Facts: facts, Root: true, Peers: []plan.HostPeer{{Peer: inventory.TailnetService, Seen: TailnetOf(h.Name, facts)}}}).Changes {
			if c.Command.Name == script {
				return c.Command.Args[i]
			}
		}
	}
	return ""
}

// ExporterMac is what a Mac answers about node_exporter, for tests.
type ExporterMac struct {
	Receipt, Stamp, SHA    string // of the program; an empty stamp: there is none
	Wrapper, WrapperMode   string // an empty one does not exist
	Plist, PlistMode       string
	Program, Process, Kept string // of the job; an empty process: it is not loaded
	FreeKB                 int64
}

// FactoryExporter is what a Mac without node_exporter answers.
func FactoryExporter() plan.Answer { return ExporterMac{FreeKB: 400_000_000}.Answer() }

// ServingExporter is a host that serves its metrics.
func ServingExporter() ExporterMac {
	a := ExporterArtifact()
	return ExporterMac{Receipt: receiptText(a.SHA256, a.Version, "-", ExporterStamp, strings.Repeat("d3", 32)), Stamp: ExporterStamp,
		Wrapper: argument("node_exporter-run", 2), WrapperMode: "0:0:755", Plist: argument("node_exporter-run", 1), PlistMode: "0:0:644",
		Program: "/usr/local/lib/macfleet/node_exporter-run", Process: DaemonRuns, Kept: a.SHA256 + "\n", FreeKB: 400_000_000}
}

// SettledExporter is what a host answers that serves its metrics.
func SettledExporter() plan.Answer { return ServingExporter().Answer() }

// Answer is the answer of the probe.
func (m ExporterMac) Answer() plan.Answer {
	var a answer
	a.given(m.Receipt, "file 0 0:0:644 /usr/local/lib/macfleet/node_exporter.receipt")
	a.program(m.Stamp, ExporterStamp, m.SHA, "program 0")
	a.given(m.Wrapper, "file 0 "+m.WrapperMode+" /usr/local/lib/macfleet/node_exporter-run")
	a.given(m.Plist, "file 0 "+m.PlistMode+" /Library/LaunchDaemons/dev.macfleet.node-exporter.plist")
	a.daemon("dev.macfleet.node-exporter", "\tusername = m1\n", m.Process, "/var/log/node_exporter.log", m.Program)
	a.part(m.Kept, "kept 0")
	a.disk(m.FreeKB)
	return a.end()
}

// given writes a part with a text, if there is one.
func (a *answer) given(body, head string) {
	if body != "" {
		a.part(body, head)
	}
}

// flag writes an empty part, if it exists.
func (a *answer) flag(there bool, head string) {
	if there {
		a.part("", head)
	}
}

// program writes what is seen of a program, with its digest where its stamp is not the receipt's.
func (a *answer) program(stamp, recorded, sha, head string) {
	switch stamp {
	case "":
	case recorded:
		a.part("stamp "+stamp+"\n", head)
	default:
		a.part("stamp "+stamp+"\nsha "+sha+"\n", head)
	}
}

// daemon is what launchctl prints of a daemon.
func (a *answer) daemon(label, user, process, log string, args ...string) {
	if process == "" {
		a.part("Bad request.\nCould not find service \""+label+"\" in domain for system", "job 113")
		return
	}
	a.part("system/"+label+" = {\n\tactive count = 1\n\tpath = /Library/LaunchDaemons/"+label+".plist\n\ttype = LaunchDaemon\n"+process+"\n\tprogram = "+args[0]+
		"\n\targuments = {\n\t\t"+strings.Join(args, "\n\t\t")+"\n\t}\n\n\tstdout path = "+log+"\n\tstderr path = "+log+"\n"+user+
		"\tminimum runtime = 10\n\texit timeout = 5\n\truns = 1\n\tproperties = keepalive | runatload | inferred program\n}\n", "job 0")
}

// Listeners is what a host answers about its sockets: one that has joined serves metrics in the tailnet.
func Listeners(joined bool, outside ...string) plan.Answer {
	var a answer
	lines := []string{"Active Internet connections (including servers)", "Proto Recv-Q Send-Q  Local Address          Foreign Address        (state)    ",
		"tcp4       0      0  198.51.100.2.22        203.0.113.9.50123      ESTABLISHED", "tcp4       0      0  *.22                   *.*                    LISTEN     ",
		"tcp46      0      0  *.8081                 *.*                    LISTEN     "}
	if joined {
		for _, port := range []string{"8080", "9100"} {
			lines = append(lines, "tcp4       0      0  "+DeviceAddress+"."+port+"       *.*                    LISTEN     ")
		}
	}
	for _, at := range outside {
		lines = append(lines, "tcp46      0      0  "+at+"                 *.*                    LISTEN     ")
	}
	a.part(strings.Join(slices.Clip(lines), "\n")+"\n", "listeners 0")
	if joined {
		a.part(DeviceAddress+"\n", "address 0")
	}
	return a.end()
}

// end completes an answer.
func (a *answer) end() plan.Answer {
	a.part("", "end")
	return plan.Answer{Stdout: a.String()}
}
