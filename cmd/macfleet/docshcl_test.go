package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/macfleet/macfleet/fleet/load"
)

// TestDocsConfigurations: macfleet loads every HCL block of the pages. A part replaces the blocks of the same names in
// the example of three fleets.
func TestDocsConfigurations(t *testing.T) {
	t.Parallel()
	read := 0
	for _, page := range pages(t) {
		if strings.HasPrefix(page, "docs/reference/") { // is generated from the loader's schema
			continue
		}
		for _, b := range blocks(t, page) {
			if b.kind != "hcl" {
				continue
			}
			read++
			piece, diags := hclwrite.ParseConfig([]byte(certified(t, b.text)), b.place(), hcl.InitialPos)
			if diags.HasErrors() {
				t.Errorf("%s: %v", b.place(), diags)
				continue
			}
			whole := piece.Body()
			if whole.FirstMatchingBlock("macfleet", nil) == nil {
				whole = complete(t, whole)
			}
			files := fstest.MapFS{"all.fleet.hcl": {Data: hclwrite.Format(whole.BuildTokens(nil).Bytes())}}
			if _, diags := load.Dir(files, load.Options{Environment: "production"}); diags.HasErrors() {
				t.Errorf("%s: %v", b.place(), diags)
			}
		}
	}
	if read < 11 {
		t.Errorf("only %d pieces were read", read)
	}
}

// certified inserts a certificate where a page has "…".
func certified(t *testing.T, text string) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	must(t, err)
	made := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(nil, made, made, key.Public(), key)
	must(t, err)
	return strings.Replace(text, "    …\n", "    "+base64.StdEncoding.EncodeToString(der)+"\n", 1)
}

// complete puts the blocks of a piece into the example, replacing those with the same names.
func complete(t *testing.T, piece *hclwrite.Body) *hclwrite.Body {
	t.Helper()
	names, err := filepath.Glob("../../examples/three-fleets/*.fleet.hcl")
	must(t, err)
	whole := hclwrite.NewEmptyFile().Body()
	for _, name := range names {
		text, err := os.ReadFile(name)
		must(t, err)
		file, diags := hclwrite.ParseConfig(text, name, hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		for _, b := range file.Body().Blocks() {
			whole.AppendBlock(b)
		}
	}
	for _, b := range piece.Blocks() {
		if there := whole.FirstMatchingBlock(b.Type(), b.Labels()); there != nil {
			fill(b.Body(), there.Body())
			whole.RemoveBlock(there)
		}
		whole.AppendBlock(b)
	}
	return whole
}

// fill adds what the piece omits from the example's block.
func fill(piece, example *hclwrite.Body) {
	for name, a := range example.Attributes() {
		if piece.GetAttribute(name) == nil {
			piece.SetAttributeRaw(name, a.Expr().BuildTokens(nil))
		}
	}
	for _, b := range example.Blocks() {
		if !slices.ContainsFunc(piece.Blocks(), func(p *hclwrite.Block) bool { return p.Type() == b.Type() && slices.Equal(p.Labels(), b.Labels()) }) {
			piece.AppendBlock(b)
		}
	}
}
