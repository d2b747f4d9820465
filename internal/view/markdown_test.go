package view_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

func markdown(t *testing.T, p *plan.Plan, limit int) string {
	t.Helper()
	m, err := view.NewMarkdown(limit)
	must(t, err)
	var b bytes.Buffer
	must(t, m.Plan(&b, p))
	return b.String()
}

// TestMarkdown keeps what a comment on a change looks like.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]*plan.Plan{"everything": everything(), "joining": joining(), "clean": clean(), "nodes": nodes()} {
		golden(t, "markdown-"+name+".md", markdown(t, p, 60_000))
	}
	golden(t, "markdown-short.md", markdown(t, joining(), view.LeastMarkdown))
}

// kept is a plan file with one of each thing.
func kept() wire.PlanFile {
	f := wire.NewPlanFile(everything())
	f.ConfigurationHash, f.MadeBy = "sha256:"+strings.Repeat("0a", 32), "sam@desk"
	f.MadeAt = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	f.ExpiresAt, f.On, f.Plan.Rollback = f.MadeAt.Add(24*time.Hour), []string{"fleet=runners"}, true
	return f
}

// TestPlanFileDocument: a plan file says what it is, and has the plan as plan --json
// has it.
func TestPlanFileDocument(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	must(t, wire.Write(&b, kept().Shown(kept().ExpiresAt)))
	rest, part := without(t, b.Bytes(), "plan")
	if diff := cmp.Diff(document(t, everything()), part); diff != "" {
		t.Errorf("the plan in a plan file differs from that of plan --json:\n%s", diff)
	}
	golden(t, "planfile.json", rest)
}

// codeSpan is a text in which Markdown reads no markup and no name.
var codeSpan = regexp.MustCompile("(?:^| )`[^`]*`")

// TestMarkdownStaysInItsBounds, whatever a host says and how little room there is:
// it is never too long, and nothing in it opens or ends what is not its own.
func TestMarkdownStaysInItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		p := everything()
		for i := range p.Actions {
			text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"```\n</details>\n@everyone", "````", "<script>", strings.Repeat("x `` ", 300)})).Draw(r, "says")
			p.Actions[i].Fields = []plan.Field{{Name: "it", Before: text, After: "b"}}
			if p.Actions[i].Step != "" {
				p.Actions[i].Step = plan.StepID(rapid.SampledFrom([]string{"power", "</code></summary>@acme/all"}).Draw(r, "step"))
			}
		}
		limit := rapid.IntRange(view.LeastMarkdown, 6000).Draw(r, "limit")
		text := markdown(t, p, limit)
		if len(text) > limit {
			t.Fatalf("%d bytes of %d:\n%s", len(text), limit, text)
		}
		outside, fence := 0, ""
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			switch {
			case fence == "" && strings.HasPrefix(line, "```"):
				fence = strings.TrimSuffix(line, "text")
			case fence != "" && line == fence:
				fence = ""
			case fence != "":
			case strings.HasPrefix(line, "<details>"):
				if outside++; line != "<details><summary>Every host, step and field</summary>" {
					t.Fatalf("a title that ends early: %s", line)
				}
			case line == "</details>":
				outside--
			case strings.ContainsAny(strings.ReplaceAll(codeSpan.ReplaceAllString(line, ""), "@\u2060", ""), "<@"):
				t.Fatalf("outside of a fence: %s", line)
			case strings.HasPrefix(line, "|") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 5:
				t.Fatalf("a row of other columns: %s", line)
			}
			if outside < 0 || outside > 1 {
				t.Fatalf("%d parts are open at %s", outside, line)
			}
		}
		if fence != "" || outside != 0 {
			t.Fatalf("something is left open:\n%s", text)
		}
	})
	if _, err := view.NewMarkdown(view.LeastMarkdown - 1); err == nil {
		t.Error("a limit that is too small is taken")
	}
}

// TestGitHubAnnotations: a note is on the line of the value, else of its block; a value
// that is not in the configuration has none, and no text breaks out of its note.
func TestGitHubAnnotations(t *testing.T) {
	t.Parallel()
	at := func(line int) fleet.Source {
		return fleet.Source{Level: fleet.InDefaults, File: "main,a.fleet.hcl", Line: line}
	}
	cfg := &fleet.Config{Fleets: []fleet.Fleet{{Name: "runners", Groups: []fleet.Group{{Name: "m2", Sources: fleet.Sources{"power": at(7), "power.sleep": at(8), "type": at(3)}}}}}}
	two, three := member(2, "runners"), member(3, "runners")
	p := &plan.Plan{Hosts: []plan.Host{two, three}, Actions: []plan.Action{power(two), power(three)}}
	block, claim, nobody, held := power(two), power(two), power(two), power(three)
	block.Fields = []plan.Field{{Name: "disk sleep", Before: "100%\r\n::error::x", After: ""}}
	block.Disruption = plan.Reboot
	claim.Kind, claim.Step = plan.ClaimServer, ""
	nobody.Step = "tart"
	held.Refusal = &plan.Trouble{Code: plantest.Code("held")}
	p.Actions = append(p.Actions, block, claim, nobody, held)
	var b bytes.Buffer
	must(t, view.GitHubAnnotations(&b, p, cfg, "fleets/acme"))
	golden(t, "annotations.txt", b.String())
	b.Reset()
	p.Actions = nil
	for i := range 25 {
		a := power(two)
		a.Fields = []plan.Field{{Name: "sleep", Before: strings.Repeat("x", i+1), After: "never"}}
		p.Actions = append(p.Actions, a)
	}
	must(t, view.GitHubAnnotations(&b, p, cfg, "."))
	if text := b.String(); strings.Count(text, "\n") != 10 || !strings.Contains(text, "and 15 more notes") {
		t.Errorf("%s", text)
	}
}
