package mac

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// pfClause is a rule as it is written, with its lists.
type pfClause struct {
	line      int
	kind      ruleKind
	action    string // as the rule begins when it is shown
	anchor    bool   // it is an anchor point
	point     string
	passes    bool // it is a pass rule, which keeps state unless it says otherwise
	direction string
	log       string
	quick     bool
	ifaces    []string
	family    string
	protocols []string
	from, to  pfPeer
	options   map[string]string // by name, as they are shown
	pool      string            // of a translation: what stands behind the arrow
	poolOf    string            // the address family of the pool
}

// pfPeer is one end of a connection.
type pfPeer struct {
	hosts []pfHost
	ports []string
}

// pfHost is an address, a table or another way to name hosts.
type pfHost struct {
	text   string // as it is shown
	family string // "" = both
	table  string
}

// ruleLine reads a rule, of which the first word has been taken.
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

// clause reads a rule behind its first word.
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

// head reads what belongs to the first word: an anchor's name, how a rule blocks, that a
// translation passes too.
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

// fromTo reads the two ends of the connections that a rule is about.
func (p *pfParser) fromTo(c *pfClause) error {
	if p.accept("all") {
		return nil
	}
	if p.accept("from") {
		if err := p.peer(&c.from); err != nil {
			return err
		}
	}
	if p.accept("to") {
		return p.peer(&c.to)
	}
	return nil
}

func (p *pfParser) peer(into *pfPeer) error {
	if p.peek().text != "port" {
		if err := p.list(func() error { return p.host(into) }); err != nil {
			return err
		}
	}
	if p.peek().text == "os" {
		return pfUnmodelled("os")
	}
	if p.accept("port") {
		return p.list(func() error { return p.port(into) })
	}
	return nil
}

func (p *pfParser) host(into *pfPeer) error {
	not := ""
	if p.accept("!") {
		not = "! "
	}
	next := p.peek()
	prefix, isAddress := pfPrefix(next.text)
	switch {
	case next.kind == pfTable:
		into.hosts = append(into.hosts, pfHost{text: not + "<" + next.text + ">", table: next.text})
	case next.is("("):
		return p.dynamic(not, into)
	case next.kind != pfWord:
		return p.unexpected()
	case not == "" && slices.Contains([]string{"any", "no-route", "urpf-failed"}, next.text):
		into.hosts = append(into.hosts, pfHost{text: next.text})
	case isAddress:
		family := "inet"
		if prefix.Addr().Is6() {
			family = "inet6"
		}
		into.hosts = append(into.hosts, pfHost{text: not + pfAddress(prefix), family: family})
	default:
		return pfUnmodelled("host " + next.text)
	}
	p.take()
	return nil
}

// dynamic reads the addresses that an interface has at the time: (en0), (en0:network).
func (p *pfParser) dynamic(not string, into *pfPeer) error {
	p.take()
	name := p.take()
	if !name.word() || name.text == "" {
		return pfLine{name.line, "syntax error"}
	}
	into.hosts = append(into.hosts, pfHost{text: not + "(" + name.text + ")"})
	return p.want(")")
}

func (p *pfParser) port(into *pfPeer) error {
	sign := p.peek()
	op := "="
	if sign.kind == pfSign && slices.Contains([]string{"=", "!=", "<", "<=", ">", ">="}, sign.text) {
		op = p.take().text
	}
	low, err := p.portNumber()
	if err != nil {
		return err
	}
	first, last, isRange := strings.Cut(low, ":")
	if isRange {
		if sign.kind == pfSign || first == "" || last == "" {
			return pfLine{sign.line, "syntax error"}
		}
		into.ports = append(into.ports, "port "+first+":"+last)
		return nil
	}
	if between := p.peek(); between.is("><") || between.is("<>") {
		p.take()
		high, err := p.portNumber()
		if err != nil {
			return err
		}
		into.ports = append(into.ports, "port "+low+" "+between.text+" "+high)
		return nil
	}
	into.ports = append(into.ports, "port "+op+" "+pfService(low))
	return nil
}

// portNumber reads a port, a range of them, or a service's name.
func (p *pfParser) portNumber() (string, error) {
	next := p.take()
	if !next.word() {
		return "", pfLine{next.line, "syntax error"}
	}
	var numbers []string
	for part := range strings.SplitSeq(next.text, ":") {
		number, err := strconv.ParseUint(cmp.Or(pfServiceNumber(part), part), 10, 16)
		if err != nil {
			return "", pfLine{next.line, "unknown port " + part}
		}
		numbers = append(numbers, strconv.FormatUint(number, 10))
	}
	if len(numbers) > 2 {
		return "", pfLine{next.line, "syntax error"}
	}
	return strings.Join(numbers, ":"), nil
}
