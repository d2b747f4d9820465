package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
)

// TestBake: one apply takes a server of the pool to a builder that bakes an image in a job of the session and pushes it. On macOS 26
// nothing is done by hand; on 15.2 the plan says the one thing that is left, with the host's address.
func TestBake(t *testing.T) {
	t.Parallel()
	for version, os := range map[string]string{"26.3": "Tahoe", "15.2": "Sequoia"} {
		parallel(t, version, func(t *testing.T) {
			c := builders(1)
			c.Fleets[0].OS = os
			spec := &c.Fleets[0].Groups[0].Spec
			spec.Tart = &fleet.Tart{Artifact: sample("tart", "2.32.1", "tart-2.32.1.tar.gz")}
			spec.System, spec.LocalNetwork, spec.Disk = &fleet.System{}, &fleet.LocalNetwork{}, &fleet.Disk{Delete: []string{"bake-*"}}
			spec.BuildTools = &fleet.BuildTools{Packer: sample("packer", "1.15.4", "packer_1.15.4_darwin_arm64.zip"), Homebrew: sample("homebrew", "6.0.18", "homebrew-6.0.18.sh"),
				Formulae: []string{"crane"}, Cache: new("/opt/build-cache"), Environment: []string{"ACME_BUILD_ROOT=/opt/build-cache"}}
			*spec = spec.WithDefaults()
			w, e := onSystem(t, version, c)
			p := planned(t, e)
			if len(p.Actions) > 0 {
				t.Errorf("the next plan has %v", p.Actions)
			}
			h := p.Hosts[0]
			b := builderOf(t, w, h.Name)
			switch {
			case version == "26.3" && len(h.Warnings) > 0:
				t.Errorf("something is left: %v", h.Warnings)
			case version == "15.2" && (len(h.Warnings) != 1 || h.Warnings[0].Code.String() != "local-network-click" || !strings.Contains(h.Warnings[0].Remedy, "vnc://"+h.Server.Address)):
				t.Errorf("it says %v", h.Warnings)
			case version == "15.2":
				must(t, b.machine.SetSwitch("local-network", "clicked")) // as it says
			}
			b.takesJobs(t)
			must(t, b.machine.StartVM("bake-1"))
			const job = `<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0"><dict><key>Label</key><string>bake</string><key>ProgramArguments</key><array><string>/bin/zsh</string><string>/Users/m1/bake.sh</string></array>
<key>RunAtLoad</key><true/><key>StandardOutPath</key><string>/Users/m1/bake.log</string><key>StandardErrorPath</key><string>/Users/m1/bake.log</string></dict></plist>`
			const script = `set -e
PATH=$(cat /Users/m1/actions-runner/.path)
packer version >/dev/null
crane
[ "$ACME_BUILD_ROOT" = /opt/build-cache ] && touch "$ACME_BUILD_ROOT/layer"
[ "$(xcode-select -p)" = /Applications/Xcode.app/Contents/Developer ]
nc -z -G 3 -w 3 "$(tart ip bake-1)" 22
tart stop bake-1
echo baked`
			runs(t, b.machine, "m1", "cat >bake.sh <<'SCRIPT'\n"+script+"\nSCRIPT\ncat >bake.plist <<'JOB'\n"+job+"\nJOB\nlaunchctl bootstrap gui/501 /Users/m1/bake.plist")
			must(t, b.machine.Settle(t.Context()))
			if log := runs(t, b.machine, "m1", "cat bake.log; rm bake.sh bake.plist bake.log"); !strings.HasSuffix(log, "baked") {
				t.Fatalf("the bake says %q", log)
			}
			err := b.machine.StartPush("bake-1", "registry.acme.dev/images/bake:1")
			if err == nil {
				err = b.machine.Advance(7 * time.Minute)
			}
			must(t, err)
			if pushes, err := b.machine.Pushes(); err != nil || len(pushes) != 1 || !pushes[0].Ended || pushes[0].Failure != "" {
				t.Errorf("the push came to %+v, %v", pushes, err)
			}
		})
	}
}
