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
	return &fleet.BuildTools{Packer: Packer(), Homebrew: &fleet.Artifact{Name: "homebrew", Version: "6.0.18", SHA256: strings.Repeat("3b", 32), Size: 36 << 10, Fetch: fleet.FetchHost},
		Formulae: []string{"git-lfs", "acme/tap/crane"}, Cache: new("/opt/build-cache"), Environment: []string{"ACME_BUILD_ROOT=/opt/build-cache"}}
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

// Homebrew is what a Mac answers about Homebrew, for tests.
type Homebrew struct {
	Missing  bool
	Trusts   bool // it has trusted taps
	Trusted  string
	Versions string // lines "formula version"
	Pinned   string // a formula a line
	Noted    string // lines "formula version"
}

// SettledHomebrew is Homebrew as the sample block sets it up.
func SettledHomebrew() Homebrew {
	const versions = "git-lfs 3.7.1\ncrane 0.20.6\n"
	return Homebrew{Trusts: true, Trusted: "{\n\"acme/tap/crane\": \"formula\"\n}\n", Versions: versions, Pinned: "git-lfs\ncrane\n", Noted: versions}
}

// Answer is the answer of the probe.
func (h Homebrew) Answer() plan.Answer {
	var a answer
	if h.Missing {
		return a.end()
	}
	a.part("", "homebrew 0 "+map[bool]string{true: "trusts", false: "no"}[h.Trusts])
	if h.Trusted != "" {
		a.part(h.Trusted, "trusted 0")
	}
	a.part(h.Versions, "versions 0")
	a.part(h.Pinned, "pinned 0")
	if h.Noted != "" {
		a.part(h.Noted, "noted 0")
	}
	return a.end()
}
