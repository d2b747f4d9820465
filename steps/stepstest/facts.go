// Package stepstest has sample answers of hosts for tests and benchmarks.
package stepstest

import (
	"reflect"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// Everything wants every step: a block that needs attributes has them, and each other block of the specification has
// its defaults.
func Everything() fleet.Spec {
	spec := fleet.Spec{Tart: &fleet.Tart{Artifact: TartArtifact()}, TartKubelet: &fleet.TartKubelet{Artifact: KubeletArtifact()}, GithubRunner: GithubRunner(),
		BuildTools: BuildTools(), Disk: &fleet.Disk{CacheBudget: new(100), Delete: []string{"bake-*"}}, Tailscale: Tailscale(), NodeExporter: NodeExporter()}
	for v, i := reflect.ValueOf(&spec).Elem(), 0; i < v.NumField(); i++ {
		if v.Field(i).IsNil() {
			v.Field(i).Set(reflect.New(v.Field(i).Type().Elem()))
		}
	}
	return spec
}

// FactoryFacts returns what an untouched Mac answers to the probes
// of all steps. Tests and benchmarks plan against it.
func FactoryFacts() plan.Facts {
	missing := noSetting()
	return plan.Facts{
		"sudo.root":              inventory.Present(plan.Answer{}), // by other means than macfleet's
		"sudo.account":           openAccount(),
		"sudo.file":              inventory.Present(plan.Answer{Exit: 4}),
		"hostname.ComputerName":  inventory.Present(plan.Answer{Stdout: "Mac mini\n"}),
		"hostname.HostName":      inventory.Present(plan.Answer{Exit: 1, Stderr: "HostName: not set\n"}),
		"hostname.LocalHostName": inventory.Present(plan.Answer{Stdout: "Mac-mini\n"}),
		"power.settings": inventory.Present(plan.Answer{Stdout: "AC Power:\n Sleep On Power Button 1\n autorestart          0\n" +
			" powernap             1\n disksleep            10\n sleep                1\n displaysleep         10\n womp                 1\n"}),
		"power.screensaver":       inventory.Present(missing),
		"power.login-screensaver": inventory.Present(missing),
		"power.auto-logout":       inventory.Present(missing),
		"system.state":            inventory.Present(System("1", "", "enabled")),
		"local_network.state":     inventory.Present(LocalNetwork{}.Answer()),
		"disk.state":              inventory.Present(Disk{Images: BakedImages}.Answer()),
		"auto_login.state/m1": inventory.Present(plan.Answer{Stdout: "FileVault is Off.\n== filevault 0\n" +
			missing.Stderr + "\n== managed 1\n" + missing.Stderr + "\n== forbidden 1\n" + missing.Stderr + "\n== user 1\n" +
			"absent\n== kcpassword 0\nroot\n== console 0\nCould not find domain for user gui: 501\n== session 113\nalive\n== loginwindow 0\n\n== work 1\n\n== end\n"}),
		"vm_firewall.state":       inventory.Present(FactoryPacketFilter().Answer()),
		"build_tools.state":       inventory.Present(FactoryTools().Answer()),
		"build_tools.homebrew":    inventory.Present(Homebrew{Missing: true}.Answer()),
		"tart.state":              inventory.Present(Tart{FreeKB: 400_000_000}.Answer()),
		"tart_kubelet.state/m1":   inventory.Present(FactoryKubelet().Answer()),
		"tart_kubelet.background": inventory.Present(plan.Answer{}),
		"github_runner.state/m1":  inventory.Present(FactoryRunner().Answer()),
		"tailscale.state":         inventory.Present(FactoryTailscale()),
		"node_exporter.state":     inventory.Present(FactoryExporter()),
		"boundary.listeners":      inventory.Present(Listeners(false)),
	}
}

// SettledFacts returns what a Mac of that name answers once the steps have set
// it up with nothing but their defaults.
func SettledFacts(name string) plan.Facts {
	missing := noSetting()
	called := inventory.Present(plan.Answer{Stdout: name + "\n"})
	never := inventory.Present(plan.Answer{Stdout: "0\n"})
	return plan.Facts{
		"sudo.root":    inventory.Present(plan.Answer{}),
		"sudo.account": openAccount(),
		"sudo.file": inventory.Present(plan.Answer{Stdout: "440 0 0\n# Managed by macfleet.\nDefaults:m1 verifypw=always\n" +
			"m1 ALL = (ALL) NOPASSWD: ALL\n"}),
		"hostname.ComputerName":  called,
		"hostname.HostName":      called,
		"hostname.LocalHostName": called,
		"power.settings": inventory.Present(plan.Answer{Stdout: "AC Power:\n Sleep On Power Button 1\n autorestart          1\n" +
			" powernap             1\n disksleep            0\n sleep                0\n displaysleep         0\n womp                 1\n"}),
		"power.screensaver":       never,
		"power.login-screensaver": never,
		"power.auto-logout":       never,
		"system.state":            inventory.Present(System("0", "600", "disabled")),
		"disk.state":              inventory.Present(Disk{}.Answer()),
		"local_network.state":     inventory.Present(LocalNetwork{Wired: "192.168.64.0/24", Radio: "192.168.64.0/24", Written: 1762999000}.Answer()),
		"auto_login.state/m1": inventory.Present(plan.Answer{Stdout: "FileVault is Off.\n== filevault 0\n" +
			missing.Stderr + "\n== managed 1\n" + missing.Stderr + "\n== forbidden 1\nm1\n== user 0\n" +
			"present root:wheel 600\n== kcpassword 0\nm1\n== console 0\nAqua\n== session 0\n\n== end\n"}),
		"vm_firewall.state":       inventory.Present(SettledPacketFilter().Answer()),
		"build_tools.state":       inventory.Present(BareTools().Answer()),
		"build_tools.homebrew":    inventory.Present(SettledHomebrew().Answer()),
		"tart.state":              inventory.Present(SettledTart().Answer()),
		"tart_kubelet.state/m1":   inventory.Present(SettledKubelet(name).Answer()),
		"tart_kubelet.background": inventory.Present(plan.Answer{Stdout: SettledKubelet(name).Background}),
		"github_runner.state/m1":  inventory.Present(SettledRunner(name, RunnerPlist(name)).Answer()),
		"tailscale.state":         inventory.Present(SettledTailscale(name, "", "")),
		"node_exporter.state":     inventory.Present(SettledExporter()),
		"boundary.listeners":      inventory.Present(Listeners(true)),
	}
}

// System is what a host answers about updates (each "0" or "1"), the lease of addresses (empty: not set) and Spotlight ("enabled" or
// "disabled"). It started a day ago.
func System(updates, lease, spotlight string) plan.Answer {
	var a answer
	var text strings.Builder
	text.WriteString("{\n")
	for _, key := range []string{"AutomaticCheckEnabled", "AutomaticDownload", "AutomaticallyInstallMacOSUpdates", "ConfigDataInstall", "CriticalUpdateInstall"} {
		text.WriteString("    " + key + " = " + updates + ";\n")
	}
	a.part(text.String()+"    LastResultCode = 2;\n}\n", "updates 0")
	a.part(updates+"\n", "apps 0")
	if lease == "" {
		a.part("", "leases 1")
	} else {
		a.part("{\n    DHCPLeaseTimeSecs = "+lease+";\n}\n", "leases 0")
	}
	a.part("/:\n\tIndexing "+spotlight+". \n/System/Volumes/Data:\n\tIndexing "+spotlight+". \n", "spotlight 0")
	a.part("{ sec = 1763000000, usec = 0 } Thu Nov 13 02:13:20 2025\n1763086400\n", "boot 0")
	return a.end()
}

// noSetting is what defaults answers when there is no such key.
func noSetting() plan.Answer {
	return plan.Answer{Exit: 1, Stderr: "2026-11-21 10:00:00.000 defaults[411:5012] \n" +
		"The domain/default pair of (com.apple.screensaver, idleTime) does not exist\n"}
}

// openAccount is the answer of a Mac whose login user may log in.
func openAccount() inventory.Seen[plan.Answer] {
	return inventory.Present(plan.Answer{Stdout: "AuthenticationAuthority: ;ShadowHash;HASHLIST:<SALTED-SHA512-PBKDF2,SRP-RFC5054-4096-SHA512-PBKDF2> ;SecureToken;\n"})
}
