package stepstest

import (
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

// TailscaleArtifact and ExporterArtifact are what the sample hosts get.
func TailscaleArtifact() *fleet.Artifact {
	return &fleet.Artifact{Name: "tailscale", Version: "1.102.5", SHA256: strings.Repeat("7a", 32), Size: 20 << 20, Fetch: fleet.FetchPush}
}

// ExporterArtifact is the sample hosts' node_exporter.
func ExporterArtifact() *fleet.Artifact {
	return &fleet.Artifact{Name: "node_exporter", Version: "1.12.1", SHA256: strings.Repeat("9e", 32), Size: 10 << 20, Fetch: fleet.FetchHost}
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
func TailnetOf(name string, facts plan.Facts) *plan.TailnetSeen {
	out := &plan.TailnetSeen{Tailnet: inventory.Tailnet{Keys: inventory.Present[[]inventory.DeviceKey](nil), Approval: inventory.Present(false), MagicDNS: inventory.Present(true), Suffix: "tail1234.ts.net"}}
	if a, ok := facts.Get("tailscale.state").Get(); ok && strings.Contains(a.Stdout, DeviceID) {
		out.Devices = []inventory.Device{Device(name)}
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

// FactoryTailscale is what a Mac without Tailscale answers.
func FactoryTailscale() plan.Answer {
	var a answer
	a.part("Bad request.\nCould not find service \"com.tailscale.tailscaled\" in domain for system", "job 113")
	a.part("", "keys 0")
	a.part("", "resolvers 0")
	a.part("", "kept 0")
	a.disk(400_000_000)
	return a.end()
}

// SettledTailscale is what a host of that name answers that has joined. The given parts replace the status and the prefs; empty ones do
// not.
func SettledTailscale(name, status, prefs string) plan.Answer {
	var a answer
	sum := TailscaleArtifact()
	const stamp = "201 23800000 1763000000"
	a.part(receiptText(sum.SHA256, sum.Version, "-", stamp, strings.Repeat("d1", 32)), "file 0 0:0:644 /usr/local/lib/macfleet/tailscale.receipt")
	a.part(receiptText(sum.SHA256, sum.Version, "-", "202 16000000 1763000000", strings.Repeat("d2", 32)), "file 0 0:0:644 /usr/local/lib/macfleet/tailscale_client.receipt")
	a.part("stamp "+stamp+"\n", "daemon 0")
	a.part("stamp 202 16000000 1763000000\n", "client 0")
	a.part(argument("tailscale", "tailscale-run", 0), "file 0 0:0:644 /Library/LaunchDaemons/com.tailscale.tailscaled.plist")
	a.part(runningDaemon("com.tailscale.tailscaled", "", "/var/log/tailscaled.log", "/usr/local/bin/tailscaled", "--state=/Library/Tailscale/tailscaled.state",
		"--socket=/var/run/tailscaled.socket", "--port=41641"), "job 0")
	if status == "" {
		status = Status(name)
	}
	if prefs == "" {
		prefs = Prefs
	}
	a.part(status, "status 0")
	a.part(prefs, "prefs 0")
	a.part("", "folder 0")
	a.part("", "keys 0")
	a.part("", "resolvers 0")
	a.part(sum.SHA256+"\n", "kept 0")
	a.disk(400_000_000)
	return a.end()
}

// argument returns an argument of the script with which a step sets up an untouched Mac.
func argument(step plan.StepID, script string, i int) string {
	h := Host(fleet.Spec{Tailscale: Tailscale(), NodeExporter: NodeExporter()})
	h.Tailnet = TailnetBlock()
	facts := plan.Facts{"tailscale.state": inventory.Present(FactoryTailscale()), "node_exporter.state": inventory.Present(FactoryExporter()),
		"boundary.listeners": inventory.Present(Listeners(false))}
	for _, s := range steps.For(h) {
		if s.ID() != step {
			continue
		}
		for _, c := range s.Diff(plan.View{Host: h, Facts: facts, Root: true, Tailnet: TailnetOf(h.Name, facts)}).Changes {
			if c.Command.Name == script {
				return c.Command.Args[i]
			}
		}
	}
	return ""
}

// runningDaemon is what launchctl prints of a daemon with a process.
func runningDaemon(label, user, log string, args ...string) string {
	who := ""
	if user != "" {
		who = "\tusername = " + user + "\n"
	}
	return "system/" + label + " = {\n\tactive count = 1\n\tpath = /Library/LaunchDaemons/" + label + ".plist\n\ttype = LaunchDaemon\n\tstate = running\n\n\tprogram = " + args[0] +
		"\n\targuments = {\n\t\t" + strings.Join(args, "\n\t\t") + "\n\t}\n\n\tstdout path = " + log + "\n\tstderr path = " + log + "\n" + who +
		"\tminimum runtime = 10\n\texit timeout = 5\n\truns = 1\n\tpid = 777\n\tlast exit code = (never exited)\n}\n"
}

// FactoryExporter is what a Mac without node_exporter answers.
func FactoryExporter() plan.Answer {
	var a answer
	a.part("Bad request.\nCould not find service \"dev.macfleet.node-exporter\" in domain for system", "job 113")
	a.part("", "kept 0")
	a.disk(400_000_000)
	return a.end()
}

// SettledExporter is what a host answers that serves its metrics.
func SettledExporter() plan.Answer {
	var a answer
	sum := ExporterArtifact()
	const stamp = "203 21000000 1763000000"
	a.part(receiptText(sum.SHA256, sum.Version, "-", stamp, strings.Repeat("d3", 32)), "file 0 0:0:644 /usr/local/lib/macfleet/node_exporter.receipt")
	a.part("stamp "+stamp+"\n", "program 0")
	a.part(argument("node_exporter", "node_exporter-run", 2), "file 0 0:0:755 /usr/local/lib/macfleet/node_exporter-run")
	a.part(argument("node_exporter", "node_exporter-run", 1), "file 0 0:0:644 /Library/LaunchDaemons/dev.macfleet.node-exporter.plist")
	a.part(runningDaemon("dev.macfleet.node-exporter", "m1", "/var/log/node_exporter.log", "/usr/local/lib/macfleet/node_exporter-run"), "job 0")
	a.part(sum.SHA256+"\n", "kept 0")
	a.disk(400_000_000)
	return a.end()
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
