package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// retireTokens ends the older tokens of the host's kubelet, once the cluster has heard of it with the
// newest: until then the older ones are the way back.
func (w *worker) retireTokens(ctx context.Context) error {
	i, _ := w.host.Identity.Get()
	keep := i.TokenName()
	if k, _ := w.host.Kubelet.Get(); !k.Has(keep) {
		return fmt.Errorf("the host has no kubelet that was started with the token of the Secret %s, so the older ones stay; apply again", keep)
	}
	if err := w.heard(ctx, keep); err != nil {
		return fmt.Errorf("the older tokens stay: %w", err)
	}
	if err := w.engine.may(); err != nil {
		return err
	}
	err := w.engine.Cluster.RetireTokens(ctx, w.host.Name, keep)
	if err == nil {
		i.Spent = nil
		w.host.Identity = inventory.Present(i)
	}
	return err
}

// heard waits until the host's Node is Ready by a heartbeat of the process that runs now, with the token of a Secret.
func (w *worker) heard(ctx context.Context, token string) error {
	e := w.engine
	k, _ := w.host.Kubelet.Get()
	until := e.Now().Add(cmp.Or(e.Ready.Within, DefaultWithin))
	for {
		nodes, err := e.Cluster.Nodes(ctx)
		for _, n := range nodes {
			if n.Name == w.host.Name && n.Ready == inventory.Ready && k.HeardWith(token, n) {
				return nil
			}
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case e.Stop.Err() != nil:
			return context.Cause(e.Stop)
		case !e.Now().Before(until):
			return cmp.Or(err, errors.New("the cluster has not heard of the kubelet since it was started with its new token; read /var/log/tart-kubelet.log on the host"))
		}
		select {
		case <-ctx.Done():
		case <-e.Stop.Done():
		case <-time.After(cmp.Or(e.Ready.Every, DefaultEvery)):
		}
	}
}
