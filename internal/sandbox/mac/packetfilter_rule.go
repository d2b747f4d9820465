package mac

import (
	"slices"
	"strings"
)

// pfClause is a rule as written, with its lists.
type pfClause struct {
	line      int
	kind      ruleKind
	action    string // the start of the rule when it is shown
	anchor    bool   // it is an anchor point
	point     string
	passes    bool // it is a pass rule, which keeps state by default
	direction string
	log       string
	quick     bool
	ifaces    []string
	family    string
	protocols []string
	from, to  pfPeer
	options   map[string]string // by name, as they are shown
	pool      string            // of a translation: the text after the arrow
	poolOf    string            // the address family of the pool
}

// pfPeer is one end of a connection.
type pfPeer struct {
	hosts []pfHost
	ports []string
}

// pfHost is an address, a table or another form of host.
type pfHost struct {
	text   string // as it is shown
	family string // "" = both
	table  string
}

// ruleLine reads a rule after its first word.
func (p *pfParser) ruleLine(first pfToken) error {
	c := &pfClause{line: first.line, options: map[string]string{}}
	word := first.text
	if word == "no" {
		c.action = "no "
		word = p.take().text
		if !slices.Contains([]string{"scrub", "nat", "rdr", "binat"}, word) {
			return pfLine{first.line, "syntax error"}
		}
	}
	c.action += word
	name, isPoint := strings.CutSuffix(word, "-anchor")
	var stage pfStage
	switch {
	case word == "anchor":
		c.kind, stage, c.anchor = filterRule, pfFiltering, true
	case name == "scrub":
		c.kind, stage, c.anchor = scrubRule, pfNormalization, isPoint
	case name == "nat" || name == "rdr" || name == "binat" || name == "dummynet":
		c.kind, stage, c.anchor = ruleKind(name), pfTranslation, isPoint
	case word == "pass" || word == "block":
		c.kind, stage, c.passes = filterRule, pfFiltering, word == "pass"
	case word == "antispoof":
		return pfUnmodelled(word)
	default:
		return pfLine{first.line, "syntax error"}
	}
	if err := p.enter(stage, first.line); err != nil {
		return err
	}
	return p.clause(c, word)
}

// clause reads the rest of a rule.
func (p *pfParser) clause(c *pfClause, word string) error {
	var body *pfFile
	err := p.head(c, word)
	for _, part := range []func(*pfClause) error{p.middle, p.fromTo, p.options} {
		if err == nil {
			err = part(c)
		}
	}
	if err == nil && c.anchor && c.kind == filterRule && p.peek().is("{") {
		body, err = p.body(c)
	}
	if err == nil && !c.anchor && (c.kind == natRule || c.kind == rdrRule || c.kind == binatRule) {
		err = p.target(c)
	}
	if err == nil {
		err = p.endOfLine()
	}
	if err != nil {
		return err
	}
	if c.anchor && c.point == "" {
		return pfLine{c.line, "anchor rules need a name"}
	}
	rules, err := c.expand()
	if err != nil {
		return err
	}
	p.out.rules = append(p.out.rules, rules...)
	if body != nil {
		p.out.inline = append(p.out.inline, pfInline{c.point, *body})
	}
	return nil
}

// head reads what belongs to the first word: an anchor's name, how a rule blocks, that a translation
// also passes.
func (p *pfParser) head(c *pfClause, word string) error {
	next := p.peek()
	switch {
	case c.anchor:
		if next.kind == pfQuoted || next.kind == pfWord && !pfKeyword(next.text) {
			c.point = p.take().text
		}
	case word == "block":
		how := p.policy
		if next.kind == pfWord && (next.text == "drop" || strings.HasPrefix(next.text, "return")) {
			how = p.take().text
		}
		if p.peek().is("(") {
			return pfUnmodelled("block " + how + " (…)")
		}
		c.action += " " + how
	case c.kind == natRule || c.kind == rdrRule || c.kind == binatRule:
		if p.accept("pass") {
			c.action += " pass"
		}
	}
	return nil
}

func pfKeyword(text string) bool {
	return slices.Contains([]string{"all", "from", "to", "in", "out", "log", "quick", "on", "inet", "inet6", "proto"}, text)
}

// middle reads direction, log, quick, interface, address family and protocol.
func (p *pfParser) middle(c *pfClause) error {
	if p.accept("in") {
		c.direction = "in"
	} else if p.accept("out") {
		c.direction = "out"
	}
	if p.accept("log") {
		c.log = "log"
		if p.peek().is("(") {
			return pfUnmodelled("log (…)")
		}
	}
	c.quick = p.accept("quick")
	if p.accept("on") {
		if err := p.list(func() error { return p.name(&c.ifaces, p.accept("!")) }); err != nil {
			return err
		}
	}
	for _, way := range []string{"route-to", "reply-to", "dup-to", "fastroute"} {
		if p.peek().text == way {
			return pfUnmodelled(way)
		}
	}
	if p.accept("inet") {
		c.family = "inet"
	} else if p.accept("inet6") {
		c.family = "inet6"
	}
	if p.accept("proto") {
		return p.list(func() error { return p.name(&c.protocols, false) })
	}
	return nil
}

// name reads a word into a list.
func (p *pfParser) name(into *[]string, not bool) error {
	next := p.peek()
	if !next.word() || next.text == "" {
		return p.unexpected()
	}
	text := p.take().text
	if not {
		text = "! " + text
	}
	*into = append(*into, text)
	return nil
}
