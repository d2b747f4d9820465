package kubernetes_test

import (
	"path/filepath"
	"testing"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// TestPinsUnprepared keeps pins on this machine until the cluster has a place for
// them, and in the cluster from then on.
func TestPinsUnprepared(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client := c.client(t, c.options(t))
		dir := t.TempDir()
		own, cache := hosts.KnownHosts{Path: filepath.Join(dir, "own")}, hosts.KnownHosts{Path: filepath.Join(dir, "cache")}
		store := client.Pins(t.Context(), kubernetes.PinOptions{Own: own, Cache: cache, Unprepared: own})
		holds(t, store)
		must(t, store.Update(add(pin(1))))
		holds(t, store, pin(1))
		holds(t, own, pin(1))
		holds(t, cache)
		all, err := client.Prepare(t.Context(), kubernetes.PrepareOptions{})
		must(t, err)
		for _, o := range all {
			if client.Purpose(o) == "" {
				t.Errorf("%s %s has no purpose", o.Kind, o.Name)
			}
		}
		holds(t, store, pin(1))
		must(t, store.Update(add(pin(2))))
		holds(t, store, pin(1), pin(2))
		holds(t, own)
		holds(t, cache, pin(1), pin(2))
		prepare(t, client)
		holds(t, store, pin(1), pin(2)) // preparing again takes nothing
	})
}
