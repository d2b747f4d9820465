package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// retireTokens revokes the older tokens of the host's kubelet once it has reported with the
// newest: until then they are the fallback.
func (w *worker) retireTokens(ctx context.Context) error {
	i, _ := w.host.Identity.Get()
	keep := i.TokenName()
	if k, _ := w.host.Kubelet.Get(); !k.Has(keep) {
		return fmt.Errorf("no kubelet on the host uses the token of the Secret %s, so the older tokens are kept; apply again", keep)
	}
	if err := w.awaitReport(ctx, keep); err != nil {
		return fmt.Errorf("the older tokens are kept: %w", err)
	}
	if err := w.engine.checkLock(); err != nil {
		return err
	}
	err := w.engine.Cluster.RetireTokens(ctx, w.host.Name, keep)
	if err == nil {
		i.Spent = nil
		w.host.Identity = inventory.Present(i)
	}
	return err
}

// awaitReport waits for a heartbeat of the current process, which uses the token of a Secret.
func (w *worker) awaitReport(ctx context.Context, token string) error {
	e := w.engine
	k, _ := w.host.Kubelet.Get()
	until := e.Now().Add(cmp.Or(e.Ready.Within, DefaultWithin))
	for {
		nodes, err := e.Cluster.Nodes(ctx)
		for _, n := range nodes {
			if n.Name == w.host.Name && n.Ready == inventory.Ready && k.SentHeartbeatWith(token, n) {
				return nil
			}
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case e.Stop.Err() != nil:
			return context.Cause(e.Stop)
		case !e.Now().Before(until):
			return cmp.Or(err, errors.New("the kubelet has not reported to the cluster since it started with its new token; read /var/log/tart-kubelet.log on the host"))
		}
		select {
		case <-ctx.Done():
		case <-e.Stop.Done():
		case <-time.After(cmp.Or(e.Ready.Every, DefaultEvery)):
		}
	}
}
