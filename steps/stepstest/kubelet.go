package stepstest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// Tart is what the scripts see of Tart on a Mac.
type Tart struct {
	Receipt, Wrapper, WrapperMode string // empty: there is none
	Link                          bool   // the wrapper is a link
	Stamp, SHA                    string // of the bundle's program
	Differs                       string // what of the bundle is not as it was unpacked, lines; "-": it was compared, and nothing
	Unverified                    bool   // there is no whole note of what was unpacked
	Old                           bool
	Kept, Work                    string // lines
	FreeKB                        int64
}

const tartStamp = "801 41000000 1763000000"

// SettledTart is a Mac on which the step has put Tart.
func SettledTart() Tart {
	a := TartArtifact()
	return Tart{Receipt: receiptText(a.SHA256, a.Version, "-", tartStamp, strings.Repeat("b1", 32)), Stamp: tartStamp,
		Wrapper: "#!/bin/sh\n# Managed by macfleet. The entitlements are the bundle's, so its program is run by its path there.\n" +
			"exec /usr/local/lib/tart.app/Contents/MacOS/tart \"$@\"\n",
		WrapperMode: "0:0:755", Kept: a.SHA256 + "\n", FreeKB: 400_000_000}
}

func receiptText(sha, version, previous, stamp, file string) string {
	return fmt.Sprintf("current %s %s\nprevious %s\nfile %s %s\ninstalled 1763000001\n", sha, version, previous, stamp, file)
}

// answer collects the parts of a script's answer.
type answer struct{ strings.Builder }

func (a *answer) part(body, head string) { a.WriteString(body + "\n== " + head + "\n") }

func (a *answer) disk(free int64) {
	a.part(fmt.Sprintf("/dev/disk3s1s1 482797652 10485760 %d 3%% 404167 4000000000 0%% /\n", free), "space 0")
}

// Answer is what the script tart-state prints of it.
func (t Tart) Answer() plan.Answer {
	var a answer
	if t.Receipt != "" {
		a.part(t.Receipt, "file 0 0:0:644 /usr/local/lib/macfleet/tart.receipt")
	}
	switch {
	case t.Link:
		a.part("", "link 0 /usr/local/bin/tart")
	case t.Wrapper != "":
		a.part(t.Wrapper, "file 0 "+t.WrapperMode+" /usr/local/bin/tart")
	}
	if t.Stamp != "" {
		body := "stamp " + t.Stamp + "\n"
		if t.SHA != "" {
			body += "sha " + t.SHA + "\n"
		}
		a.part(body, "program 0")
	}
	if t.Differs != "" {
		a.part(strings.TrimPrefix(t.Differs, "-"), "bundle 0")
	}
	if t.Unverified {
		a.part("", "unverified 0")
	}
	if t.Old {
		a.part("/usr/local/lib/.tart.old.a1b2c3\n", "old 0")
	}
	a.part(t.Kept, "kept 0")
	a.disk(t.FreeKB)
	a.part(t.Work, "work 0")
	a.part("", "end")
	return plan.Answer{Stdout: a.String()}
}

// Kubelet is what the scripts see of the Node's agent on a Mac.
type Kubelet struct {
	Receipt                    string // empty: there is none
	Stamp, SHA, Access         string // of the program
	Changed                    int64
	Kept, Plists, Work         string // lines
	Machines, Processes        string
	Others                     map[string]string // lines of other jobs' pages, by target
	FreeKB                     int64
	ConfigAccess, ConfigSHA    string // empty: there is no kubeconfig
	ConfigServer, ConfigClaims string
	Plist, PlistMode           string // empty: there is none
	Withheld                   string // digest of a plist that is not shown
	Job                        int    // exit code of launchctl print
	Args                       []string
	Page                       string // its other lines
	Properties                 string // of the job; empty: the usual ones
	Disabled                   bool
	Folders                    string
	Hardware                   string
	Now                        int64
	Background                 string
}

