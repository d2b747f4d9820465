package cloud_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scaleway/scaleway-sdk-go/api/applesilicon/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
)

// clock is a time that a test moves.
type clock struct{ now time.Time }

func newClock() *clock                       { return &clock{time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC)} }
func (c *clock) read() time.Time             { return c.now }
func (c *clock) pass(d time.Duration)        { c.now = c.now.Add(d) }
func (c *clock) options() cloud.Options      { return cloud.Options{Now: c.read} }
func (w *world) file(name string) string     { return filepath.Join(w.dir, name) }
func (w *world) serverFile(id string) string { return w.file("servers/" + id + ".json") }

// edit replaces a text in a server's file, as a person does.
func (w *world) edit(t *testing.T, id, old, next string) {
	t.Helper()
	data, err := os.ReadFile(w.serverFile(id))
	must(t, err)
	edited := strings.Replace(string(data), old, next, 1)
	if edited == string(data) {
		t.Fatalf("%s has no %q", id, old)
	}
	w.write(t, "servers/"+id+".json", edited)
}

func (w *world) write(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.WriteFile(w.file(name), []byte(text), 0o600))
}

func (w *world) get(t *testing.T, api *applesilicon.API, id string) *applesilicon.Server {
	t.Helper()
	server, err := api.GetServer(&applesilicon.GetServerRequest{Zone: zone, ServerID: id})
	must(t, err)
	return server
}

// system returns the id of a system of the catalogue.
func system(t *testing.T, api *applesilicon.API, name string) *string {
	t.Helper()
	list, err := api.ListOS(&applesilicon.ListOSRequest{Zone: zone, Name: &name})
	if err != nil || len(list.Os) == 0 {
		t.Fatalf("%s: %v, %v", name, list, err)
	}
	return &list.Os[0].ID
}

func TestReinstall(t *testing.T) {
	t.Parallel()
	c := newClock()
	var started []cloud.Server
	options := c.options()
	options.Keys = []string{fleetKey}
	options.Changed = func(s cloud.Server) error { started = append(started, s); return nil }
	w := newWorld(t, 1, options)
	api, id := w.client(t, secretKey), serverNumber(0).ID
	before := w.get(t, api, id)
	answer, err := api.ReinstallServer(&applesilicon.ReinstallServerRequest{Zone: zone, ServerID: id, OsID: system(t, api, "macos-sequoia-15.6")})
	must(t, err)
	if answer.Status != applesilicon.ServerStatusReinstalling || answer.SudoPassword != "<sealed>" || answer.VncURL != "<sealed>" || !answer.Delivered {
		t.Errorf("the answer is %+v", answer)
	}
	c.pass(2 * time.Second)
	if s := w.get(t, api, id); s.Status != applesilicon.ServerStatusReinstalling {
		t.Errorf("after two seconds: %s", s.Status)
	}
	c.pass(time.Second)
	after := w.get(t, api, id)
	if after.Status != applesilicon.ServerStatusReady || after.Os.Name != "macos-sequoia-15.6" || after.Name != before.Name {
		t.Errorf("after three seconds: %+v", after)
	}
	if after.SudoPassword == before.SudoPassword || after.VncPort == before.VncPort || !strings.Contains(after.VncURL, after.SudoPassword) {
		t.Errorf("the passwords are %q and %q", after.SudoPassword, after.VncURL)
	}
	if len(started) != 1 || started[0].Life.Installs != 1 || started[0].Life.Password != after.SudoPassword || started[0].Life.Keys[0] != options.Keys[0] {
		t.Errorf("the Mac's side got %+v", started)
	}
	if again := serve(t, w.dir, c.options()); w.get(t, again.client(t, secretKey), id).Status != applesilicon.ServerStatusReady {
		t.Error("another process does not see the end of it")
	}
}

