package mac

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// add adds an address and reports whether it was new.
func (t *table) add(address tableAddress) bool {
	at, found := slices.BinarySearchFunc(t.Addresses, address, func(a, b tableAddress) int {
		return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
	})
	if !found {
		t.Addresses = slices.Insert(t.Addresses, at, address)
	}
	return !found
}

// remove removes an address and reports whether it was in the table.
func (t *table) remove(prefix netip.Prefix) bool {
	before := len(t.Addresses)
	t.Addresses = slices.DeleteFunc(t.Addresses, func(a tableAddress) bool { return a.Prefix == prefix })
	return len(t.Addresses) < before
}

// kill removes a table. Rules that name it keep doing so, without effect.
func (r *ruleset) kill(name string) bool {
	t := r.Tables[name]
	if t == nil || !t.Active {
		return false
	}
	*t = table{}
	r.prune()
	return true
}

// clearTables empties the persistent tables and removes the others. It returns how many there were.
func (r *ruleset) clearTables() int {
	n := 0
	for _, t := range r.Tables {
		if t.Active {
			n++
		}
		*t = table{Persist: t.Persist, Const: t.Const, Active: t.Persist}
	}
	r.prune()
	return n
}

// flags formats a table's state as pfctl -v does.
func (t *table) flags(referenced bool) string {
	shown := []byte("-------")
	for i, on := range []struct {
		letter byte
		set    bool
	}{{'c', t.Const}, {'p', t.Persist}, {'a', t.Active}, {'i', false}, {'r', referenced}} {
		if on.set {
			shown[i] = on.letter
		}
	}
	return string(shown)
}

// references reports whether a rule names the table.
func (r *ruleset) references(name string) bool {
	return slices.ContainsFunc(r.Rules, func(one pfRule) bool { return slices.Contains(one.Tables, name) })
}

// tableDef reads a definition after table.
func (p *pfParser) tableDef(line int) error {
	name := p.take()
	if name.kind != pfTable {
		return pfLine{name.line, "syntax error"}
	}
	def := pfTableDef{name: name.text, line: line, table: table{Active: true}}
	for {
		next := p.peek()
		switch {
		case next.kind == pfWord && next.text == "persist":
			def.Persist = true
		case next.kind == pfWord && next.text == "const":
			def.Const = true
		case next.kind == pfWord && (next.text == "counters" || next.text == "file"):
			return pfUnmodelled("table " + next.text)
		case next.is("{"):
			p.take()
			if err := p.tableBody(&def.table); err != nil {
				return err
			}
			continue
		default:
			p.out.tables = append(p.out.tables, def)
			return p.endOfLine()
		}
		p.take()
	}
}

func (p *pfParser) tableBody(t *table) error {
	for {
		p.skipNewlines()
		next := p.take()
		switch {
		case next.is("}"):
			return nil
		case next.is(","):
			continue
		}
		address := tableAddress{Not: next.is("!")}
		if address.Not {
			next = p.take()
		}
		prefix, ok := pfPrefix(next.text)
		if next.kind != pfWord || !ok {
			return pfLine{next.line, "syntax error"}
		}
		address.Prefix = prefix.Masked()
		t.add(address)
	}
}

// pfPrefix reads an address or a network; as in pf, trailing octets of a network may be missing.
func pfPrefix(text string) (netip.Prefix, bool) {
	host, bits, isNet := strings.Cut(text, "/")
	if isNet && !strings.Contains(host, ":") {
		host += strings.Repeat(".0", max(0, 3-strings.Count(host, ".")))
	}
	if isNet {
		prefix, err := netip.ParsePrefix(host + "/" + bits)
		return prefix, err == nil
	}
	address, err := netip.ParseAddr(host)
	if err != nil || address.Zone() != "" {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(address, address.BitLen()), true
}
