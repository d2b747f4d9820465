package buildtools_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/maintest"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

func TestMain(m *testing.M) { maintest.Main(m) }

const step plan.StepID = "build_tools"

// find is what the step finds on a host with these tools.
func find(t *testing.T, spec fleet.Spec, tools stepstest.Tools, pending bool) plan.Finding {
	t.Helper()
	return findAll(t, spec, tools, stepstest.SettledHomebrew(), pending)
}

// findAll is find with what the host answers about Homebrew.
func findAll(t *testing.T, spec fleet.Spec, tools stepstest.Tools, brew stepstest.Homebrew, pending bool) plan.Finding {
	t.Helper()
	v := plan.View{Host: stepstest.Host(spec), Root: true, Pending: pending}
	id := "build_tools.state"
	if spec.BuildTools == nil {
		id = "build_tools.traces"
	}
	v.Facts = plan.Facts{id: inventory.Present(tools.Answer()), "build_tools.homebrew": inventory.Present(brew.Answer())}
	return stepstest.Find(t, step, v)
}

func brief(f plan.Finding) string {
	return strings.Join(stepstest.Lines(f, func(c plan.Change) string {
		return c.Reason.Code.String() + ": " + strings.TrimPrefix(c.Command.Name, "build_tools-")
	}), ", ")
}

// TestFindings: what was seen of a builder's tools, and what follows, in the order in which tools need each other.
func TestFindings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*stepstest.Tools)
		spec   func(*fleet.BuildTools)
		want   string
	}{
		"in sync":                      {},
		"a new Mac":                    {change: func(s *stepstest.Tools) { *s = stepstest.FactoryTools() }, want: "xcode-licence: licence, packer-missing: packer, build-tools-missing: files"},
		"no licence":                   {change: func(s *stepstest.Tools) { s.Licence = 69 }, want: "xcode-licence: licence"},
		"a check that fails":           {change: func(s *stepstest.Tools) { s.Licence = 1 }, want: "unread \"licence 1\": xcodebuild -license check: exit code 1"},
		"the tools only":               {change: func(s *stepstest.Tools) { s.Selected = "/Library/Developer/CommandLineTools" }, want: "xcode-selection-moved: select"},
		"another Xcode":                {change: func(s *stepstest.Tools) { s.Selected = "/Applications/Xcode-16.app/Contents/Developer" }, want: "xcode-selection-moved: select"},
		"nothing selected":             {change: func(s *stepstest.Tools) { s.Selected = "" }, want: "xcode-selection-moved: select"},
		"no Xcode":                     {change: func(s *stepstest.Tools) { s.NoXcode = true }, want: "xcode-licence: licence, refused xcode-missing"},
		"no Xcode wanted":              {change: func(s *stepstest.Tools) { s.NoXcode, s.Selected = true, "" }, spec: func(b *fleet.BuildTools) { b.Xcode = new("") }},
		"another packer":               {change: func(s *stepstest.Tools) { s.Packer = "edited" }, want: "packer-edited: packer"},
		"a person's packer":            {change: func(s *stepstest.Tools) { s.Packer, s.Receipt = "edited", "" }, want: "packer-edited: packer"},
		"an older packer":              {change: func(s *stepstest.Tools) { s.Receipt = strings.Repeat("01", 32) }, want: "packer-outdated: packer"},
		"no packer wanted":             {change: func(s *stepstest.Tools) { s.Packer, s.Receipt = "", "" }, spec: func(b *fleet.BuildTools) { b.Packer = nil }},
		"an archive without a digest":  {change: func(s *stepstest.Tools) { s.Packer = "" }, spec: func(b *fleet.BuildTools) { b.Packer.SHA256 = "" }, want: "packer-missing: packer, refused artifact-missing"},
		"other variables":              {change: func(s *stepstest.Tools) { s.Zshenv = strings.Replace(s.Zshenv, "cache'", "c'", 1) }, want: "shell-variables-differ: files"},
		"others' lines":                {change: func(s *stepstest.Tools) { s.Zshenv = "export A=1\n" + s.Zshenv + "export B=2\n" }},
		"no variables wanted":          {change: func(s *stepstest.Tools) { s.Zshenv = "" }, spec: func(b *fleet.BuildTools) { b.Environment = nil }},
		"a folder that jobs can't use": {change: func(s *stepstest.Tools) { s.Cache = "root:wheel:755" }, want: "cache-folder-differs: files"},
		"no folder":                    {change: func(s *stepstest.Tools) { s.Cache = "" }, want: "cache-folder-differs: files"},
	} {
		tools, spec := stepstest.SettledTools(), stepstest.BuildTools()
		if tc.change != nil {
			tc.change(&tools)
		}
		if tc.spec != nil {
			tc.spec(spec)
		}
		stepstest.Expect(t, name, tc.want, brief(find(t, fleet.Spec{BuildTools: spec}, tools, false)))
	}
	stepstest.Expect(t, "an earlier run", "unfinished: files", brief(find(t, fleet.Spec{BuildTools: stepstest.BuildTools()}, stepstest.SettledTools(), true)))
}

