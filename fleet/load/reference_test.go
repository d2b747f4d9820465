package load

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/fleet"
)

const referenceHead = `# Configuration reference

Every block and attribute of the configuration language. ` + "`macfleet explain --schema PATH`" + ` prints the same in a terminal,
for example ` + "`macfleet explain --schema fleet.group`" + `. The guide is [configuration.md](../configuration.md).

All ` + "`*.fleet.hcl`" + ` files of a directory are one configuration. All examples on this page belong to one.
An attribute without a default can be left out unless it is **required**. Durations are written ` + "`\"90s\"`, `\"15m\"` or `\"1h30m\"`" + `.

This page is generated from the language itself: ` + "`go test ./fleet/load -run TestReference -update`" + `.
`

const stepsHead = `
## Steps

A step is one concern on a host. Its block is in ` + "`defaults`, `fleet`, `group` or `host`" + `; the nearest one wins, attribute by
attribute. [steps.md](../steps.md) says what each step does on a host.
`

// reference is docs/reference/configuration.md.
func reference(top fleet.SchemaBlock) string {
	var page, stepPart strings.Builder
	page.WriteString(referenceHead + "\n| block | what it holds |\n|---|---|\n")
	row := func(b fleet.SchemaBlock) {
		fmt.Fprintf(&page, "| [`%s`](#%s) | %s |\n", b.Path, anchor(b), cell(b.Text))
	}
	var blocks []fleet.SchemaBlock
	var walk func(b fleet.SchemaBlock)
	walk = func(b fleet.SchemaBlock) {
		for _, inner := range b.Blocks {
			if inner.Step {
				continue
			}
			row(inner)
			blocks = append(blocks, inner)
			walk(inner)
		}
	}
	walk(top)
	page.WriteString("| [steps](#steps) | What macfleet keeps on a host, one block for each concern. |\n")
	for _, b := range blocks {
		page.WriteString(blockPage(b))
	}
	stepPart.WriteString(stepsHead)
	for _, defaults := range top.Blocks {
		if defaults.Name != "defaults" {
			continue
		}
		for _, step := range defaults.Blocks {
			stepPart.WriteString(blockPage(below(step)))
			for _, inner := range step.Blocks {
				stepPart.WriteString(blockPage(below(inner)))
			}
		}
	}
	return page.String() + stepPart.String()
}

// below is a block of a step as it is called in any of the blocks that hold steps.
func below(b fleet.SchemaBlock) fleet.SchemaBlock {
	b.Path = strings.TrimPrefix(b.Path, "defaults.")
	return b
}

func anchor(b fleet.SchemaBlock) string { return strings.ReplaceAll(b.Path, ".", "") }

// blockPage is the section of one block.
func blockPage(b fleet.SchemaBlock) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n## %s\n\n%s", b.Path, b.Text)
	switch parent, _, _ := strings.Cut(b.Path, "."); {
	case b.Required:
		out.WriteString(" Required.")
	case b.Many:
		out.WriteString(" Any number of these blocks.")
	case !strings.Contains(b.Path, ".") && !b.Step:
		out.WriteString(" Optional, at most one.")
	case strings.Contains(b.Path, "."):
		fmt.Fprintf(&out, " Optional, in `%s`.", parent)
	}
	out.WriteString("\n")
	if len(b.Attributes) > 0 {
		out.WriteString("\n| attribute | type | default | unit | description |\n|---|---|---|---|---|\n")
		for _, a := range b.Attributes {
			value := "–"
			if a.Default != "" {
				value = "`" + a.Default + "`"
			}
			if a.Required {
				value = "**required**"
			}
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s |\n", a.Name, a.Type, cell(value), cmp.Or(a.Unit, "–"), cell(a.Text))
		}
	}
	if b.Name == "locals" {
		out.WriteString("\n```hcl\nlocals {\n  zones = [\"fr-par-1\", \"fr-par-3\"]\n}\n```\n")
		return out.String()
	}
	inside := ""
	if b.Name == "fleet" {
		for _, inner := range b.Blocks {
			if inner.Name == "group" {
				inside = sample(inner, whole, "")
			}
		}
	}
	fmt.Fprintf(&out, "\n```hcl\n%s```\n", sample(b, whole, inside))
	return out.String()
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