const (
	kubeletStamp = "901 61000000 1763000000"
	pageHead     = "system/dev.macfleet.tart-kubelet = {\n\tactive count = 1\n\tpath = /Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist\n\ttype = LaunchDaemon\n"
	pageTail     = "\tstdout path = /var/log/tart-kubelet.log\n\tstderr path = /var/log/tart-kubelet.log\n\tdefault environment = {\n\t}\n\n\tenvironment = {\n" +
		"\t\tHOME => /Users/m1\n\t\tPATH => /usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin:/usr/sbin:/sbin\n\t}\n\n\tdomain = system\n\tusername = m1\n\tminimum runtime = 10\n"
	properties = "keepalive | runatload | inferred program | managed LWCR | has LWCR"
	// KubeletRuns are the lines of a job's page whose process is well.
	KubeletRuns = "\tstate = running\n\truns = 1\n\tpid = 4242\n\tlast exit code = (never exited)\n"
	// KubeletWaits are those of one that is started again and again.
	KubeletWaits = "\tstate = spawn scheduled\n\truns = 17\n\tlast exit code = 1\n"
)

// FactoryKubelet is a Mac without one.
func FactoryKubelet() Kubelet {
	return Kubelet{FreeKB: 400_000_000, Job: 113, Hardware: "10\n17179869184\n", Now: 1763100000}
}

// SettledKubelet is a Mac of that name on which the step has set up one with its
// defaults.
func SettledKubelet(name string) Kubelet {
	a := KubeletArtifact()
	k := FactoryKubelet()
	k.Receipt = receiptText(a.SHA256, a.Version, "-", kubeletStamp, a.SHA256)
	k.Stamp, k.Access, k.Changed, k.Kept = kubeletStamp, "0:0:755", 1763000001, a.SHA256+"\n"
	sum := sha256.Sum256([]byte(Kubeconfig(name)))
	k.ConfigAccess, k.ConfigSHA = "m1:staff:600", hex.EncodeToString(sum[:])
	k.ConfigServer, k.ConfigClaims = "https://api.acme.dev:6443", Claims(AccountUID, "tart-kubelet-"+name+"-token")
	k.Job, k.Page = 0, KubeletRuns
	k.Args = []string{"/usr/local/bin/tart-kubelet", "--node-name=" + name, "--kubeconfig=/etc/tart-kubelet/kubeconfig", "--host-cpu=8",
		"--host-memory-mb=14336", "--max-pods=3", placeLabels(Server()), "--provider-id=scw-applesilicon://fr-par-1/0a1b2c3d-0000-4000-8000-000000000000"}
	k.Plist, k.PlistMode = kubeletPlist(k.Args), "0:0:644"
	k.Processes = "4242 1 01:00:00 /usr/local/bin/tart-kubelet\n"
	k.Folders = "m1:staff /var/log/tart-vms\nm1:staff /var/lib/tart-userdata\nm1:staff /var/log/tart-kubelet.log\n"
	k.Background = "         Disposition: [enabled, allowed, notified] (0xb)\n"
	return k
}

// On is the same on another server.
func (k Kubelet) On(s inventory.Server) Kubelet {
	k.Args = append([]string{}, k.Args...)
	for i, arg := range k.Args {
		if strings.HasPrefix(arg, "--provider-id=") {
			k.Args[i] = "--provider-id=" + s.ProviderID()
		}
		if strings.HasPrefix(arg, nodeLabels) {
			k.Args[i] = placeLabels(s)
		}
	}
	return k.WithArgs()
}

const nodeLabels = "--node-labels="

// placeLabels are the labels that every Node has from its server, in the region fr-par.
func placeLabels(s inventory.Server) string {
	place := "topology.kubernetes.io/region=fr-par,topology.kubernetes.io/zone=" + s.Zone
	if s.Type != "" {
		place = "node.kubernetes.io/instance-type=" + s.Type + "," + place
	}
	return nodeLabels + place
}

