package cloud_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/scaleway/scaleway-sdk-go/api/applesilicon/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"
	"golang.org/x/sync/errgroup"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
)

// TestPagingDuringRenames reads all pages in one process while another renames: no server may be
// missing, repeated or half-written, since renames do not change the order.
func TestPagingDuringRenames(t *testing.T) {
	t.Parallel()
	first := newWorld(t, 60, cloud.Options{})
	second := serve(t, first.dir, cloud.Options{})
	reader, writer := first.client(t, secretKey), second.client(t, secretKey)
	var group errgroup.Group
	group.Go(func() error {
		for i := range 60 {
			id := serverNumber(2 * (i % 30)).ID
			_, err := writer.UpdateServer(&applesilicon.UpdateServerRequest{Zone: zone, ServerID: id, Name: scw.StringPtr(fmt.Sprintf("acme-%d", i))})
			if err != nil {
				return err
			}
		}
		return nil
	})
	for range 2 {
		group.Go(func() error {
			for range 20 {
				size := uint32(7)
				list, err := reader.ListServers(&applesilicon.ListServersRequest{Zone: zone, PageSize: &size}, scw.WithAllPages())
				if err != nil {
					return err
				}
				ids := map[string]bool{}
				for _, server := range list.Servers {
					ids[server.ID] = true
				}
				if len(ids) != 30 || len(list.Servers) != 30 {
					return fmt.Errorf("%d servers, %d of them different, want 30", len(list.Servers), len(ids))
				}
			}
			return nil
		})
	}
	must(t, group.Wait())
	for i := range 30 {
		server, found, err := first.api.Server(serverNumber(2 * i).ID)
		if want := fmt.Sprintf("acme-%d", 30+i); err != nil || !found || server.Name != want {
			t.Errorf("server %d is %q (%v), want %q", i, server.Name, err, want)
		}
	}
}

func TestServerAtFollowsTheFiles(t *testing.T) {
	t.Parallel()
	first := newWorld(t, 3, cloud.Options{})
	second := serve(t, first.dir, cloud.Options{})
	address := serverNumber(1).IP
	server, found, err := first.api.ServerAt(address)
	if err != nil || !found || server.ID != serverNumber(1).ID {
		t.Fatalf("got %v %v %v", server.ID, found, err)
	}
	renamed := func(string) (string, bool) { return "acme-renamed", true }
	must(t, second.api.Rename(server.ID, renamed))
	if server, _, err = first.api.ServerAt(address); err != nil || server.Name != "acme-renamed" {
		t.Errorf("after a rename by another process: %q %v", server.Name, err)
	}
	if _, found, err = first.api.ServerAt(netip.MustParseAddr("192.0.2.1")); found || err != nil {
		t.Errorf("an unknown address: %v %v", found, err)
	}
}
