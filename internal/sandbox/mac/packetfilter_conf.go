package mac

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// pfFile is the content of a file of pf.
type pfFile struct {
	rules  []pfRule
	tables []pfTableDef
	loads  []pfLoad
	inline []pfInline
}

// pfTableDef is the definition of a table.
type pfTableDef struct {
	name string
	line int
	table
}

// pfLoad is a load anchor statement.
type pfLoad struct{ anchor, file string }

// pfInline is an anchor with its rules in braces.
type pfInline struct {
	anchor string
	body   pfFile
}

// pfStage is a part of the file; the parts have a fixed order.
type pfStage int

const (
	pfOptions pfStage = iota + 1
	pfNormalization
	pfQueueing
	pfTranslation
	pfFiltering
)

const pfOutOfOrder = "Rules must be in order: options, normalization, queueing, translation, filtering"

// errPFUnmodelled is for parts of pf that the simulation lacks.
var errPFUnmodelled = errors.New("not modelled")

func pfUnmodelled(what string) error { return fmt.Errorf("%w: %s", errPFUnmodelled, what) }

// pfParser reads one file.
type pfParser struct {
	tokens   []pfToken
	macros   map[string]string
	policy   string // of block rules that do not set it
	stage    pfStage
	anyOrder bool
	depth    int // of braces around rules
	last     int // line of the last token read
	expanded int // number of macros so far
	nameless *int
	out      pfFile
	faults   []pfLine
	lacks    []string // what is not modelled
}

// parsePF reads a file of pf. It returns all faults at once, as pfctl prints them.
func parsePF(text string) (pfFile, []pfLine, []string) {
	tokens, err := pfTokens(text, 1)
	var fault pfLine
	if errors.As(err, &fault) {
		return pfFile{}, []pfLine{fault}, nil
	}
	p := &pfParser{tokens: tokens, macros: map[string]string{}, policy: "drop", nameless: new(int)}
	p.statements()
	return p.out, p.faults, p.lacks
}

// statements reads up to the end, or to the brace that ends the rules of an anchor.
func (p *pfParser) statements() {
	for {
		p.skipNewlines()
		if next := p.peek(); next.kind == pfEnd || p.depth > 0 && next.is("}") {
			return
		}
		line := p.peek().line
		if err := p.statement(); err != nil {
			p.fault(line, err)
		}
	}
}

// fault records a fault and continues with the next line.
func (p *pfParser) fault(line int, err error) {
	var known pfLine
	switch {
	case errors.Is(err, errPFUnmodelled):
		p.lacks = append(p.lacks, err.Error())
	case errors.As(err, &known):
		p.faults = append(p.faults, known)
	default:
		p.faults = append(p.faults, pfLine{line, err.Error()})
	}
	for next := p.peek(); next.kind != pfEnd && next.kind != pfNewline; next = p.peek() {
		p.take()
	}
}

func (p *pfParser) statement() error {
	first := p.peek()
	if first.kind == pfWord && len(p.tokens) > 1 && p.tokens[1].is("=") {
		return p.macro()
	}
	p.take()
	if first.kind != pfWord {
		return pfLine{first.line, "syntax error"}
	}
	switch first.text {
	case "table":
		return p.tableDef(first.line)
	case "set":
		if err := p.enter(pfOptions, first.line); err != nil {
			return err
		}
		return p.option()
	case "load":
		return p.loadAnchor()
	case "altq", "queue":
		if err := p.enter(pfQueueing, first.line); err != nil {
			return err
		}
		return p.opaque()
	case "include":
		return pfUnmodelled("include")
	}
	return p.ruleLine(first)
}

// enter continues to a part of the file.
func (p *pfParser) enter(stage pfStage, line int) error {
	if p.stage > stage && !p.anyOrder {
		return pfLine{line, pfOutOfOrder}
	}
	p.stage = stage
	return nil
}

func (p *pfParser) macro() error {
	name := p.take().text
	p.take()
	var parts []string
	for next := p.peek(); next.kind == pfWord || next.kind == pfQuoted; next = p.peek() {
		parts = append(parts, p.take().text)
	}
	if len(parts) == 0 {
		return p.unexpected()
	}
	p.macros[name] = strings.Join(parts, " ")
	return p.endOfLine()
}

// option reads the option after set.
func (p *pfParser) option() error {
	name := p.take()
	known := []string{"block-policy", "debug", "fingerprints", "hostid", "limit", "loginterface", "optimization", "require-order",
		"ruleset-optimization", "skip", "state-defaults", "state-policy", "timeout"}
	value := p.peek()
	switch {
	case name.kind != pfWord || !slices.Contains(known, name.text) || !value.word():
		if value.is("{") && (name.text == "limit" || name.text == "timeout") {
			return p.opaque()
		}
		return pfLine{name.line, "syntax error"}
	case name.text == "block-policy" && value.text != "drop" && value.text != "return":
		return pfLine{value.line, "syntax error"}
	case name.text == "block-policy":
		p.policy = value.text
	case name.text == "require-order":
		p.anyOrder = value.text == "no"
	}
	return p.opaque()
}

// opaque skips the rest of a statement that changes no rules.
func (p *pfParser) opaque() error {
	for depth := 0; ; {
		switch next := p.peek(); {
		case next.kind == pfEnd || next.kind == pfNewline && depth == 0:
			if depth > 0 {
				return p.unexpected()
			}
			return nil
		case next.is("{"):
			depth++
		case next.is("}"):
			depth--
		}
		p.take()
	}
}

func (p *pfParser) loadAnchor() error {
	if err := p.want("anchor"); err != nil {
		return err
	}
	anchor := p.take()
	if !anchor.word() {
		return pfLine{anchor.line, "syntax error"}
	}
	if err := p.want("from"); err != nil {
		return err
	}
	file := p.take()
	if !file.word() {
		return pfLine{file.line, "syntax error"}
	}
	p.out.loads = append(p.out.loads, pfLoad{anchor.text, file.text})
	return p.endOfLine()
}
