package plan

import (
	"errors"
	"slices"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// KeyHolder is a host whose key a command shows or forgets, as far as the inventory, the cluster and the pins know it.
type KeyHolder struct {
	Name   string
	Server inventory.Server // only a pin exists: the inventory does not have the server
	Gone   bool             // the inventory lacks the server, and a pin is all that is known
	Pooled bool             // it is free to be claimed
	Trust  Trust
	Node   *inventory.Node // records its key; nil: it has none
}

// Accept returns the pins after a person accepted a key of the host. It ends every key that was known of it, so that the copies on other
// machines agree. The pins of a host that is gone become a note that it was released, so that what it left at services is deleted. It is pure.
func (h KeyHolder) Accept(pins []Pin, key Pin) []Pin {
	key.ServerID, key.Name = h.Server.ID, h.Name
	var out []Pin
	for _, p := range pins {
		switch {
		case !h.Gone && p.ServerID == h.Server.ID:
			key = key.Replaces(p)
		case h.Gone && p.ServerID == h.Trust.Pin.ServerID:
		case p.Name != h.Name, p.Stage == Released: // an adopted server may have had that name before
			out = append(out, p)
		}
	}
	if h.Gone {
		note := *h.Trust.Pin
		note.Stage, note.Unfinished, note.Since, note.Accepted = Released, false, key.Since, key.Accepted
		return append(out, note)
	}
	for _, v := range h.Trust.Vouchers { // last, so that none is cut off
		key = key.After(v.Fingerprint())
	}
	return append(out, key)
}

// HolderOf returns the host that a person means, by any name that Find takes, or by that of a pin. It is pure.
func HolderOf(cfg *fleet.Config, snap Snapshot, name string) (KeyHolder, error) {
	p, err := find(cfg, snap, name)
	if err != nil {
		pin := pinOf(cfg, snap, name)
		if several := (*ambiguousError)(nil); pin == nil || errors.As(err, &several) {
			return KeyHolder{}, err
		}
		return KeyHolder{Name: pin.Name, Gone: true, Trust: Trust{Pin: pin}}, nil
	}
	t := takeCensus(cfg, snap).trusts()
	h := KeyHolder{Name: p.name, Server: p.server, Pooled: p.role == pool, Trust: t.of(&p)}
	if n, ok := t.nodeOf(&p); ok && !h.Pooled {
		h.Node = &n
	}
	return h, nil
}

// pinOf returns the pin with a name or a name that ends so, or nil.
func pinOf(cfg *fleet.Config, snap Snapshot, name string) *Pin {
	var names []string
	for _, p := range snap.Pins {
		names = append(names, p.Name)
	}
	found, err := NewNames(cfg.Owner, names).Find(name)
	if err != nil || len(found) > 1 {
		return nil
	}
	return &snap.Pins[slices.Index(names, found[0])]
}
