package load

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// The parser and the evaluator call themselves as deep as a text is nested, and
// Go ends the process when a stack is full. These bounds are far above any real
// configuration and far below that.
const (
	maxFile      = 1 << 20 // bytes
	maxDepth     = 100     // brackets in brackets
	maxOperators = 10_000  // in one file; a chain of them nests without brackets
	maxExponent  = 4       // digits of a number's exponent
)

const tooLarge = "Text too large"

// excess returns the fault of a text that goes beyond the bounds, or nil.
func excess(name string, content []byte) *hcl.Diagnostic {
	if fault := oversize(name, int64(len(content))); fault != nil {
		return fault
	}
	tokens, _ := hclsyntax.LexConfig(content, name, hcl.InitialPos)
	depth, operators := 0, 0
	for _, t := range tokens {
		switch kindOf(t.Type) {
		case opens:
			depth++
		case closes:
			depth = max(depth-1, 0)
		case chains:
			operators++
		case number:
			if longExponent(string(t.Bytes)) {
				return excessAt(t.Range, "The exponent of this number is too large.")
			}
		}
		if t.Type == hclsyntax.TokenOBrack || t.Type == hclsyntax.TokenTemplateControl {
			operators++
		}
		switch {
		case depth > maxDepth:
			return excessAt(t.Range, "Brackets are nested more than %d deep here. Write it flatter.", maxDepth)
		case operators > maxOperators:
			return excessAt(t.Range, "The file has more than %d operators and lists. Split it into several files.", maxOperators)
		}
	}
	return nil
}

// oversize returns the fault of a text of so many bytes, or nil.
func oversize(name string, size int64) *hcl.Diagnostic {
	if size <= maxFile {
		return nil
	}
	return excessAt(fileStart(name), "The text has %d bytes; at most %d are read. Split it into several files.", size, maxFile)
}

func excessAt(at hcl.Range, detail string, args ...any) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: tooLarge, Detail: fmt.Sprintf(detail, args...), Subject: &at}
}

type tokenKind int

const (
	other tokenKind = iota
	opens
	closes
	chains
	number
)

func kindOf(t hclsyntax.TokenType) tokenKind {
	switch t {
	case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote,
		hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
		return opens
	case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote,
		hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
		return closes
	case hclsyntax.TokenStar, hclsyntax.TokenSlash, hclsyntax.TokenPlus, hclsyntax.TokenMinus, hclsyntax.TokenPercent,
		hclsyntax.TokenEqualOp, hclsyntax.TokenNotEqual, hclsyntax.TokenLessThan, hclsyntax.TokenLessThanEq,
		hclsyntax.TokenGreaterThan, hclsyntax.TokenGreaterThanEq, hclsyntax.TokenAnd, hclsyntax.TokenOr,
		hclsyntax.TokenBang, hclsyntax.TokenQuestion:
		return chains
	case hclsyntax.TokenNumberLit:
		return number
	}
	return other
}

func longExponent(text string) bool {
	i := strings.IndexAny(text, "eE")
	return i >= 0 && len(strings.TrimLeft(text[i+1:], "+-0")) > maxExponent
}
