package scaleway

import (
	"context"
	"fmt"

	applesilicon "github.com/scaleway/scaleway-sdk-go/api/applesilicon/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// Reinstall wipes a server and installs an operating system, by its id in the catalogue. It is sent once: after an
// error the caller reads the server's status before it decides anything. A passing state is not waited for either,
// because its cause may be another user of the server.
func (c *Client) Reinstall(ctx context.Context, zone, id, systemID string) error {
	if systemID == "" {
		return fmt.Errorf("reinstall server %s: no operating system named; Scaleway would choose the default of the type", id)
	}
	_, err := ask(ctx, c, oneServer, func(o scw.RequestOption) (*applesilicon.Server, error) {
		return c.api.ReinstallServer(&applesilicon.ReinstallServerRequest{Zone: scw.Zone(zone), ServerID: id, OsID: &systemID}, o)
	})
	if err != nil {
		return fmt.Errorf("reinstall server %s: %w", id, err)
	}
	return nil
}

// Reboot restarts a server through the provider, which also injects the project's SSH keys. It is sent once, like
// Reinstall.
func (c *Client) Reboot(ctx context.Context, zone, id string) error {
	_, err := ask(ctx, c, oneServer, func(o scw.RequestOption) (*applesilicon.Server, error) {
		return c.api.RebootServer(&applesilicon.RebootServerRequest{Zone: scw.Zone(zone), ServerID: id}, o)
	})
	if err != nil {
		return fmt.Errorf("reboot server %s: %w", id, err)
	}
	return nil
}

// ScheduleDeletion lets the provider delete a server at its DeletableAt, or cancels that. It reads the server back. A
// passing state is waited for.
func (c *Client) ScheduleDeletion(ctx context.Context, zone, id string, schedule bool) error {
	return c.settled(ctx, func() error {
		_, err := ask(ctx, c, oneServer, func(o scw.RequestOption) (*applesilicon.Server, error) {
			return c.api.UpdateServer(&applesilicon.UpdateServerRequest{Zone: scw.Zone(zone), ServerID: id, ScheduleDeletion: &schedule}, o)
		})
		if err != nil {
			return fmt.Errorf("schedule the deletion of server %s: %w", id, err)
		}
		now, err := c.Get(ctx, zone, id)
		if err != nil {
			return fmt.Errorf("read back whether the deletion of server %s is scheduled: %w", id, err)
		}
		if now.DeletionScheduled != schedule {
			return fmt.Errorf("server %s: Scaleway accepted the change but reports deletion_scheduled = %t; fix: check it in the Scaleway console",
				id, now.DeletionScheduled)
		}
		return nil
	})
}