// Labelled is the same with more labels, which come before the others in the alphabet.
func (k Kubelet) Labelled(labels string) Kubelet {
	k.Args = append([]string{}, k.Args...)
	for i, arg := range k.Args {
		if place, is := strings.CutPrefix(arg, nodeLabels); is {
			k.Args[i] = nodeLabels + labels + "," + place
		}
	}
	return k.WithArgs()
}

// WithArgs is the same with other arguments, wherever they stand.
func (k Kubelet) WithArgs(args ...string) Kubelet {
	k.Args = append(append([]string{}, k.Args...), args...)
	k.Plist = kubeletPlist(k.Args)
	return k
}

func kubeletPlist(args []string) string {
	var b strings.Builder
	for _, arg := range args {
		b.WriteString("\t\t<string>" + arg + "</string>\n")
	}
	return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>dev.macfleet.tart-kubelet</string>
	<key>UserName</key>
	<string>m1</string>
	<key>ProgramArguments</key>
	<array>
` + b.String() + `	</array>
	<key>EnvironmentVariables</key>
	<dict>
		<key>HOME</key>
		<string>/Users/m1</string>
		<key>PATH</key>
		<string>/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin:/usr/sbin:/sbin</string>
	</dict>
	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<true/>
	<key>AbandonProcessGroup</key>
	<true/>
	<key>ThrottleInterval</key>
	<integer>10</integer>
	<key>StandardOutPath</key>
	<string>/var/log/tart-kubelet.log</string>
	<key>StandardErrorPath</key>
	<string>/var/log/tart-kubelet.log</string>
</dict>
</plist>
`
}

// Answer is what the script tart_kubelet-state prints of it.
func (k Kubelet) Answer() plan.Answer {
	var a answer
	if k.Receipt != "" {
		a.part(k.Receipt, "file 0 0:0:644 /usr/local/lib/macfleet/tart_kubelet.receipt")
	}
	if k.Stamp != "" {
		body := fmt.Sprintf("stamp %s\nchanged %d\naccess %s\n", k.Stamp, k.Changed, k.Access)
		if k.SHA != "" {
			body += "sha " + k.SHA + "\n"
		}
		a.part(body, "program 0")
	}
	a.part(k.Kept, "kept 0")
	a.disk(k.FreeKB)
	if k.ConfigAccess != "" {
		body := "access " + k.ConfigAccess + "\nsha " + k.ConfigSHA + "\nserver " + k.ConfigServer + "\n"
		if k.ConfigClaims != "" {
			body += "claims " + k.ConfigClaims + "\n"
		}
		a.part(body, "kubeconfig 0")
	}
	const plist = " /Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist"
	switch {
	case k.Withheld != "":
		a.part("sha "+k.Withheld+"\n", "withheld 0 "+k.PlistMode+plist)
	case k.Plist != "":
		a.part(k.Plist, "file 0 "+k.PlistMode+plist)
	}
	a.part(k.page(), fmt.Sprintf("job %d", k.Job))
	if k.Disabled {
		a.WriteString("\t\t\"dev.macfleet.tart-kubelet\" => disabled\n")
	}
	a.part("", "disabled 0")
	for target, lines := range k.Others {
		a.part(lines, "other 0 "+target)
	}
	a.part(k.Plists, "plists 0")
	a.part(k.Processes, "processes 0")
	a.part(k.Work, "work 0")
	a.part(k.Machines, "machines 0")
	a.part(k.Folders, "folders 0")
	a.part(k.Hardware, "hardware 0")
	a.part(fmt.Sprintf("%d\n", k.Now), "now 0")
	a.part("", "end")
	return plan.Answer{Stdout: a.String()}
}

// page is the job as launchctl shows it.
func (k Kubelet) page() string {
	if k.Job != 0 {
		return ""
	}
	text := pageHead + "\n\tprogram = " + k.Args[0] + "\n\targuments = {\n"
	for _, arg := range k.Args {
		text += "\t\t" + arg + "\n"
	}
	return text + "\t}\n\n" + k.Page + pageTail + "\tproperties = " + cmp.Or(k.Properties, properties) + "\n}\n"
}
