package mac

import (
	"strings"
)

// String formats an entry of a table.
func (a tableAddress) String() string {
	if a.Not {
		return "!" + pfAddress(a.Prefix)
	}
	return pfAddress(a.Prefix)
}

// flush is -F.
func (c *pfctlCall) flush() int {
	what := choice(c.options['F'], "nat", "queue", "rules", "Sources", "states", "info", "Tables", "osfp", "all", "dummynet")
	r := c.live.ruleset(c.anchor)
	c.changed = true
	switch what {
	case "rules":
		c.clearRules(r)
	case "nat":
		c.clearNAT(r)
	case "dummynet":
		r.drop(dummynetRule)
		c.done("dummynet cleared")
	case "Tables":
		c.done("%d tables deleted.", r.clearTables())
	case "states":
		c.done("0 states cleared")
	case "all":
		c.clearRules(r)
		c.clearNAT(r)
		r.drop(dummynetRule)
		c.done("dummynet cleared")
		c.done("%d tables deleted.", r.clearTables())
		if c.anchor == "" {
			c.done("0 states cleared\nsource tracking entries cleared\npf: statistics cleared\npf: interface flags reset")
		}
	case "":
		return c.fail(exitFailed, "Unknown flush modifier '%s'", c.options['F'])
	default:
		return c.fail(exitUnmodelled, "option not modelled: -F %s", what)
	}
	return 0
}

func (c *pfctlCall) clearRules(r *ruleset) {
	r.drop(scrubRule, filterRule)
	c.done("rules cleared")
}

func (c *pfctlCall) clearNAT(r *ruleset) {
	r.drop(natRule, rdrRule, binatRule)
	c.done("nat cleared")
}

// tables is -T, for the table of -t within the anchor of -a.
func (c *pfctlCall) tables() int {
	name, r := c.options['t'], c.live.ruleset(c.anchor)
	t := r.Tables[name]
	verb := choice(c.options['T'], "add", "delete", "expire", "flush", "kill", "load", "replace", "show", "test", "zero")
	switch verb {
	case "kill":
		n := 0
		if r.kill(name) {
			n, c.changed = 1, true
		}
		c.done("%s deleted.", counted(n, "table"))
		return 0
	case "add":
		return c.addTo(r, name)
	case "show", "flush", "delete":
		if t == nil || !t.Active {
			return c.fail(exitTable, "Table does not exist.")
		}
	case "":
		return c.fail(exitFailed, "Unknown table command '%s'", c.options['T'])
	default:
		return c.fail(exitUnmodelled, "option not modelled: -T %s", verb)
	}
	switch verb {
	case "show":
		for _, address := range t.Addresses {
			sign := " "
			if address.Not {
				sign = "!"
			}
			c.show("  %s%s", sign, pfAddress(address.Prefix))
		}
	case "flush":
		c.done("%s deleted.", countedAddresses(len(t.Addresses)))
		t.Addresses, c.changed = nil, true
	case "delete":
		return c.deleteFrom(t)
	}
	return 0
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return decimal(n) + " " + what
}

func countedAddresses(n int) string {
	if n == 1 {
		return "1 address"
	}
	return decimal(n) + " addresses"
}

// addTo adds addresses to a table, which is created, persistent, if it is missing.
func (c *pfctlCall) addTo(r *ruleset, name string) int {
	addresses, status := c.addresses()
	if status != 0 {
		return status
	}
	t := r.Tables[name]
	if t == nil || !t.Active {
		t = &table{Persist: true, Active: true}
		r.Tables[name] = t
		c.done("1 table created.")
	}
	if t.Const {
		return c.fail(exitTable, "Operation not permitted.")
	}
	n := 0
	for _, address := range addresses {
		if t.add(address) {
			n++
		}
	}
	c.changed = true
	c.done("%d/%s added.", n, countedAddresses(len(addresses)))
	return 0
}

func (c *pfctlCall) deleteFrom(t *table) int {
	addresses, status := c.addresses()
	if status != 0 {
		return status
	}
	n := 0
	for _, address := range addresses {
		if t.remove(address.Prefix) {
			n++
		}
	}
	c.changed = true
	c.done("%d/%s deleted.", n, countedAddresses(len(addresses)))
	return 0
}

// addresses returns those of the command line and of the file of -f.
func (c *pfctlCall) addresses() ([]tableAddress, int) {
	words := c.operands
	if c.options.has('f') {
		text := c.text
		if c.options['f'] != "-" {
			data, err := c.v.read(c.p, c.options['f'])
			if err != nil {
				return nil, c.fail(exitFailed, "%s: %s", c.options['f'], why(err))
			}
			text = string(data)
		}
		for line := range strings.Lines(text) {
			line, _, _ = strings.Cut(line, "#")
			words = append(words, strings.Fields(line)...)
		}
	}
	var found []tableAddress
	for _, word := range words {
		text, not := strings.CutPrefix(word, "!")
		prefix, ok := pfPrefix(text)
		if !ok {
			return nil, c.fail(exitFailed, "no IP address found for %s", text)
		}
		found = append(found, tableAddress{Prefix: prefix.Masked(), Not: not})
	}
	return found, 0
}
