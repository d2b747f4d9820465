package plan

import (
	"slices"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// KeyHolder is a host whose key somebody asks about, by what the lists know.
type KeyHolder struct {
	Name   string
	Server inventory.Server // without an id where it is gone
	Gone   bool             // the inventory lacks the server, and a pin is all that is known
	Pooled bool             // it is free to be claimed
	Trust  Trust
	Node   *inventory.Node // that notes its key; nil: it has none
}

// HolderOf returns the host that a person means, by any name that Find takes. It is pure.
func HolderOf(cfg *fleet.Config, snap Snapshot, name string) (KeyHolder, error) {
	p, err := find(cfg, snap, name)
	if err != nil {
		i := slices.IndexFunc(snap.Pins, func(pin Pin) bool { return pin.Name == name })
		if i < 0 {
			return KeyHolder{}, err
		}
		return KeyHolder{Name: name, Gone: true, Trust: Trust{Pin: &snap.Pins[i]}}, nil
	}
	t := takeCensus(cfg, snap).trusts()
	h := KeyHolder{Name: p.name, Server: p.server, Pooled: p.role == pool, Trust: t.of(&p)}
	if n, ok := t.nodeOf(&p); ok && !h.Pooled {
		h.Node = &n
	}
	return h, nil
}
