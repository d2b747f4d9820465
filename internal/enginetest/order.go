package enginetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// DeliveryTime is how long it takes to deliver an ordered server.
const DeliveryTime = 40 * time.Minute

// rent adds a new machine to the project.
func (w *World) rent(name, status string) *Machine {
	i := len(w.Machines)
	id := fmt.Sprintf("%05x-0000", i)
	m := &Machine{Server: inventory.Server{ID: id, Name: name, Type: "M2-L", Zone: "fr-par-1",
		Address: fmt.Sprintf("192.0.2.%d", i), OSFamily: "Tahoe", Status: status, Delivered: status == "ready"},
		State: make(map[string]string), pending: make(map[plan.StepID]bool), artifacts: make(map[string]bool), key: keyOf(id), Serial: "C" + id}
	w.Machines = append(w.Machines, m)
	return m
}

// Order rents a machine. A second one of the same name is wrong.
func (c cloud) Order(ctx context.Context, _, _, _, name string) (out inventory.Server, err error) {
	return out, c.world.call(ctx, Call{InCloud, "order", name}, func() error {
		if slices.ContainsFunc(c.world.Machines, func(m *Machine) bool { return m.Server.Name == name }) {
			c.world.wrong = append(c.world.wrong, name+" was ordered twice")
		}
		m := c.world.rent(name, "starting")
		m.Server.Created = time.Now()
		out = m.server()
		return nil
	})
}