// TestHomebrew: what was seen of Homebrew, and what follows. A formula is installed once and never upgraded.
func TestHomebrew(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*stepstest.Homebrew)
		spec   func(*fleet.BuildTools)
		want   string
		text   string
	}{
		"in sync":                       {},
		"before trust":                  {change: func(h *stepstest.Homebrew) { h.Trusts, h.Trusted = false, "" }},
		"the whole tap is trusted":      {change: func(h *stepstest.Homebrew) { h.Trusted = `{"trustedtaps": ["acme/tap"]}` }},
		"none":                          {change: func(h *stepstest.Homebrew) { *h = stepstest.Homebrew{Missing: true} }, want: "homebrew-missing: brew, formula-missing: formulae"},
		"none, and no installer":        {change: func(h *stepstest.Homebrew) { *h = stepstest.Homebrew{Missing: true} }, spec: func(b *fleet.BuildTools) { b.Homebrew = nil }, want: "homebrew-missing: brew, formula-missing: formulae, refused homebrew-missing"},
		"none, and nothing of it":       {change: func(h *stepstest.Homebrew) { *h = stepstest.Homebrew{Missing: true} }, spec: func(b *fleet.BuildTools) { b.Homebrew, b.Formulae = nil, nil }},
		"another tap's is not trusted":  {change: func(h *stepstest.Homebrew) { h.Trusted = "{}" }, want: "untrusted-tap: formulae", text: "Homebrew does not trust acme/tap/crane"},
		"no file of trust":              {change: func(h *stepstest.Homebrew) { h.Trusted = "" }, want: "untrusted-tap: formulae"},
		"one missing":                   {change: func(h *stepstest.Homebrew) { h.Versions = "crane 0.20.6\n" }, want: "formula-missing: formulae", text: "git-lfs is not installed"},
		"upgraded":                      {change: func(h *stepstest.Homebrew) { h.Versions = "git-lfs 3.8.0\ncrane 0.20.6\n" }, want: "formula-upgraded: formulae", text: "git-lfs is 3.8.0, and macfleet installed 3.7.1; Homebrew has only the newest, so this one is kept and pinned"},
		"upgraded, and the old is left": {change: func(h *stepstest.Homebrew) { h.Versions += "git-lfs 3.8.0\n" }, want: "formula-upgraded: formulae"},
		"not pinned":                    {change: func(h *stepstest.Homebrew) { h.Pinned = "crane\n" }, want: "formula-not-pinned: formulae", text: "git-lfs is not pinned"},
		"a person's own":                {change: func(h *stepstest.Homebrew) { h.Noted = "" }, want: "formula-not-pinned: formulae"},
		"the worst is the reason":       {change: func(h *stepstest.Homebrew) { h.Versions, h.Pinned, h.Trusted = "crane 0.20.6\n", "", "{}" }, want: "untrusted-tap: formulae"},
	} {
		brew, spec := stepstest.SettledHomebrew(), stepstest.BuildTools()
		if tc.change != nil {
			tc.change(&brew)
		}
		if tc.spec != nil {
			tc.spec(spec)
		}
		f := findAll(t, fleet.Spec{BuildTools: spec}, stepstest.SettledTools(), brew, false)
		stepstest.Expect(t, name, tc.want, brief(f))
		if tc.text != "" {
			stepstest.Expect(t, name, tc.text, f.Changes[0].Reason.Text)
		}
	}
}

// TestRemoval: only what macfleet made is removed.
func TestRemoval(t *testing.T) {
	t.Parallel()
	stepstest.Expect(t, "set up", "build-tools-not-wanted: remove", brief(find(t, fleet.Spec{}, stepstest.SettledTools(), false)))
	stepstest.Expect(t, "a person's own", "", brief(find(t, fleet.Spec{}, stepstest.FactoryTools(), false)))
	stepstest.Expect(t, "partly removed", "build-tools-not-wanted: remove", brief(find(t, fleet.Spec{}, stepstest.FactoryTools(), true)))
}

// TestVariables: a value reaches the shell as it is written.
func TestVariables(t *testing.T) {
	t.Parallel()
	f := find(t, fleet.Spec{BuildTools: &fleet.BuildTools{Environment: []string{"A=it's $HOME `x`", "B="}}}, stepstest.FactoryTools(), false)
	for _, c := range f.Changes {
		if c.Command.Name == "build_tools-files" {
			stepstest.Expect(t, "lines", "export A='it'\\''s $HOME `x`'\nexport B=''", c.Command.Args[0])
			return
		}
	}
	t.Error("no change writes them")
}
