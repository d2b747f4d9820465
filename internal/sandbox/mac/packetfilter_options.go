package mac

import (
	"slices"
	"strings"
)

// optionOrder is the order in which pfctl shows the options after a rule's addresses.
func optionOrder() []string {
	return []string{"flags", "icmp-type", "icmp6-type", "tos", "state", "allow-opts", "no-df", "random-id", "min-ttl",
		"max-mss", "reassemble", "fragment", "label", "queue", "pipe", "tag", "tagged"}
}

// options reads the options after a rule's addresses, in any order.
func (p *pfParser) options(c *pfClause) error {
	for {
		next := p.peek()
		if next.kind != pfWord {
			return nil
		}
		p.take()
		var err error
		switch next.text {
		case "keep", "modulate", "synproxy":
			c.options["state"] = next.text + " state"
			if err = p.want("state"); err == nil && p.peek().is("(") {
				err = pfUnmodelled(next.text + " state (…)")
			}
		case "no":
			c.options["state"] = "no state"
			err = p.want("state")
		case "no-df", "random-id", "allow-opts":
			c.options[next.text] = next.text
		case "fragment":
			err = p.fragment(c)
		case "reassemble":
			c.options["reassemble"] = "reassemble tcp"
			err = p.want("tcp")
		case "flags", "icmp-type", "icmp6-type", "tos", "min-ttl", "max-mss", "label", "queue", "pipe", "tag", "tagged":
			err = p.valued(c, next.text)
		case "user", "group", "rtable", "probability", "divert-to", "divert-reply", "static-port", "received-on":
			err = pfUnmodelled(next.text)
		default:
			return pfLine{next.line, "syntax error"}
		}
		if err != nil {
			return err
		}
	}
}

// valued reads an option with a value.
func (p *pfParser) valued(c *pfClause, name string) error {
	value := p.peek()
	if value.is("{") {
		return pfUnmodelled(name + " with a list")
	}
	if !value.word() {
		return p.unexpected()
	}
	text := p.take().text
	switch {
	case name == "label":
		text = `"` + text + `"`
	case name == "flags" && text != "any" && !pfFlags(text):
		return pfLine{value.line, "syntax error"}
	}
	c.options[name] = name + " " + text
	return nil
}

// pfFlags reports whether a text is TCP flags and their mask.
func pfFlags(text string) bool {
	flags, mask, ok := strings.Cut(text, "/")
	return ok && mask != "" && strings.Trim(flags+mask, "FSRPAUEW") == ""
}

// fragment reads how scrub treats fragments, or that a filter rule is only for fragments.
func (p *pfParser) fragment(c *pfClause) error {
	if c.kind != scrubRule {
		c.options["fragment"] = "fragment"
		return nil
	}
	how := p.take()
	if !slices.Contains([]string{"reassemble", "crop", "drop-ovl"}, how.text) {
		return pfLine{how.line, "syntax error"}
	}
	c.options["fragment"] = "fragment " + how.text
	return nil
}

// target reads the target of a translation.
func (p *pfParser) target(c *pfClause) error {
	if strings.HasPrefix(c.action, "no ") {
		return nil
	}
	if err := p.want("->"); err != nil {
		return err
	}
	var pool pfPeer
	if err := p.list(func() error { return p.host(&pool) }); err != nil {
		return err
	}
	var shown []string
	for _, host := range pool.hosts {
		shown = append(shown, host.text)
		if c.poolOf == "" {
			c.poolOf = host.family
		}
		if host.family != "" && host.family != c.poolOf || host.table != "" || host.text == "any" {
			return pfUnmodelled("a translation to " + host.text)
		}
	}
	c.pool = strings.Join(shown, ", ")
	if len(shown) > 1 {
		c.pool = "{ " + c.pool + " }"
	}
	if p.accept("port") {
		port, err := p.portNumber()
		if err != nil {
			return err
		}
		c.pool += " port " + port
	}
	if len(shown) > 1 || strings.HasPrefix(c.pool, "(") {
		c.pool += " round-robin"
	}
	if p.accept("static-port") {
		c.pool += " static-port"
	}
	return nil
}

// body reads the rules of an anchor in braces. Such an anchor may have no name.
func (p *pfParser) body(c *pfClause) (*pfFile, error) {
	p.take()
	if c.point == "" {
		*p.nameless++
		c.point = namelessPrefix + decimal(*p.nameless)
	}
	outer, stage := p.out, p.stage
	p.out, p.stage = pfFile{}, 0
	p.depth++
	p.statements()
	p.depth--
	body := p.out
	p.out, p.stage = outer, stage
	return &body, p.want("}")
}
