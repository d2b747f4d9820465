package scaleway

import (
	"context"
	"fmt"
	"time"

	"github.com/scaleway/scaleway-sdk-go/scw"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/transport"
)

// ask calls the SDK. An error is a ProviderError, unless the caller stopped.
func ask[T any](ctx context.Context, c *Client, of subject, call func(scw.RequestOption) (T, error)) (T, error) {
	followed, t := transport.Follow(ctx)
	out, err := call(scw.WithContext(followed))
	switch {
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		return out, context.Cause(ctx)
	}
	return out, c.explain(of, err, t)
}

// subject is what a request is about.
type subject int

const (
	inventoryOf subject = iota
	oneServer
	sshKeys
	account
)

// right is the permission set that requests about a subject need.
func (s subject) right() string {
	switch s {
	case sshKeys:
		return "SSHKeysFullAccess"
	case account:
		return "IAMReadOnly"
	}
	return "AppleSiliconFullAccess"
}

// What a passing state forbids is tried this many times, with this pause in between: two minutes in all. A write whose
// outcome is unknown is looked up and sent again less often.
const (
	settleTries = 40
	settleEvery = 3 * time.Second
	unsureTries = 4
)

// settled does something with a server, and once more when the server has left the passing state that forbids it, or
// when it is unknown whether it was done: do looks first, so that nothing is done twice. A state that is not passing,
// and one that does not pass in time, is the error.
func (c *Client) settled(ctx context.Context, do func() error) error {
	err := do()
	for tried, unsure := 1, 1; ; tried++ {
		class := inventory.ClassOf(err)
		if err != nil && class != "" && inventory.Unsure(err) {
			unsure++
		}
		if class != inventory.Transient && (class == "" || !inventory.Unsure(err)) || tried >= settleTries || unsure > unsureTries {
			break
		}
		if err := c.pauses.Sleep(ctx, c.settleEvery); err != nil {
			return err
		}
		err = do()
	}
	if inventory.ClassOf(err) == inventory.Transient {
		return fmt.Errorf("%w; it did not leave that state within %s; fix: check it in the Scaleway console, then run the command again",
			err, settleTries*c.settleEvery)
	}
	return err
}
