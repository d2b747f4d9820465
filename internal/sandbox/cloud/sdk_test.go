package cloud_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/scaleway/scaleway-sdk-go/api/applesilicon/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
)

func TestListAllPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 250, cloud.Options{})
	api := w.client(t, secretKey)
	for _, size := range []uint32{0, 1, 20, 100, 1000} {
		request := &applesilicon.ListServersRequest{Zone: zone, ProjectID: scw.StringPtr(project)}
		if size > 0 {
			request.PageSize = &size
		}
		list, err := api.ListServers(request, scw.WithAllPages())
		must(t, err)
		if list.TotalCount != 125 || len(list.Servers) != 125 {
			t.Errorf("page size %d: got %d servers, total %d, want 125", size, len(list.Servers), list.TotalCount)
		}
		for i, server := range list.Servers {
			if want := serverNumber(2 * i); server.Name != want.Name || server.IP.String() != want.IP.String() {
				t.Fatalf("page size %d: server %d is %s at %s", size, i, server.Name, server.IP)
			}
			if server.SudoPassword != "<sealed>" || server.VncURL != "<sealed>" {
				t.Fatalf("a list shows passwords: %q %q", server.SudoPassword, server.VncURL)
			}
		}
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 250, cloud.Options{})
	api := w.client(t, secretKey)
	for _, test := range []struct {
		page       int32
		size, want uint32
	}{{1, 0, 20}, {7, 0, 5}, {8, 0, 0}, {1, 500, 100}, {2, 500, 25}, {2147483647, 100, 0}} {
		request := &applesilicon.ListServersRequest{Zone: zone, Page: &test.page}
		if test.size > 0 {
			request.PageSize = &test.size
		}
		list, err := api.ListServers(request)
		must(t, err)
		if uint32(len(list.Servers)) != test.want || list.TotalCount != 125 {
			t.Errorf("page %d of %d: got %d of %d servers, want %d of 125", test.page, test.size, len(list.Servers), list.TotalCount, test.want)
		}
	}
	list, err := api.ListServers(&applesilicon.ListServersRequest{Zone: otherZone, OrderBy: applesilicon.ListServersRequestOrderByCreatedAtDesc})
	if err != nil || list.Servers[0].Name != serverNumber(249).Name {
		t.Errorf("newest first: %v, %v", list, err)
	}
}

func TestGetShowsPasswordsAndUpdateDoesNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, cloud.Options{})
	api, id := w.client(t, secretKey), serverNumber(0).ID
	before, err := api.GetServer(&applesilicon.GetServerRequest{Zone: zone, ServerID: id})
	must(t, err)
	if before.SudoPassword != "pass0" || before.VncURL != "vnc://m1:pass0@198.51.100.1:59010" {
		t.Errorf("a single server hides its passwords: %q %q", before.SudoPassword, before.VncURL)
	}
	if before.Srn == "" {
		t.Error("the client could not fill in the srn: is /metadata served?")
	}
	renamed, err := api.UpdateServer(&applesilicon.UpdateServerRequest{
		Zone: zone, ServerID: id, Name: scw.StringPtr("acme-runners-01"), ScheduleDeletion: scw.BoolPtr(false),
		CommitmentType: &applesilicon.CommitmentTypeValue{CommitmentType: applesilicon.CommitmentTypeDuration24h},
	})
	must(t, err)
	if renamed.Name != "acme-runners-01" || renamed.SudoPassword != "<sealed>" || renamed.VncURL != "<sealed>" {
		t.Errorf("answer to a rename: %+v", renamed)
	}
	if renamed.Commitment.Type != applesilicon.CommitmentTypeNone {
		t.Errorf("a daily commitment comes back as %s", renamed.Commitment.Type)
	}
	after, err := api.GetServer(&applesilicon.GetServerRequest{Zone: zone, ServerID: id})
	must(t, err)
	if !after.UpdatedAt.After(*before.UpdatedAt) {
		t.Errorf("updated_at did not move: %s, then %s", before.UpdatedAt, after.UpdatedAt)
	}
	before.Name, before.UpdatedAt, before.Commitment = after.Name, after.UpdatedAt, after.Commitment
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("a rename changed more than the name:\n%s", diff)
	}
}

func TestMissingServerIsDenied(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, cloud.Options{})
	api := w.client(t, secretKey)
	for name, request := range map[string]*applesilicon.GetServerRequest{
		"unknown":       {Zone: zone, ServerID: "99999999-0000-4000-8000-000000000000"},
		"in other zone": {Zone: otherZone, ServerID: serverNumber(0).ID},
	} {
		_, err := api.GetServer(request)
		denied, ok := errors.AsType[*scw.PermissionsDeniedError](err)
		if !ok {
			t.Fatalf("%s: got %T %v, want PermissionsDeniedError", name, err, err)
		}
		const recorded = `{"details":[{"action":"read","resource":"server"}],"message":"insufficient permissions","type":"permissions_denied"}`
		if string(denied.RawBody) != recorded {
			t.Errorf("%s: body is\n%s, recorded was\n%s", name, denied.RawBody, recorded)
		}
	}
}

func TestAccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, cloud.Options{})
	_, err := w.client(t, "33333333-3333-4333-8333-333333333333").ListOS(&applesilicon.ListOSRequest{Zone: zone})
	if _, ok := errors.AsType[*scw.DeniedAuthenticationError](err); !ok {
		t.Errorf("wrong key: got %T %v", err, err)
	}
	api := w.client(t, secretKey)
	_, err = api.ListServers(&applesilicon.ListServersRequest{Zone: zone, ProjectID: scw.StringPtr("44444444-4444-4444-8444-444444444444")})
	if _, ok := errors.AsType[*scw.PermissionsDeniedError](err); !ok {
		t.Errorf("wrong project: got %T %v", err, err)
	}
	_, err = api.ListServers(&applesilicon.ListServersRequest{Zone: "nl-ams-1"})
	if _, ok := errors.AsType[*scw.InvalidArgumentsError](err); !ok || !strings.Contains(err.Error(), "zone") {
		t.Errorf("unknown zone: got %T %v", err, err)
	}
}

func TestCatalogue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0, cloud.Options{})
	api := w.client(t, secretKey)
	list, err := api.ListOS(&applesilicon.ListOSRequest{Zone: zone}, scw.WithAllPages())
	must(t, err)
	names := map[string]*applesilicon.OS{}
	for _, os := range list.Os {
		names[os.Name] = os
	}
	if tahoe := names["macos-tahoe-26.3"]; tahoe == nil || tahoe.Family != "Tahoe" || tahoe.Version != "26.3" || len(tahoe.SupportedServerTypes) == 0 {
		t.Errorf("macos-tahoe-26.3 is %+v", tahoe)
	}
	found, err := api.ListOS(&applesilicon.ListOSRequest{Zone: zone, Name: scw.StringPtr("15.3"), ServerType: scw.StringPtr("M2-L")})
	if err != nil || len(found.Os) != 1 || found.Os[0].Name != "macos-sequoia-15.3.1" {
		t.Errorf("os by name: %v %v", found, err)
	}
	types, err := api.ListServerTypes(&applesilicon.ListServerTypesRequest{Zone: zone})
	must(t, err)
	i := slices.IndexFunc(types.ServerTypes, func(s *applesilicon.ServerType) bool { return s.Name == "M2-L" })
	m2 := types.ServerTypes[i]
	if m2.CPU.CoreCount != 10 || m2.Memory.Capacity != 16*scw.GB || m2.Stock != applesilicon.ServerTypeStockNoStock ||
		*m2.MinimumLeaseDuration.ToTimeDuration() != 24*time.Hour || m2.DefaultOs.Name != "macos-tahoe-26.6.1" {
		t.Errorf("M2-L is %+v", m2)
	}
	os, err := api.GetOS(&applesilicon.GetOSRequest{Zone: zone, OsID: m2.DefaultOs.ID})
	if err != nil || os.Name != m2.DefaultOs.Name {
		t.Errorf("one os: %v %v", os, err)
	}
	if _, err := api.GetServerType(&applesilicon.GetServerTypeRequest{Zone: zone, ServerType: "M4-XL"}); err != nil {
		t.Error(err)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	now := serverNumber(0).CreatedAt.Add(time.Hour)
	w := newWorld(t, 4, cloud.Options{Now: func() time.Time { return now }})
	api := w.client(t, secretKey)
	first, third := serverNumber(0), serverNumber(2)
	err := api.DeleteServer(&applesilicon.DeleteServerRequest{Zone: zone, ServerID: first.ID})
	if _, ok := errors.AsType[*scw.PreconditionFailedError](err); !ok {
		t.Fatalf("within the lease: got %T %v, want PreconditionFailedError", err, err)
	}
	update := &applesilicon.UpdateServerRequest{Zone: zone, ServerID: third.ID, ScheduleDeletion: scw.BoolPtr(true)}
	if _, err := api.UpdateServer(update); err != nil {
		t.Fatal(err)
	}
	now = third.DeletableAt
	must(t, api.DeleteServer(&applesilicon.DeleteServerRequest{Zone: zone, ServerID: first.ID}))
	list, err := api.ListServers(&applesilicon.ListServersRequest{Zone: zone})
	if err != nil || list.TotalCount != 0 {
		t.Errorf("after a deletion and a scheduled one: %v %v", list, err)
	}
	_, err = api.GetServer(&applesilicon.GetServerRequest{Zone: zone, ServerID: first.ID})
	if _, ok := errors.AsType[*scw.PermissionsDeniedError](err); !ok {
		t.Errorf("a deleted server: got %T %v", err, err)
	}
}