func TestReinstallSystems(t *testing.T) {
	t.Parallel()
	c := newClock()
	w := newWorld(t, 1, c.options())
	w.write(t, "settings.json", `{"reinstall": "0s"}`)
	api, id := w.client(t, secretKey), serverNumber(0).ID
	reinstall := func(os *string) error {
		_, err := api.ReinstallServer(&applesilicon.ReinstallServerRequest{Zone: zone, ServerID: id, OsID: os})
		return err
	}
	must(t, reinstall(system(t, api, "macos-sequoia-15.6")))
	for _, name := range []string{"macos-tahoe-26.3", "fedora-asahi-remix"} {
		err := reinstall(system(t, api, name))
		if _, ok := errors.AsType[*scw.InvalidArgumentsError](err); !ok {
			t.Errorf("from Sequoia to %s: %T %v", name, err, err)
		}
	}
	if s := w.get(t, api, id); s.Os.Name != "macos-sequoia-15.6" {
		t.Errorf("a refused reinstallation changed the system to %s", s.Os.Name)
	}
	// Without a system the server gets its type's default, of whatever family.
	must(t, reinstall(nil))
	if s := w.get(t, api, id); s.Os.Name != "macos-tahoe-26.6.1" || s.Status != applesilicon.ServerStatusReady {
		t.Errorf("without a system: %s with %s", s.Status, s.Os.Name)
	}
}

func TestReboot(t *testing.T) {
	t.Parallel()
	c := newClock()
	w := newWorld(t, 1, c.options())
	api, id := w.client(t, secretKey), serverNumber(0).ID
	before := w.get(t, api, id)
	answer, err := api.RebootServer(&applesilicon.RebootServerRequest{Zone: zone, ServerID: id})
	if err != nil || answer.Status != applesilicon.ServerStatusRebooting || answer.SudoPassword != "<sealed>" {
		t.Fatalf("got %+v, %v", answer, err)
	}
	_, err = api.RebootServer(&applesilicon.RebootServerRequest{Zone: zone, ServerID: id})
	passing, ok := errors.AsType[*scw.TransientStateError](err)
	if !ok || passing.Resource != "server" || passing.ResourceID != id || passing.CurrentState != "rebooting" {
		t.Errorf("a second restart: %T %v", err, err)
	}
	c.pass(time.Second)
	after := w.get(t, api, id)
	if after.Status != applesilicon.ServerStatusReady || after.SudoPassword != before.SudoPassword || !after.UpdatedAt.After(*before.UpdatedAt) {
		t.Errorf("after a second: %+v", after)
	}
}

func TestOperationsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, cloud.Options{})
	api, id := w.client(t, secretKey), serverNumber(0).ID
	operations := map[string]func() error{
		"reinstall": func() error {
			_, err := api.ReinstallServer(&applesilicon.ReinstallServerRequest{Zone: zone, ServerID: id})
			return err
		},
		"reboot": func() error {
			_, err := api.RebootServer(&applesilicon.RebootServerRequest{Zone: zone, ServerID: id})
			return err
		},
	}
	status := "ready"
	for _, next := range []string{"starting", "updating", "locking", "unlocking", "busy", "locked"} {
		w.edit(t, id, `"status": "`+status+`"`, `"status": "`+next+`"`)
		status = next
		for name, operate := range operations {
			err := operate()
			_, passing := errors.AsType[*scw.TransientStateError](err)
			_, locked := errors.AsType[*scw.ResourceLockedError](err)
			if passing == (next == "locked") || locked != (next == "locked") {
				t.Errorf("%s while %s: %T %v", name, next, err, err)
			}
		}
	}
	w.edit(t, id, `"status": "locked"`, `"status": "ready"`)
	for name, operate := range operations {
		w.write(t, "rights.json", `{"`+name+`": "denied"}`)
		if _, ok := errors.AsType[*scw.PermissionsDeniedError](operate()); !ok {
			t.Errorf("%s without the right: %v", name, operate())
		}
	}
	w.write(t, "rights.json", `{}`)
	w.write(t, "settings.json", `{"reboot": "-1s"}`)
	if err := operations["reboot"](); err == nil || !strings.Contains(err.Error(), "settings.json") {
		t.Errorf("with a bad duration: %v", err)
	}
	w.write(t, "settings.json", `{}`)
	if s := w.get(t, api, id); s.Status != applesilicon.ServerStatusReady {
		t.Errorf("a refused operation changed the status to %s", s.Status)
	}
}
