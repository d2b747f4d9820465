package stepstest

import (
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

// Packer is the sample builders' packer.
func Packer() *fleet.Artifact {
	return &fleet.Artifact{Name: "packer", Version: "1.15.4", SHA256: strings.Repeat("9a", 32), Size: 12 << 20, Fetch: fleet.FetchHost}
}

// BuildTools is the sample block.
func BuildTools() *fleet.BuildTools {
	return &fleet.BuildTools{Packer: Packer(), Cache: new("/opt/build-cache"), Environment: []string{"ACME_BUILD_ROOT=/opt/build-cache"}}
}

// Tools is what a Mac answers about its build tools, for tests.
type Tools struct {
	Receipt  string // digest of packer by macfleet's receipt; empty: none
	Packer   string // "installed", "edited" or empty: none
	Zshenv   string
	Cache    string // owner, group and mode; empty: it is missing
	NoXcode  bool
	Licence  int // the exit code of the check
	Selected string
}

// FactoryTools is what a new Mac with Xcode answers.
func FactoryTools() Tools {
	return Tools{Licence: 69, Selected: "/Applications/Xcode.app/Contents/Developer"}
}

// BareTools is what a builder answers that was set up with nothing but the defaults.
func BareTools() Tools {
	return Tools{Selected: "/Applications/Xcode.app/Contents/Developer"}
}

// SettledTools is what a builder answers that was set up with the sample block.
func SettledTools() Tools {
	return Tools{Receipt: Packer().SHA256, Packer: "installed", Zshenv: "# BEGIN macfleet\nexport ACME_BUILD_ROOT='/opt/build-cache'\n# END macfleet\n", Cache: "m1:staff:755",
		Selected: "/Applications/Xcode.app/Contents/Developer"}
}

// Answer is the answer of the probe.
func (t Tools) Answer() plan.Answer {
	var a answer
	const stamp = "204 120000000 1763000000"
	if t.Receipt != "" {
		a.part(receiptText(t.Receipt, "1.15.4", "-", stamp, strings.Repeat("d4", 32)), "file 0 0:0:644 /usr/local/lib/macfleet/build_tools.receipt")
	}
	switch t.Packer {
	case "installed":
		a.part("stamp "+stamp+"\n", "packer 0")
	case "edited":
		a.part("stamp 9 9 9\nsha "+strings.Repeat("cd", 32)+"\n", "packer 0")
	}
	if t.Zshenv != "" {
		a.part(t.Zshenv, "file 0 0:0:644 /etc/zshenv")
	}
	if t.Cache != "" {
		a.part("", "cache 0 "+t.Cache)
	}
	if !t.NoXcode {
		a.part("", "xcode 0")
		a.part("", "licence "+strconv.Itoa(t.Licence))
	}
	if t.Selected == "" {
		a.part("", "selected 2")
	} else {
		a.part(t.Selected+"\n", "selected 0")
	}
	a.part("", "kept 0")
	a.disk(400_000_000)
	return a.end()
}
