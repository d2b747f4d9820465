package mac

import "strings"

// is reports whether the token is this sign.
func (t pfToken) is(sign string) bool { return t.kind == pfSign && t.text == sign }

// word reports whether the token can be a name.
func (t pfToken) word() bool { return t.kind == pfWord || t.kind == pfQuoted }

// maxExpansions limits how often the macros of a file are replaced: one may name itself.
const maxExpansions = 10_000

// peek returns the next token, with macros replaced by their values.
func (p *pfParser) peek() pfToken {
	for {
		if len(p.tokens) == 0 {
			return pfToken{kind: pfEnd, line: max(1, p.last)}
		}
		next := p.tokens[0]
		if next.kind != pfWord || !strings.HasPrefix(next.text, "$") {
			return next
		}
		if p.expanded++; p.expanded > maxExpansions {
			p.faults = append(p.faults, pfLine{next.line, "macro nesting too deep"})
			p.tokens = nil
			continue
		}
		name := strings.TrimPrefix(next.text, "$")
		value, known := p.macros[name]
		p.tokens = p.tokens[1:]
		if !known {
			p.faults = append(p.faults, pfLine{next.line, "macro '" + name + "' not defined"})
			p.tokens = append([]pfToken{{pfSign, "$", next.line}}, p.tokens...)
			continue
		}
		words, err := pfTokens(value, next.line)
		if err != nil {
			words = []pfToken{{pfSign, "$", next.line}}
		}
		p.tokens = append(words, p.tokens...)
	}
}

func (p *pfParser) take() pfToken {
	next := p.peek()
	if len(p.tokens) > 0 {
		p.last = next.line
		p.tokens = p.tokens[1:]
	}
	return next
}

// accept reads the next token if it is this word or sign.
func (p *pfParser) accept(text string) bool {
	if next := p.peek(); next.kind != pfWord && next.kind != pfSign || next.text != text {
		return false
	}
	p.take()
	return true
}

func (p *pfParser) want(text string) error {
	if p.accept(text) {
		return nil
	}
	return p.unexpected()
}

// unexpected returns the fault of the next token.
func (p *pfParser) unexpected() error { return pfLine{p.peek().line, "syntax error"} }

func (p *pfParser) skipNewlines() {
	for p.peek().kind == pfNewline {
		p.take()
	}
}

// endOfLine checks that the statement ends here.
func (p *pfParser) endOfLine() error {
	switch next := p.peek(); {
	case next.kind == pfNewline:
		p.take()
		return nil
	case next.kind == pfEnd, p.depth > 0 && next.is("}"):
		return nil
	}
	return p.unexpected()
}

// list reads one item, or several in braces.
func (p *pfParser) list(item func() error) error {
	if !p.accept("{") {
		return item()
	}
	for n := 0; ; n++ {
		p.skipNewlines()
		if p.accept("}") {
			if n == 0 {
				return p.unexpected()
			}
			return nil
		}
		if err := p.list(item); err != nil { // a macro may contain a list
			return err
		}
		p.skipNewlines()
		p.accept(",")
	}
}
