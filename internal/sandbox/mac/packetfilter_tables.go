package mac

import (
	"cmp"
	"net/netip"
	"slices"
)

// add enters an address and reports whether it was new.
func (t *table) add(address tableAddress) bool {
	at, found := slices.BinarySearchFunc(t.Addresses, address, func(a, b tableAddress) int {
		return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
	})
	if !found {
		t.Addresses = slices.Insert(t.Addresses, at, address)
	}
	return !found
}

// remove takes an address out and reports whether it was there.
func (t *table) remove(prefix netip.Prefix) bool {
	before := len(t.Addresses)
	t.Addresses = slices.DeleteFunc(t.Addresses, func(a tableAddress) bool { return a.Prefix == prefix })
	return len(t.Addresses) < before
}

// kill ends a table. Rules that name it go on doing so, in vain.
func (r *ruleset) kill(name string) bool {
	t := r.Tables[name]
	if t == nil || !t.Active {
		return false
	}
	*t = table{}
	r.prune()
	return true
}

// clearTables empties the persistent tables, which survive, and ends the others. It gives how many
// there were.
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

// flags shows a table's state as pfctl -v does.
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
