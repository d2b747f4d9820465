package mac

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// fromTo reads the two ends of a rule's connections.
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

// dynamic reads the present addresses of an interface: (en0), (en0:network).
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
