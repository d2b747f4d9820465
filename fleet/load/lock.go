package load

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Pin is what an artifact block says of its bytes.
type Pin struct {
	SHA256 string
	Size   int64 // bytes
}

// Lock writes pins into the artifact blocks of a file, by their names, and
// returns the new text. Nothing else changes, and line ends are LF or CRLF as they
// were; a text in the canonical layout stays in it. Names without a block
// in the file are skipped. The error names an argument that is not a literal,
// such as a reference: a digest cannot stand in for it.
func Lock(name string, src []byte, pins map[string]Pin) ([]byte, error) {
	file, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, fmt.Errorf("%s: %w", name, diags)
	}
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok {
		return src, nil
	}
	var edits []edit
	for _, block := range body.Blocks {
		if block.Type != "artifact" || len(block.Labels) != 1 {
			continue
		}
		pin, known := pins[block.Labels[0]]
		if !known {
			continue
		}
		for _, value := range [][2]string{{"sha256", strconv.Quote(pin.SHA256)}, {"size", strconv.FormatInt(pin.Size, 10)}} {
			e, ok := setting(src, block, value[0], value[1])
			if !ok {
				return nil, fmt.Errorf("%s: %s of artifact %q is not a literal value, so it cannot be replaced; write the value itself", name, value[0], block.Labels[0])
			}
			edits = append(edits, e)
		}
	}
	// From the end, so that no edit moves another. Those at one place keep their order.
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	out := bytes.Clone(src)
	for _, e := range slices.Backward(edits) {
		out = slices.Replace(out, e.from, e.to, []byte(e.text)...)
	}
	if bytes.Equal(hclwrite.Format(src), src) {
		out = hclwrite.Format(out)
	}
	return out, nil
}

// edit puts a text in the place of some bytes.
type edit struct {
	from, to int
	text     string
}

// setting gives an argument of a block a value, in its own place or in a line
// behind the last argument's.
func setting(src []byte, block *hclsyntax.Block, name, value string) (edit, bool) {
	if attr := block.Body.Attributes[name]; attr != nil {
		at := attr.Expr.Range()
		plain := len(attr.Expr.Variables()) == 0 && bytes.IndexByte([]byte(`"0123456789`), src[at.Start.Byte]) >= 0
		val, diags := attr.Expr.Value(nil)
		return edit{at.Start.Byte, at.End.Byte, value}, plain && !diags.HasErrors() && val.Type().IsPrimitiveType()
	}
	attrs := slices.Collect(maps.Values(block.Body.Attributes))
	if len(attrs) == 0 {
		return edit{}, false
	}
	last := slices.MaxFunc(attrs, func(a, b *hclsyntax.Attribute) int { return a.SrcRange.Start.Byte - b.SrcRange.Start.Byte })
	end := lineEnd(src, last.SrcRange.End.Byte)
	if end > block.CloseBraceRange.Start.Byte {
		return edit{}, false // the whole block is one line
	}
	indent := src[bytes.LastIndexByte(src[:last.SrcRange.Start.Byte], '\n')+1 : last.SrcRange.Start.Byte]
	if len(bytes.TrimLeft(indent, " \t")) > 0 {
		indent = nil // a comment
	}
	newline := "\n"
	if bytes.HasSuffix(src[:end], []byte("\r\n")) {
		newline = "\r\n"
	}
	return edit{end, end, string(indent) + name + " = " + value + newline}, true
}

// lineEnd returns where the line of an argument that ends at a place is over:
// comments may follow it, and those may have several lines.
func lineEnd(src []byte, from int) int {
	tokens, _ := hclsyntax.LexConfig(src, "", hcl.InitialPos) // it was parsed already
	for _, t := range tokens {
		if t.Range.Start.Byte >= from && (t.Type == hclsyntax.TokenNewline || t.Type == hclsyntax.TokenComment && bytes.HasSuffix(t.Bytes, []byte("\n"))) {
			return t.Range.End.Byte
		}
	}
	return len(src)
}
