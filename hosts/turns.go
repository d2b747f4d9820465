package hosts

import (
	"context"
	"sync"
)

// turns lets one connection at a time be made to a host, and remembers for the
// life of the Client who refused a key: fail2ban on the Macs bans an address
// after a few refusals, on all its ports and until a reboot.
type turns struct {
	mu  sync.Mutex
	all map[string]*turn
}

type turn struct {
	busy    chan struct{} // holds one while a connection is made
	refused *Error        // touched by who holds busy
}

// take waits for the host's turn. It returns an error when ctx ends before.
func (t *turns) take(ctx context.Context, id string) (*turn, error) {
	t.mu.Lock()
	if t.all == nil {
		t.all = make(map[string]*turn)
	}
	it := t.all[id]
	if it == nil {
		it = &turn{busy: make(chan struct{}, 1)}
		t.all[id] = it
	}
	t.mu.Unlock()
	return it, acquire(ctx, it.busy)
}

// forgive forgets a refusal of the key: what refused it was taken back.
func (t *turns) forgive(ctx context.Context, id string) {
	if turn, err := t.take(ctx, id); err == nil {
		turn.refused = nil
		turn.give()
	}
}

func (t *turn) give() { <-t.busy }

// acquire takes a place in a semaphore, or returns why ctx ended.
func acquire(ctx context.Context, semaphore chan struct{}) error {
	select {
	case semaphore <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
