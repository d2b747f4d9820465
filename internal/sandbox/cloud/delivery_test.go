package cloud_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/scaleway/scaleway-sdk-go/api/applesilicon/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
)

// TestDeliver adds servers: they are ready, have the fleet's key and a lease, and no two have one address or id.
func TestDeliver(t *testing.T) {
	t.Parallel()
	c := newClock()
	options := c.options()
	options.Keys, options.SSHUser = []string{fleetKey}, "m1"
	w := newWorld(t, 2, options)
	api := w.client(t, secretKey)
	made, err := w.api.Deliver(zone, "M2-L", "acme-pool-new")
	must(t, err)
	next, err := w.api.Deliver(zone, "M2-L", "acme-pool-next")
	must(t, err)
	if s := w.get(t, api, made.ID); !s.Delivered || s.Status != applesilicon.ServerStatusReady || s.IP.String() != "198.19.0.1" || s.SudoPassword == "" ||
		s.DeletableAt.Sub(*s.CreatedAt) != 24*time.Hour || s.Os.Name != "macos-tahoe-26.6.1" {
		t.Errorf("the first is %+v", s)
	}
	if s := w.get(t, api, next.ID); s.IP.String() != "198.19.0.2" || s.ID[:5] == made.ID[:5] {
		t.Errorf("the second is %+v", s)
	}
	if life, _, err := w.api.Server(made.ID); err != nil || life.Life.Installs != 1 || life.Life.Keys[0] != fleetKey {
		t.Errorf("the Mac's side gets %+v, %v", life.Life, err)
	}
}

func isInvalid(err error) bool {
	_, ok := errors.AsType[*scw.InvalidArgumentsError](err)
	return ok
}

func TestDeleteRefused(t *testing.T) {
	t.Parallel()
	c := newClock()
	var deleted []string
	options := c.options()
	options.Deleted = func(s cloud.Server) error { deleted = append(deleted, s.Name); return nil }
	w := newWorld(t, 1, options)
	api := w.client(t, secretKey)
	made, err := w.api.Deliver(zone, "M2-L", "acme-pool-new")
	must(t, err)
	remove := func() error {
		return api.DeleteServer(&applesilicon.DeleteServerRequest{Zone: zone, ServerID: made.ID})
	}
	w.edit(t, made.ID, `"ready"`, `"starting"`)
	if _, ok := errors.AsType[*scw.TransientStateError](remove()); !ok {
		t.Errorf("before the delivery: %v", remove())
	}
	w.edit(t, made.ID, `"starting"`, `"ready"`)
	err = remove()
	if _, ok := errors.AsType[*scw.PreconditionFailedError](err); !ok || !strings.Contains(err.Error(), "unknown precondition, the server cannot be deleted before 2026-04-02T12:00:00Z") {
		t.Errorf("within the lease: %T %v", err, err)
	}
	if _, err := api.UpdateServer(&applesilicon.UpdateServerRequest{Zone: zone, ServerID: made.ID, ScheduleDeletion: scw.BoolPtr(true)}); err != nil {
		t.Fatal(err)
	}
	c.pass(24 * time.Hour)
	_, err = api.GetServer(&applesilicon.GetServerRequest{Zone: zone, ServerID: made.ID})
	if _, ok := errors.AsType[*scw.PermissionsDeniedError](err); !ok || len(deleted) != 1 {
		t.Errorf("after the lease: %T %v, deleted %q", err, err, deleted)
	}
	w.write(t, "rights.json", `{"delete": "denied"}`)
	if _, ok := errors.AsType[*scw.PermissionsDeniedError](api.DeleteServer(&applesilicon.DeleteServerRequest{Zone: zone, ServerID: serverNumber(0).ID})); !ok {
		t.Error("without the right a server was deleted")
	}
}

func TestNoLease(t *testing.T) {
	t.Parallel()
	c := newClock()
	w := newWorld(t, 0, c.options())
	w.write(t, "settings.json", `{"lease": "0s"}`)
	api := w.client(t, secretKey)
	made, err := w.api.Deliver(zone, "M2-L", "acme-pool-new")
	if err != nil || !made.DeletableAt.Equal(made.CreatedAt) {
		t.Fatalf("%+v, %v", made, err)
	}
	if err := api.DeleteServer(&applesilicon.DeleteServerRequest{Zone: zone, ServerID: made.ID}); err != nil {
		t.Error(err)
	}
}

func TestCatalogueChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, cloud.Options{})
	api := w.client(t, secretKey)
	w.write(t, "settings.json", `{"gone": ["macos-tahoe-26.3", "Sonoma"], "renamed": {"macos-tahoe-26.6.1": "macos-tahoe-26.6.3"},
		"stock": {"M2-L": 1, "M4-S": 3}, "leases": {"M2-L": "48h"}}`)
	list, err := api.ListOS(&applesilicon.ListOSRequest{Zone: zone}, scw.WithAllPages())
	must(t, err)
	var names []string
	for _, os := range list.Os {
		names = append(names, os.Name+"="+os.Version)
	}
	text := strings.Join(names, " ")
	if strings.Contains(text, "26.3") || strings.Contains(text, "sonoma") || !strings.Contains(text, "macos-tahoe-26.6.3=26.6.3") || strings.Contains(text, "26.6.1") {
		t.Errorf("the catalogue has %s", text)
	}
	one, err := api.GetServerType(&applesilicon.GetServerTypeRequest{Zone: zone, ServerType: "M2-L"})
	if err != nil || one.Stock != applesilicon.ServerTypeStockLowStock || one.DefaultOs.Name != "macos-tahoe-26.6.3" || *one.MinimumLeaseDuration.ToTimeDuration() != 48*time.Hour {
		t.Errorf("M2-L is %+v, %v", one, err)
	}
	one, err = api.GetServerType(&applesilicon.GetServerTypeRequest{Zone: zone, ServerType: "M4-S"})
	if err != nil || one.Stock != applesilicon.ServerTypeStockHighStock {
		t.Errorf("M4-S is %+v, %v", one, err)
	}
	w.write(t, "settings.json", `{"gone": ["Tahoe"]}`)
	if one, err = api.GetServerType(&applesilicon.GetServerTypeRequest{Zone: zone, ServerType: "M2-L"}); err != nil || one.DefaultOs.Name != "macos-sequoia-15.6" {
		t.Errorf("without its family, M2-L is %+v, %v", one, err)
	}
	w.write(t, "settings.json", `{"leases": {"M2-L": "soon"}}`)
	if _, err := api.ListServerTypes(&applesilicon.ListServerTypesRequest{Zone: zone}); err == nil || !strings.Contains(err.Error(), "leases of M2-L") {
		t.Errorf("a bad duration: %v", err)
	}
}
