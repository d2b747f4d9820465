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

func order(api *applesilicon.API, name string) (*applesilicon.Server, error) {
	return api.CreateServer(&applesilicon.CreateServerRequest{Zone: zone, Name: name, ProjectID: project, Type: "M2-L",
		CommitmentType: applesilicon.CommitmentTypeDuration24h})
}

func TestOrder(t *testing.T) {
	t.Parallel()
	c := newClock()
	options := c.options()
	options.Keys, options.SSHUser = []string{fleetKey}, "m1"
	w := newWorld(t, 2, options)
	w.write(t, "settings.json", `{"stock": {"fr-par-1/M2-L": 2}}`)
	api := w.client(t, secretKey)
	made, err := order(api, "acme-pool-new")
	must(t, err)
	if made.Status != applesilicon.ServerStatusStarting || made.Delivered || made.SudoPassword != "<sealed>" ||
		made.DeletableAt.Sub(*made.CreatedAt) != 24*time.Hour || made.Os.Name != "macos-tahoe-26.6.1" {
		t.Errorf("the answer is %+v", made)
	}
	if s := w.get(t, api, made.ID); s.Delivered || s.SudoPassword == "<sealed>" || s.SudoPassword == "" || s.IP.String() != "198.19.0.1" {
		t.Errorf("before its delivery: %+v", s)
	}
	c.pass(time.Second)
	if s := w.get(t, api, made.ID); !s.Delivered || s.Status != applesilicon.ServerStatusReady {
		t.Errorf("after its delivery: %+v", s)
	}
	if life, _, err := w.api.Server(made.ID); err != nil || life.Life.Installs != 1 || life.Life.Keys[0] != fleetKey {
		t.Errorf("the Mac's side gets %+v, %v", life.Life, err)
	}
	slow, err := api.CreateServer(&applesilicon.CreateServerRequest{Zone: zone, Name: "x", ProjectID: project, Type: "M2-L", OsID: system(t, api, "macos-sequoia-15.6")})
	must(t, err)
	c.pass(time.Second)
	if s := w.get(t, api, slow.ID); s.Delivered || s.IP.String() != "198.19.0.2" || s.ID[:5] == made.ID[:5] {
		t.Errorf("with a system that is not the default: %+v", s)
	}
	c.pass(3 * time.Second)
	if s := w.get(t, api, slow.ID); !s.Delivered || s.Os.Name != "macos-sequoia-15.6" {
		t.Errorf("with another system, later: %+v", s)
	}
	// Both were taken from the stock.
	if _, err := order(api, "acme-pool-third"); !isOutOfStock(err) {
		t.Errorf("without stock: %T %v", err, err)
	}
}

func isOutOfStock(err error) bool {
	_, ok := errors.AsType[*scw.OutOfStockError](err)
	return ok
}

func TestOrderSeveral(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, cloud.Options{})
	w.write(t, "settings.json", `{"stock": {"M2-L": 2}, "quota": 4}`)
	api := w.client(t, secretKey)
	batch := func(names ...string) error {
		request := &applesilicon.BatchCreateServersRequest{Zone: zone, ProjectID: project, Type: "M2-L"}
		for _, name := range names {
			request.Requests = append(request.Requests, &applesilicon.BatchCreateServersRequestBatchInnerCreateServerRequest{Name: name})
		}
		_, err := api.BatchCreateServers(request)
		return err
	}
	count := func() uint32 {
		list, err := api.ListServers(&applesilicon.ListServersRequest{Zone: zone})
		must(t, err)
		return list.TotalCount
	}
	err := batch("a", "b", "c")
	if over, ok := errors.AsType[*scw.QuotasExceededError](err); !ok || over.Details[0].Quota != 4 || over.Details[0].Current != 2 {
		t.Errorf("over the quota: %T %v", err, err)
	}
	w.write(t, "settings.json", `{"stock": {"M2-L": 2}}`)
	if err := batch("a", "b", "c"); !isOutOfStock(err) {
		t.Errorf("over the stock: %v", err)
	}
	if n := count(); n != 1 {
		t.Errorf("refused batches created servers: there are %d", n)
	}
	if err := batch("a", "b"); err != nil || count() != 3 {
		t.Errorf("a batch of two: %v, %d servers", err, count())
	}
}

func TestOrderRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, cloud.Options{})
	w.write(t, "settings.json", `{"stock": {"M2-L": 9, "M1-M": 9}}`)
	api := w.client(t, secretKey)
	request := applesilicon.CreateServerRequest{Zone: zone, Name: "x", ProjectID: project, Type: "M2-L"}
	for name, change := range map[string]func(*applesilicon.CreateServerRequest){
		"type":       func(r *applesilicon.CreateServerRequest) { r.Type = "M9" },
		"system":     func(r *applesilicon.CreateServerRequest) { r.OsID = scw.StringPtr("none") },
		"commitment": func(r *applesilicon.CreateServerRequest) { r.CommitmentType = "for_ever" },
		"for M1": func(r *applesilicon.CreateServerRequest) {
			r.Type, r.OsID = "M1-M", system(t, api, "fedora-asahi-remix")
		},
	} {
		bad := request
		change(&bad)
		if _, err := api.CreateServer(&bad); !isInvalid(err) {
			t.Errorf("%s: %T %v", name, err, err)
		}
	}
	w.write(t, "rights.json", `{"create": "denied"}`)
	if _, err := api.CreateServer(&request); err == nil || !strings.Contains(err.Error(), "create server") {
		t.Errorf("without the right: %v", err)
	}
	w.write(t, "rights.json", `{}`)
	request.ProjectID = organization
	if _, ok := errors.AsType[*scw.PermissionsDeniedError](func() error { _, err := api.CreateServer(&request); return err }()); !ok {
		t.Error("another project was not refused")
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
	w.write(t, "settings.json", `{"stock": {"M2-L": 1}}`)
	api := w.client(t, secretKey)
	made, err := order(api, "acme-pool-new")
	must(t, err)
	remove := func() error {
		return api.DeleteServer(&applesilicon.DeleteServerRequest{Zone: zone, ServerID: made.ID})
	}
	if _, ok := errors.AsType[*scw.TransientStateError](remove()); !ok {
		t.Errorf("before the delivery: %v", remove())
	}
	c.pass(time.Minute)
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
	w.write(t, "settings.json", `{"stock": {"M2-L": 1}, "lease": "0s", "delivery": "0s"}`)
	api := w.client(t, secretKey)
	made, err := order(api, "acme-pool-new")
	if err != nil || !made.DeletableAt.Equal(*made.CreatedAt) {
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
