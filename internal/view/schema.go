package view

import (
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/fleet"
)

// Schema shows a block of the configuration language: its attributes, and the blocks in it. The top has no path.
func (t *Text) Schema(b fleet.SchemaBlock) {
	if b.Path == "" {
		t.Say("Blocks of the configuration. Details: macfleet explain --schema PATH, for example fleet.group.type.")
	} else {
		t.heading(b.Heading())
		t.line(2, "", b.Text+given(b.Required, " Required.")+given(b.Many, " Any number of these blocks."))
	}
	for i, a := range b.Attributes {
		if i == 0 {
			t.section("Attributes")
		}
		t.line(2, "", a.Name+"  ("+attributeType(a)+")")
		t.line(6, "", a.Text)
	}
	t.schemaBlocks("Blocks", b.Blocks, false)
	t.schemaBlocks("Steps", b.Blocks, true)
	for _, inner := range b.Blocks {
		if b.Path == "" && inner.Name == "defaults" {
			t.schemaBlocks("Steps, in defaults, fleet, group and host", inner.Blocks, true)
		}
	}
	if example := schemaExample(b); example != "" {
		t.section("Example")
		t.Print(example)
	}
}

// schemaBlocks lists those blocks that are steps, or those that are none.
func (t *Text) schemaBlocks(title string, all []fleet.SchemaBlock, steps bool) {
	titled := false
	for _, b := range all {
		if b.Step != steps {
			continue
		}
		if !titled {
			t.section(title)
			titled = true
		}
		t.pair(2, 15, b.Name, b.Text)
	}
}

// SchemaAttribute shows an attribute of the configuration language.
func (t *Text) SchemaAttribute(a fleet.SchemaAttribute) {
	t.heading(a.Path + "  (" + attributeType(a) + ")")
	t.line(2, "", a.Text)
	t.section("Example")
	t.Print("  " + a.Name + " = " + a.Example + "\n")
}

// attributeType says what may stand there, and what holds without it.
func attributeType(a fleet.SchemaAttribute) string {
	return listed(", ", a.Type, given(a.Unit != "", "in %s", a.Unit), given(a.Required, "required"), given(a.Default != "", "default %s", a.Default))
}

// schemaExample writes a block with the examples of its attributes.
func schemaExample(b fleet.SchemaBlock) string {
	if len(b.Attributes) == 0 {
		return ""
	}
	width := 0
	for _, a := range b.Attributes {
		width = max(width, len(a.Name))
	}
	var out strings.Builder
	fmt.Fprintf(&out, "  %s%s {\n", b.Name, given(b.Example != "", " %s", b.Example))
	for _, a := range b.Attributes {
		fmt.Fprintf(&out, "    %-*s = %s\n", width, a.Name, a.Example)
	}
	out.WriteString("  }\n")
	return out.String()
}
