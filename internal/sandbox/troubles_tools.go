package sandbox

import (
	"context"
	"errors"

	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// toolTroubles are about the tools of builders.
func toolTroubles() []trouble {
	const (
		otherTools = "/Library/Developer/CommandLineTools"
		xcode      = "/Applications/Xcode.app"
		agreed     = "/Library/Preferences/com.apple.dt.Xcode IDELastGMLicenseAgreedTo"
		packer     = "/usr/local/bin/packer"
		kept       = "/usr/local/bin/.packer.former"
	)
	const (
		cellar = "/opt/homebrew/Cellar/packer"
		pin    = "/opt/homebrew/var/homebrew/pinned/packer"
		trust  = "/Users/m1/.homebrew/trust.json"
	)
	const networkList = "com.apple.network.local-network"
	return []trouble{
		{
			Incident: Incident{"local-network-denied", "the list of networks that jobs may reach is gone, as after a reset of root's preferences"},
			remember: nothing, cause: byScript("defaults delete " + networkList + " AllowedEthernetLocalNetworkAddresses 2>/dev/null; defaults write " + networkList + " AllowedWiFiLocalNetworkAddresses -array 10.9.9.0/24"),
			lasts: scriptFinds("defaults read "+networkList, "10.9.9.0/24"), cure: byScript("defaults delete " + networkList + " AllowedWiFiLocalNetworkAddresses"),
		},
		{
			Incident: Incident{"subnet-moved", "vmnet gave the virtual machines another network, because theirs was taken"},
			remember: nothing, cause: onMac(bridgeAt("192.168.2.1/24", "present")),
			lasts: scriptFinds("ifconfig bridge100", "192.168.2.1"), cure: onMac(bridgeAt("192.168.64.1/24", "vms")),
		},
		{
			Incident: Incident{"disk-nearly-full", "images of earlier bakes fill the disk: 30 GB are free"},
			remember: nothing, cause: onMac(func(m *mac.Machine) error { return m.SetFree(30_000_000_000) }), lasts: fewerFree, cure: onMac((*mac.Machine).EmptyDisk),
		},
		{
			Incident: Incident{"brew-upgraded-packer", "a job ran brew unpin and brew upgrade, and Homebrew's packer has another version and signature"},
			remember: nothing, cause: byScript("mkdir -p " + cellar + "/1.15.4 /opt/homebrew/var/homebrew/pinned; rm -f " + pin + "; mv " + cellar + "/* " + cellar + "/1.16.0"),
			lasts: scriptFinds("ls -d "+pin+" 2>/dev/null || ls "+cellar, "1.16.0"), cure: byScript("mv " + cellar + "/* " + cellar + "/1.15.4; ln -sf ../../../Cellar/packer/1.15.4 " + pin),
		},
		{
			Incident: Incident{"untrusted-tap", "Homebrew was updated to 6, which loads no formula of a tap that is not trusted"},
			remember: nothing, cause: byScript("mkdir -p /Users/m1/.homebrew; echo '{}' >" + trust),
			lasts: scriptFinds("cat "+trust, "{}"), cure: byScript("rm -f " + trust),
		},
		{
			Incident: Incident{"xcode-licence", "an update of Xcode has another licence, which is not accepted"},
			remember: nothing, cause: byScript("defaults delete " + agreed + " 2>/dev/null || :"),
			lasts: scriptFinds("xcodebuild -license check || echo not accepted", "not accepted"), cure: byScript("xcodebuild -license accept"),
		},
		{
			Incident: Incident{"xcode-selection-moved", "Homebrew's installer installed the command line tools and selected them instead of Xcode"},
			remember: nothing, cause: byScript("mkdir -p " + otherTools + "; xcode-select -s " + otherTools),
			lasts: scriptFinds("xcode-select -p", otherTools), cure: byScript("xcode-select -s " + xcode),
		},
		{
			Incident: Incident{"packer-replaced", "someone replaced packer by another build of it"},
			remember: nothing, cause: byScript("mkdir -p /usr/local/bin; [ ! -f " + packer + " ] || cp -p " + packer + " " + kept + `
printf '#!/bin/sh\necho Packer v1.99.0\n' >` + packer + ".new; chmod 755 " + packer + ".new; mv -f " + packer + ".new " + packer),
			lasts: scriptFinds("cat "+packer, "v1.99.0"), cure: byScript("if [ -f " + kept + " ]; then mv -f " + kept + " " + packer + "; else rm -f " + packer + "; fi"),
		},
		{
			Incident: Incident{"xcode-missing", "someone renamed Xcode, as some installers of another version do"},
			remember: nothing, cause: byScript("mkdir -p " + otherTools + "; mv " + xcode + " /Applications/Xcode-old.app"),
			lasts: scriptFinds("ls /Applications", "Xcode-old.app"), cure: byScript("mv /Applications/Xcode-old.app " + xcode),
		},
	}
}

// bridgeAt sets the network of the virtual machines' bridge, and when it exists.
func bridgeAt(network, exists string) func(*mac.Machine) error {
	return func(m *mac.Machine) error {
		return errors.Join(m.SetSwitch("vm-subnet", network), m.SetSwitch("vm-network", exists))
	}
}

func fewerFree(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	free, err := machine.Free()
	return free < 50_000_000_000, err
}
